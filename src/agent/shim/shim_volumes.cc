#include "agent/shim/shim_volumes.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "agent/runtime/files.h"
#include "agent/shim/shim.h"
#include "agent/volumes/atomic_files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

std::string SizeOption(int64_t bytes) {
  return bytes > 0 ? fmt::format(",size={}", bytes) : std::string();
}

std::optional<VolumeGroup> GroupOf(const json::Value& volume) {
  const std::optional<int64_t> gid = volume["group"].Int();
  return gid ? std::optional(VolumeGroup{static_cast<gid_t>(*gid)}) : std::nullopt;
}

Status MountMemoryVolume(const std::string& dir, const json::Value& volume) {
  if (PathExists(dir)) return Status::Ok();  // a repeated request
  RETURN_IF_ERROR(MakeDirs(dir));
  const std::string options = "mode=0777" + SizeOption(volume["sizeBytes"].AsInt());
  if (mount("tmpfs", dir.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return SystemError("mount", dir, errno);
  }
  const auto group = GroupOf(volume);
  return group ? SetVolumeGroup(dir, *group, false) : Status::Ok();
}

Status WriteContentVolume(const std::string& dir, const json::Value& volume) {
  std::vector<VolumeFile> files;
  for (const json::Value& file : volume["files"].items()) {
    auto data = Base64Decode(file["data"].AsString());
    if (!data)
      return Error(Reason::kInvalid, "volume {}: broken base64", volume["name"].AsString());
    files.push_back({file["path"].Str(), std::move(*data),
                     static_cast<mode_t>(file["mode"].AsInt(0644) & 0777)});
  }
  RETURN_IF_ERROR(MakeDirs(dir));
  return WriteVolumeFiles(dir, files, volume["version"].Str(), GroupOf(volume));
}

}  // namespace

Status MountShm(const std::string& path) {
  if (mount("shm", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777") != 0) {
    return SystemError("mount", path, errno);
  }
  return Status::Ok();
}

Status SizeShm(const std::string& path, int64_t bytes) {
  if (bytes <= 0) return Status::Ok();
  const std::string options = "mode=1777" + SizeOption(bytes);
  if (mount("shm", path.c_str(), "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC,
            options.c_str()) != 0) {
    return SystemError("size", path, errno);
  }
  return Status::Ok();
}

Status WriteShimVolumes(const std::string& pod_dir, const json::Value& volumes) {
  for (const json::Value& volume : volumes.items()) {
    const std::string name = volume["name"].Str();
    if (!IsFileName(name)) {
      return Error(Reason::kInvalid, "volume name {:?} is not a file name", name);
    }
    const std::string dir = SandboxVolume(pod_dir, name);
    const Status status = volume["kind"].AsString() == "memory" ? MountMemoryVolume(dir, volume)
                                                                : WriteContentVolume(dir, volume);
    RETURN_IF_ERROR(status.WithPrefix(fmt::format("volume {}: ", name)));
  }
  return Status::Ok();
}

}  // namespace muster::agent
