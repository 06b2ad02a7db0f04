#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace muster {

namespace {

ErrorStatus FileError(const std::string& name, int error_number) {
  const Reason reason = error_number == ENOENT ? Reason::kNotFound : Reason::kInternalError;
  return Error(reason, "{}: {}", name, strerror(error_number));
}

Status SyncDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string dir = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool good = fd >= 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  return good ? Status::Ok() : FileError(dir, error);
}

// The temporary file, complete; the caller removes it if this fails.
Status WriteNew(int fd, const std::string& name, std::string_view text, mode_t mode, bool sync) {
  // Past the umask.
  if (fchmod(fd, mode) != 0) return FileError(name, errno);
  RETURN_IF_ERROR(WriteAll(fd, name, text));
  if (sync && fsync(fd) != 0) return FileError(name, errno);
  return Status::Ok();
}

}  // namespace

Result<std::string> ReadAll(int fd, const std::string& name, size_t limit) {
  std::string text;
  char buffer[16384];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(name, errno);
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > limit)
      return Error(Reason::kRequestEntityTooLarge, "{}: larger than {} bytes", name, limit);
  }
}

Result<std::string> ReadSmallFile(const std::string& path, size_t limit) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(path, errno);
  Result<std::string> text = ReadAll(fd, path, limit);
  close(fd);
  return text;
}

Status WriteAll(int fd, const std::string& name, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(name, errno);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return Status::Ok();
}

Status WriteFileAtomic(const std::string& path, std::string_view text, mode_t mode, bool sync) {
  const std::string temporary = fmt::format("{}.tmp{}", path, getpid());
  unlink(temporary.c_str());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return FileError(temporary, errno);
  Status status = WriteNew(fd, temporary, text, mode, sync);
  if (close(fd) != 0 && status.ok()) status = FileError(temporary, errno);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) status = FileError(path, errno);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return sync ? SyncDirectoryOf(path) : Status::Ok();
}

}  // namespace muster
