#include "store/store_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::store {

namespace {

std::string_view Remedy(int error) {
  switch (error) {
    case EROFS:
      return ": the file system is mounted read-only, mount it for writing";
    case EACCES:
    case EPERM:
      return ": see to the owner and mode of the file and of its folder";
    case ENOSPC:
    case EDQUOT:
      return ": the disk is full, make room";
    case EIO:
      return ": the disk does not work, repair it and restore a backup";
    default:
      return "";
  }
}

std::optional<Revision> ReadRevision(int fd) {
  char text[32];
  const ssize_t count = pread(fd, text, sizeof text, 0);
  if (count <= 0) return std::nullopt;
  return ParseInt(Trim(std::string_view(text, static_cast<size_t>(count))));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Status FileError(std::string_view doing, const std::string& path) {
  const int error = errno;
  return Error(Reason::kInternalError, "store: {} {}: {}{}", doing, path, std::strerror(error),
               Remedy(error));
}

Result<StoreLock> StoreLock::Take(const std::string& database) {
  const std::string path = database + ".lock";
  StoreLock lock;
  lock.file_ = Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.file_.get() < 0) return Error(FileError("open", path));
  if (flock(lock.file_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error(Reason::kConflict,
                 "store: {} is held by another process: stop it first (muster down)", path);
  }
  lock.recorded_ = ReadRevision(lock.file_.get());
  return lock;
}

std::optional<Revision> StoreLock::RecordedOf(const std::string& database) {
  const Descriptor file(open((database + ".lock").c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() < 0 ? std::nullopt : ReadRevision(file.get());
}

Status CheckNothingLost(const std::string& database, Revision last,
                        std::optional<Revision> recorded) {
  if (!recorded || last >= *recorded) return Status::Ok();
  return Error(Reason::kInternalError,
               "store: the database {} ends at revision {}, but revision {} was acknowledged: the "
               "file or its log {}-wal was lost, cut, or replaced by an older copy. Put the newest "
               "files back; or accept the loss: muster backup, then muster restore --force",
               database, last, *recorded, database);
}

void StoreLock::Record(Revision revision) const {
  // Always as long as before: an overwrite needs no room. Nobody waits for it and nothing depends
  // on it but a warning, so a failure is not worth a word.
  const std::string text = fmt::format("{:020}\n", revision);
  [[maybe_unused]] const ssize_t written = pwrite(file_.get(), text.data(), text.size(), 0);
}

Status MakeStoreFolder(const std::string& database) {
  const std::filesystem::path folder = std::filesystem::path(database).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  errno = error.value();
  if (error) return FileError("create", folder.string());
  struct stat info{};
  if (stat(folder.c_str(), &info) == 0 && (info.st_mode & 0777) == 0700) return Status::Ok();
  if (chmod(folder.c_str(), 0700) != 0) return FileError("chmod", folder.string());
  return Status::Ok();
}

Status MakeStoreFile(const std::string& database) {
  const Descriptor file(open(database.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0) return FileError("open", database);
  if (fchmod(file.get(), 0600) != 0) return FileError("chmod", database);
  SyncFolderOf(database);
  SyncFolderOf(std::filesystem::path(database).parent_path());
  return Status::Ok();
}

Status SyncFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() < 0 || fsync(file.get()) != 0 ? FileError("sync", path) : Status::Ok();
}

void SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) fsync(directory.get());
}

}  // namespace muster::store
