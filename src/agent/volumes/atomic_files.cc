#include "agent/volumes/atomic_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {

Status ValidateVolumePath(const std::string& path) {
  if (path.empty() || path.front() == '/' || path.size() > 255 * 8) {
    return Error(Reason::kInvalid, "volume path {:?} must be relative and not empty", path);
  }
  for (std::string_view part : Split(path, '/')) {
    if (part == ".." || part.empty() || part.size() > 255) {
      return Error(Reason::kInvalid, "volume path {:?} must not contain '..' or empty parts", path);
    }
  }
  if (path.starts_with(".."))
    return Error(Reason::kInvalid, "volume path {:?} must not start with '..'", path);
  return Status::Ok();
}

namespace {

std::string FirstPart(const std::string& path) { return path.substr(0, path.find('/')); }

Status WriteContent(const std::string& dir, const std::vector<VolumeFile>& files) {
  RETURN_IF_ERROR(MakeDirs(dir));
  for (const VolumeFile& file : files) {
    const std::string path = dir + "/" + file.path;
    RETURN_IF_ERROR(MakeDirs(path.substr(0, path.find_last_of('/'))));
    RETURN_IF_ERROR(WriteFile(path, file.data, file.mode));
    if (chmod(path.c_str(), file.mode) != 0) return SystemError("chmod", path, errno);
  }
  return Status::Ok();
}

// Moves the link `name` to `target` in one step.
Status PointLink(const std::string& name, const std::string& target) {
  const std::string temporary = name + "_tmp";
  unlink(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0)
    return SystemError("symlink", temporary, errno);
  if (rename(temporary.c_str(), name.c_str()) != 0) return SystemError("rename", temporary, errno);
  return Status::Ok();
}

}  // namespace

Status WriteVolumeFiles(const std::string& dir, const std::vector<VolumeFile>& files,
                        const std::string& version, const std::optional<VolumeGroup>& group) {
  size_t bytes = 0;
  for (const VolumeFile& file : files) {
    RETURN_IF_ERROR(ValidateVolumePath(file.path));
    bytes += file.data.size();
  }
  if (files.size() > kMaxVolumeFiles || bytes > kMaxVolumeBytes) {
    return Error(Reason::kRequestEntityTooLarge,
                 "a volume may hold {} files and {} bytes; this has {} and {}", kMaxVolumeFiles,
                 kMaxVolumeBytes, files.size(), bytes);
  }
  const std::string folder = "..muster_" + version;
  const std::string data_link = dir + "/..data";
  char current[4096];
  const ssize_t length = readlink(data_link.c_str(), current, sizeof current);
  const std::string old = length > 0 ? std::string(current, static_cast<size_t>(length)) : "";
  if (old == folder) return Status::Ok();
  RETURN_IF_ERROR(RemoveTree(dir + "/" + folder));
  RETURN_IF_ERROR(WriteContent(dir + "/" + folder, files));
  if (group) RETURN_IF_ERROR(SetVolumeGroup(dir + "/" + folder, *group, true));
  RETURN_IF_ERROR(PointLink(data_link, folder));

  std::set<std::string> visible;
  for (const VolumeFile& file : files) visible.insert(FirstPart(file.path));
  for (const std::string& name : visible) {
    if (!PathExists(dir + "/" + name))
      RETURN_IF_ERROR(PointLink(dir + "/" + name, "..data/" + name));
  }
  for (const std::string& name : ListDir(dir)) {
    if (!name.starts_with("..") && !visible.contains(name))
      RETURN_IF_ERROR(RemoveTree(dir + "/" + name));
  }
  return old.empty() ? Status::Ok() : RemoveTree(dir + "/" + old);
}

}  // namespace muster::agent
