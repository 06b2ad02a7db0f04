#include "agent/runtime/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "agent/runtime/unique_fd.h"

namespace muster::agent {

ErrorStatus SystemError(std::string_view what, std::string_view path, int error_number) {
  const Reason reason = error_number == ENOENT ? Reason::kNotFound : Reason::kInternalError;
  return Error(reason, "{} {}: {}", what, path, strerror(error_number));
}

Result<std::string> ReadTail(const std::string& path, size_t limit) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return SystemError("open", path, errno);
  const off_t start = std::max<off_t>(info.st_size - static_cast<off_t>(limit), 0);
  std::string text(limit, '\0');
  const ssize_t n = pread(fd.get(), text.data(), text.size(), start);
  if (n < 0) return SystemError("read", path, errno);
  text.resize(static_cast<size_t>(n));
  return text;
}

namespace {

// The first names of a folder, at most kNamesAtOnce: it may have millions.
Result<std::vector<std::string>> NamesIn(int dir_fd, const std::string& path) {
  constexpr size_t kNamesAtOnce = 4096;
  // A position of its own: the folder is listed again.
  UniqueFd own(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* dir = own.valid() ? fdopendir(own.get()) : nullptr;
  if (dir == nullptr) return SystemError("list", path, errno);
  own.Release();
  std::vector<std::string> names;
  while (names.size() < kNamesAtOnce) {
    const dirent* entry = readdir(dir);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(dir);
  return names;
}

// The folder `name` in `dir`, unless something is mounted on it. What is mounted may be on the very
// disk that it is mounted on (a bind mount), so comparing devices is not enough.
Result<UniqueFd> OpenUnmounted(int dir, const std::string& name, const std::string& path) {
  open_how how = {};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV;
  UniqueFd fd(static_cast<int>(syscall(SYS_openat2, dir, name.c_str(), &how, sizeof how)));
  // A sandbox without this call (gVisor) has no pods with mounts either.
  if (!fd.valid() && errno == ENOSYS)
    fd.Reset(openat(dir, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.valid()) return fd;
  if (errno == EXDEV)
    return Error(Reason::kConflict, "{} is a mount point; what is mounted is left alone", path);
  return SystemError("open", path, errno);
}

// Empties the folder `top`. What is deeper than one level is moved up to `top` first, so two
// descriptors are enough for any depth, and every folder is moved once.
class TreeRemover {
 public:
  TreeRemover(int top, std::string path, dev_t device)
      : top_(top), path_(std::move(path)), device_(device) {}

  Status Run() {
    return ForAll(top_, path_, [this](const std::string& name) { return Remove(name); });
  }

 private:
  // Calls `remove` for what is in the folder until nothing is left or nothing can be removed.
  template <class Remove>
  static Status ForAll(int dir, const std::string& path, Remove remove) {
    while (true) {
      ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(dir, path));
      Status first;
      size_t failed = 0;
      for (const std::string& name : names) {
        Status status = remove(name);
        if (status.ok()) continue;
        if (++failed == 1) first = std::move(status);
      }
      if (failed == names.size()) return first;
    }
  }

  Status Remove(const std::string& name) {
    if (unlinkat(top_, name.c_str(), 0) == 0 || errno == ENOENT) return Status::Ok();
    const std::string path = path_ + "/" + name;
    if (errno != EISDIR && errno != EPERM) return SystemError("remove", path, errno);
    // What is mounted deeper than this can neither be removed nor moved up.
    ASSIGN_OR_RETURN(const UniqueFd dir, OpenUnmounted(top_, name, path));
    struct stat info = {};
    if (fstat(dir.get(), &info) != 0) return SystemError("stat", path, errno);
    if (info.st_dev != device_)
      return Error(Reason::kConflict, "{} is another file system; it is left alone", path);
    RETURN_IF_ERROR(ForAll(dir.get(), path, [&](const std::string& entry) {
      return RemoveOrMoveUp(dir.get(), entry, path);
    }));
    if (unlinkat(top_, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
      return SystemError("remove", path, errno);
    return Status::Ok();
  }

  Status RemoveOrMoveUp(int dir, const std::string& entry, const std::string& path) {
    if (unlinkat(dir, entry.c_str(), 0) == 0 || errno == ENOENT) return Status::Ok();
    if (errno != EISDIR && errno != EPERM) return SystemError("remove", path + "/" + entry, errno);
    if (unlinkat(dir, entry.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return Status::Ok();
    while (true) {
      const std::string name = fmt::format("..moved-{}", next_++);
      if (renameat2(dir, entry.c_str(), top_, name.c_str(), RENAME_NOREPLACE) == 0)
        return Status::Ok();
      // Another of that name comes from a run that was broken off.
      if (errno != EEXIST) return SystemError("move", path + "/" + entry, errno);
    }
  }

  int top_;
  std::string path_;
  dev_t device_;
  uint64_t next_ = 0;
};

}  // namespace

Status WriteFile(const std::string& path, std::string_view text, mode_t mode) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.valid()) return SystemError("open", path, errno);
  return WriteAll(fd.get(), path, text);
}

Status MakeDirs(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return Status::Ok();
  if (errno != ENOENT) return SystemError("mkdir", path, errno);
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos || slash == 0) return SystemError("mkdir", path, errno);
  RETURN_IF_ERROR(MakeDirs(path.substr(0, slash), mode));
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return SystemError("mkdir", path, errno);
  return Status::Ok();
}

void SpreadFolders(const std::string& path) {
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;
  if (!dir.valid() || ioctl(dir.get(), FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_TOPDIR_FL;
  (void)ioctl(dir.get(), FS_IOC_SETFLAGS, &flags);
}

Status RemoveTree(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Status::Ok() : SystemError("remove", path, errno);
  if (!S_ISDIR(info.st_mode)) {
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return Status::Ok();
    return SystemError("remove", path, errno);
  }
  const size_t slash = path.find_last_of('/');
  const std::string parent_path = slash == path.npos ? "." : path.substr(0, slash + 1);
  const UniqueFd parent(open(parent_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) return SystemError("open", parent_path, errno);
  ASSIGN_OR_RETURN(const UniqueFd dir, OpenUnmounted(parent.get(), path.substr(slash + 1), path));
  if (fstat(dir.get(), &info) != 0) return SystemError("stat", path, errno);
  RETURN_IF_ERROR(TreeRemover(dir.get(), path, info.st_dev).Run());
  if (rmdir(path.c_str()) != 0 && errno != ENOENT) return SystemError("remove", path, errno);
  return Status::Ok();
}

std::vector<std::string> ListDir(const std::string& path) {
  std::vector<std::string> names;
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

bool IsFileName(std::string_view name) {
  return !name.empty() && name.size() <= NAME_MAX && name.front() != '.' &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

bool PathExists(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

}  // namespace muster::agent
