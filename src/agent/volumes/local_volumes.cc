#include "agent/volumes/local_volumes.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "agent/runtime/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "cluster/node_affinity.h"

namespace muster::agent {
namespace {

// No volume's folder begins with a dot.
constexpr std::string_view kRemovedPrefix = ".removed-";
constexpr std::string_view kRetainedPrefix = ".retained-";
constexpr std::string_view kProvisionedPrefix = "pvc-";  // of the provisioner's volumes
constexpr std::string_view kNewPrefix = ".new-";

// By the volume's name: the folder's own may be as long as a file name may be.
std::string Beside(const std::string& root, std::string_view prefix, const std::string& folder) {
  const std::string volume = VolumeOfLocalFolder(folder);
  return fmt::format("{}/{}{}", root, prefix, volume.empty() ? folder : volume);
}

// Not below the root, which may be a disk of its own, or be moved as a whole.
std::string MadeMarks(const std::string& root) { return root + "-made"; }

std::string MadeMark(const std::string& root, const std::string& folder) {
  return Beside(MadeMarks(root), "", folder);
}

Status NoteMade(const std::string& root, const std::string& folder) {
  const std::string mark = MadeMark(root, folder);
  if (PathExists(mark)) return Status::Ok();
  RETURN_IF_ERROR(MakeDirs(MadeMarks(root), 0700));
  return WriteFile(mark, "", 0600);
}

Status CheckFolder(const std::string& root, const std::string& folder) {
  if (IsFileName(folder) && root.starts_with('/')) return Status::Ok();
  return Error(Reason::kInvalid, "{:?} is no folder of a volume", folder);
}

bool Contains(const json::Value& list, std::string_view text) {
  return std::ranges::any_of(list.items(),
                             [&](const json::Value& item) { return item.AsString() == text; });
}

}  // namespace

std::string LocalVolumesDir(const std::string& data_dir) { return data_dir + "/local-volumes"; }

std::string LocalVolumeFolder(const json::Value& volume) {
  const json::Value& claim = volume["spec"]["claimRef"];
  const std::string name = volume["metadata"]["name"].Str();
  if (name.empty() || claim["name"].AsString().empty() || claim["namespace"].AsString().empty())
    return "";
  std::string folder =
      fmt::format("{}_{}_{}", name, claim["namespace"].AsString(), claim["name"].AsString());
  if (folder.size() > NAME_MAX) folder = name;
  return IsFileName(folder) ? folder : "";
}

std::string VolumeOfLocalFolder(std::string_view folder) {
  const auto bars = std::ranges::count(folder, '_');
  if (bars == 0 && folder.starts_with(kProvisionedPrefix)) return std::string(folder);
  if (folder.starts_with('.') || bars != 2) return "";
  return std::string(folder.substr(0, folder.find('_')));
}

bool IsLocalPathVolume(const json::Value& volume, const std::string& path) {
  return volume["metadata"]["annotations"][kProvisionedByAnnotation].AsString() ==
             kLocalPathProvisioner &&
         volume["spec"]["local"]["path"].AsString() == path;
}

std::string HostOfVolume(const json::Value& volume) {
  const json::Value& terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
  if (terms.size() != 1) return "";
  for (const json::Value& each : terms.At(0)["matchExpressions"].items()) {
    if (each["key"].AsString() == cluster::kHostnameLabel && each["operator"].AsString() == "In" &&
        each["values"].size() == 1)
      return each["values"].At(0).Str();
  }
  return "";
}

bool IsRetained(const json::Value& volume) {
  return volume["spec"]["persistentVolumeReclaimPolicy"].AsString() == "Retain";
}

bool AwaitsRemoval(const json::Value& volume) {
  const json::Value& meta = volume["metadata"];
  return !meta["deletionTimestamp"].AsString().empty() &&
         Contains(meta["finalizers"], kLocalPathProvisioner) &&
         !Contains(meta["finalizers"], kVolumeProtection);
}

json::Value WithoutFinalizer(const json::Value& volume) {
  json::Array kept;
  for (const json::Value& finalizer : volume["metadata"]["finalizers"].items()) {
    if (finalizer.AsString() != kLocalPathProvisioner) kept.push_back(finalizer);
  }
  return json::Obj(
      {{"metadata", json::Obj({{"uid", volume["metadata"]["uid"]},
                               {"resourceVersion", volume["metadata"]["resourceVersion"]},
                               {"finalizers", std::move(kept)}})}});
}

const json::Fields& LocalVolumeFields() {
  static const json::Fields fields{
      {"spec", "nodeAffinity"}, {"spec", "claimRef"}, {"spec", "persistentVolumeReclaimPolicy"}};
  return fields;
}

std::vector<std::string> LocalVolumeFolders(const std::string& root) {
  std::vector<std::string> folders = ListDir(root);
  std::erase_if(folders, [&](const std::string& folder) {
    return VolumeOfLocalFolder(folder).empty() || PathExists(Beside(root, kRetainedPrefix, folder));
  });
  return folders;
}

// Its mode is right before it has its name: a crash in between leaves no folder that is closed.
Status MakeLocalVolume(const std::string& root, const std::string& folder) {
  RETURN_IF_ERROR(CheckFolder(root, folder));
  const std::string path = root + "/" + folder;
  // Asked for before the folder: another pod of the claim makes first that one, then its mark.
  const bool was_made = PathExists(MadeMark(root, folder));
  if (PathExists(path)) return NoteMade(root, folder);
  if (was_made) {
    return Error(Reason::kNotFound,
                 "{} is gone with what was in it: it was made for the first pod of its claim, and "
                 "is not made again. Put it back, or begin with an empty one: mkdir -m 777 {:?}",
                 path, path);
  }
  const std::string made = Beside(root, kNewPrefix, folder);
  RETURN_IF_ERROR(MakeDirs(root, 0700));
  RETURN_IF_ERROR(MakeDirs(made, 0700));
  if (chmod(made.c_str(), 0777) != 0) return SystemError("chmod", made, errno);
  if (rename(made.c_str(), path.c_str()) != 0) {
    // Another pod of the claim was faster.
    if (!PathExists(path)) return SystemError("rename", made, errno);
    RETURN_IF_ERROR(RemoveTree(made));
  }
  return NoteMade(root, folder);
}

Status RemoveLocalVolume(const std::string& root, const std::string& folder) {
  RETURN_IF_ERROR(CheckFolder(root, folder));
  const std::string removed = Beside(root, kRemovedPrefix, folder);
  RETURN_IF_ERROR(RemoveTree(removed));
  const std::string path = root + "/" + folder;
  if (rename(path.c_str(), removed.c_str()) != 0 && errno != ENOENT)
    return SystemError("rename", path, errno);
  RETURN_IF_ERROR(RemoveTree(removed));
  RETURN_IF_ERROR(RemoveTree(MadeMark(root, folder)));
  return RemoveTree(Beside(root, kRetainedPrefix, folder));
}

Status RetainLocalVolume(const std::string& root, const std::string& folder, bool retain) {
  RETURN_IF_ERROR(CheckFolder(root, folder));
  if (!retain) return RemoveTree(Beside(root, kRetainedPrefix, folder));
  if (!PathExists(root + "/" + folder)) return Status::Ok();
  return WriteFile(Beside(root, kRetainedPrefix, folder), "", 0600);
}

void SweepLocalVolumes(const std::string& root) {
  for (const std::string& name : ListDir(root)) {
    if (!name.starts_with(kRemovedPrefix) && !name.starts_with(kNewPrefix)) continue;
    const Status status = RemoveTree(root + "/" + name);
    if (!status.ok()) LOG_WARN("agent: sweep local volumes: {}", status.message());
  }
}

}  // namespace muster::agent
