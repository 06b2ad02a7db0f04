#include "agent/volumes/disk_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <set>

#include "agent/pod_workers/container_builder.h"
#include "agent/pod_workers/pod_inputs.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_runtime.h"
#include "agent/runtime/unique_fd.h"
#include "cluster/quantity.h"

namespace muster::agent {
namespace {

constexpr int64_t kBlockBytes = 512;  // of st_blocks

class Walk {
 public:
  // False when it is too deep or too large.
  bool Add(int parent, const char* name, int depth) {
    if (++entries_ > kMaxUsageEntries) return false;
    struct stat info = {};
    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return true;  // gone meanwhile
    if (info.st_nlink < 2 || S_ISDIR(info.st_mode) || seen_.insert(info.st_ino).second)
      bytes += info.st_blocks * kBlockBytes;
    if (!S_ISDIR(info.st_mode)) return true;
    if (depth >= kMaxUsageDepth) return false;
    UniqueFd fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    DIR* dir = fd.valid() ? fdopendir(fd.get()) : nullptr;
    if (dir == nullptr) return true;
    const int own = fd.Release();
    bool whole = true;
    while (const dirent* entry = whole ? readdir(dir) : nullptr) {
      const std::string_view inner = entry->d_name;
      if (inner != "." && inner != "..") whole = Add(own, entry->d_name, depth + 1);
    }
    closedir(dir);
    return whole;
  }

  int64_t bytes = 0;

 private:
  std::set<ino_t> seen_;  // files with several names
  int64_t entries_ = 0;
};

std::optional<int64_t> DiskLimit(const json::Value& container) {
  const auto limit =
      cluster::Quantity::FromJson(container["resources"]["limits"]["ephemeral-storage"]);
  return limit && !limit->IsZero() ? std::optional(limit->Units()) : std::nullopt;
}

bool IsOnDisk(const json::Value& volume) {
  return volume.Has("emptyDir") && volume["emptyDir"]["medium"].AsString() != "Memory";
}

int64_t Found(const std::map<std::string, int64_t>& sizes, std::string_view name) {
  const auto found = sizes.find(std::string(name));
  return found == sizes.end() ? 0 : found->second;
}

std::string Text(int64_t bytes) { return fmt::format("{}Ki", bytes / 1024); }

}  // namespace

int64_t DiskUsage(const std::string& path) {
  Walk walk;
  return walk.Add(AT_FDCWD, path.c_str(), 0) ? walk.bytes : kUnmeasurable;
}

DiskRoom MeasureRoom(const std::string& path) {
  struct statvfs disk = {};
  if (statvfs(path.c_str(), &disk) != 0) return {};
  const auto block = static_cast<int64_t>(disk.f_frsize);
  DiskRoom room;
  room.total = static_cast<int64_t>(disk.f_blocks) * block;
  room.available = static_cast<int64_t>(disk.f_bavail) * block;
  room.reserve = std::min(room.total / 10, kMaxDiskReserveBytes);
  return room;
}

int64_t PodDisk::Total() const {
  int64_t total = 0;
  for (const auto* sizes : {&volumes, &containers}) {
    for (const auto& [name, bytes] : *sizes) total = std::min(total + bytes, kUnmeasurable);
  }
  return total;
}

PodDisk MeasureDisk(const json::Value& pod, const std::string& data_dir) {
  PodDisk disk;
  const std::string dir = PodDir(data_dir, pod["metadata"]["uid"].Str());
  for (const json::Value& volume : pod["spec"]["volumes"].items()) {
    const std::string name = volume["name"].Str();
    if (IsOnDisk(volume)) disk.volumes[name] = DiskUsage(dir + "/volumes/" + name);
  }
  for (const json::Value& container : AllContainers(pod)) {
    const std::string name = container["name"].Str();
    disk.containers[name] = std::min(
        DiskUsage(dir + "/containers/" + name) + DiskUsage(PodLogDir(data_dir, pod) + "/" + name),
        kUnmeasurable);
  }
  return disk;
}

bool LimitsDisk(const json::Value& pod) {
  for (const json::Value& volume : pod["spec"]["volumes"].items()) {
    if (IsOnDisk(volume) && volume["emptyDir"].Has("sizeLimit")) return true;
  }
  for (const json::Value& container : AllContainers(pod)) {
    if (DiskLimit(container)) return true;
  }
  return false;
}

std::string DiskFault(const json::Value& pod, const PodDisk& disk) {
  for (const json::Value& volume : pod["spec"]["volumes"].items()) {
    const json::Value& text = volume["emptyDir"]["sizeLimit"];
    const auto limit = cluster::Quantity::FromJson(text);
    if (!IsOnDisk(volume) || !limit || limit->IsZero()) continue;
    if (Found(disk.volumes, volume["name"].AsString()) > limit->Units()) {
      return fmt::format("Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ",
                         volume["name"].AsString(), text.AsString());
    }
  }
  int64_t limits = 0;
  for (const json::Value& container : pod["spec"]["containers"].items())
    limits += DiskLimit(container).value_or(0);
  if (limits > 0 && disk.Total() > limits) {
    return fmt::format(
        "Pod ephemeral local storage usage exceeds the total limit of containers {}. ",
        Text(limits));
  }
  for (const json::Value& container : AllContainers(pod)) {
    const auto limit = DiskLimit(container);
    if (!limit || Found(disk.containers, container["name"].AsString()) <= *limit) continue;
    return fmt::format("Container {} exceeded its local ephemeral storage limit \"{}\". ",
                       container["name"].AsString(),
                       container["resources"]["limits"]["ephemeral-storage"].AsString());
  }
  return "";
}

std::string LowDiskMessage(const json::Value& pod, const PodDisk& disk, int64_t threshold,
                           int64_t available) {
  std::string out = fmt::format(
      "The node was low on resource: ephemeral-storage. Threshold quantity: {}, available: {}. ",
      Text(threshold), Text(available));
  for (const json::Value& container : pod["spec"]["containers"].items()) {
    const std::string name = container["name"].Str();
    out += fmt::format(
        "Container {} was using {}, request is 0, has larger consumption of ephemeral-storage. ",
        name, Text(Found(disk.containers, name)));
  }
  return out;
}

}  // namespace muster::agent
