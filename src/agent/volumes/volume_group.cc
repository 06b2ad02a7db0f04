#include "agent/volumes/volume_group.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "agent/runtime/files.h"
#include "agent/runtime/unique_fd.h"

namespace muster::agent {
namespace {

constexpr mode_t kReadOnly = 0440, kReadWrite = 0660, kFolder = 0110 | S_ISGID;
constexpr int kMaxDepth = 1000;  // each holds a descriptor

class Walk {
 public:
  Walk(const VolumeGroup& group, bool read_only)
      : group_(group), mask_(read_only ? kReadOnly : kReadWrite) {}

  Status Root(const std::string& path) {
    const UniqueFd fd(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return SystemError("open", path, errno);
    if (group_.only_on_mismatch && IsSet(fd.get())) return Status::Ok();
    return Set(fd.get(), path, 0);
  }

 private:
  mode_t Mask(const struct stat& info) const {
    return S_ISDIR(info.st_mode) ? mask_ | kFolder : mask_;
  }
  bool IsSet(int fd) const {
    struct stat info = {};
    return fstat(fd, &info) == 0 && info.st_gid == group_.gid &&
           (info.st_mode & Mask(info)) == Mask(info);
  }

  // Of what `fd`, opened as a path, is; then of what is inside.
  Status Set(int fd, const std::string& path, int depth) {
    struct stat info = {};
    if (fstat(fd, &info) != 0) return SystemError("stat", path, errno);
    if (fchownat(fd, "", static_cast<uid_t>(-1), group_.gid, AT_EMPTY_PATH) != 0) {
      if (errno == EINVAL || errno == EPERM) return Status::Ok();  // there is no such group
      return SystemError("change the group of", path, errno);
    }
    if (S_ISLNK(info.st_mode)) return Status::Ok();
    const std::string self = fmt::format("/proc/self/fd/{}", fd);
    if (chmod(self.c_str(), (info.st_mode & 07777) | Mask(info)) != 0)
      return SystemError("change the mode of", path, errno);
    return S_ISDIR(info.st_mode) ? Inside(self, path, depth) : Status::Ok();
  }

  Status Inside(const std::string& self, const std::string& path, int depth) {
    if (depth >= kMaxDepth)
      return Error(Reason::kInternalError, "{}: more than {} folders deep", path, kMaxDepth);
    DIR* dir = opendir(self.c_str());
    if (dir == nullptr) return SystemError("open", path, errno);
    Status status = Status::Ok();
    while (const dirent* entry = status.ok() ? readdir(dir) : nullptr) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      const UniqueFd fd(openat(dirfd(dir), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (fd.valid()) status = Set(fd.get(), path + "/" + name, depth + 1);  // else it is gone
    }
    closedir(dir);
    return status;
  }

  const VolumeGroup& group_;
  const mode_t mask_;
};

}  // namespace

std::optional<VolumeGroup> VolumeGroupOf(const json::Value& pod) {
  const json::Value& security = pod["spec"]["securityContext"];
  const std::optional<int64_t> gid = security["fsGroup"].Int();
  if (!gid) return std::nullopt;
  return VolumeGroup{static_cast<gid_t>(*gid),
                     security["fsGroupChangePolicy"].AsString() == "OnRootMismatch"};
}

Status SetVolumeGroup(const std::string& path, const VolumeGroup& group, bool read_only) {
  return Walk(group, read_only).Root(path);
}

}  // namespace muster::agent
