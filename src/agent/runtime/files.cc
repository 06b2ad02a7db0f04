#include "agent/runtime/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "agent/runtime/unique_fd.h"

namespace muster::agent {

ErrorStatus SystemError(std::string_view what, std::string_view path, int error_number) {
  const Reason reason = error_number == ENOENT ? Reason::kNotFound : Reason::kInternalError;
  return Error(reason, "{} {}: {}", what, path, strerror(error_number));
}

namespace {

Status RemoveBelow(int dir_fd, const std::string& path, dev_t device);

Status RemoveEntry(int dir_fd, const char* name, const std::string& path, dev_t device) {
  if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT) return Status::Ok();
  if (errno != EISDIR && errno != EPERM) return SystemError("remove", path, errno);
  UniqueFd child(openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!child.valid()) return SystemError("open", path, errno);
  struct stat info = {};
  if (fstat(child.get(), &info) != 0) return SystemError("stat", path, errno);
  if (info.st_dev != device)
    return Error(Reason::kConflict, "{} is another file system; it is left alone", path);
  RETURN_IF_ERROR(RemoveBelow(child.get(), path, device));
  if (unlinkat(dir_fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
    return SystemError("remove", path, errno);
  return Status::Ok();
}

Status RemoveBelow(int dir_fd, const std::string& path, dev_t device) {
  DIR* dir = fdopendir(dup(dir_fd));
  if (dir == nullptr) return SystemError("open", path, errno);
  Status first;
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(dir);
  for (const std::string& name : names) {
    Status status = RemoveEntry(dir_fd, name.c_str(), path + "/" + name, device);
    if (!status.ok() && first.ok()) first = std::move(status);
  }
  return first;
}

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

Status RemoveTree(const std::string& path) {
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir.valid()) {
    if (errno == ENOENT) return Status::Ok();
    if (unlink(path.c_str()) == 0) return Status::Ok();
    return SystemError("remove", path, errno);
  }
  struct stat info = {};
  if (fstat(dir.get(), &info) != 0) return SystemError("stat", path, errno);
  RETURN_IF_ERROR(RemoveBelow(dir.get(), path, info.st_dev));
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

bool PathExists(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

}  // namespace muster::agent
