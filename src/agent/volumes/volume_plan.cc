#include "agent/volumes/volume_plan.h"
#include "agent/devices/device_plugins.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <set>

#include "agent/pod_workers/field_values.h"
#include "agent/runtime/files.h"
#include "agent/shim/shim.h"
#include "agent/volumes/atomic_files.h"
#include "agent/volumes/local_volumes.h"
#include "base/strings.h"
#include "cluster/quantity.h"

namespace muster::agent {
namespace {

constexpr int64_t kDefaultMode = 0644;

struct Context {
  const json::Value& pod;
  const PodInputs& inputs;
  const PodFacts& facts;
};

struct Keyed {
  std::string_view kind;  // "configmap", "secret": as in messages
  const std::map<std::string, json::Value>& objects;
};

// The files of one configMap or secret source: all keys, or the chosen items.
Status AddKeys(const Keyed& keyed, const json::Value& source, const std::string& name, int64_t mode,
               std::vector<VolumeFile>& files) {
  const bool optional = source["optional"].AsBool();
  const auto found = keyed.objects.find(name);
  if (found == keyed.objects.end()) {
    if (optional) return Status::Ok();
    return Error(Reason::kNotFound, "{} {:?} not found", keyed.kind, name);
  }
  std::map<std::string, std::string> contents;
  for (const json::Member& member : found->second["data"].members()) {
    if (keyed.kind == "configmap") {
      contents[member.first] = member.second.Str();
    } else if (auto decoded = Base64Decode(member.second.AsString())) {
      contents[member.first] = std::move(*decoded);
    }
  }
  for (const json::Member& member : found->second["binaryData"].members()) {
    if (auto decoded = Base64Decode(member.second.AsString()))
      contents[member.first] = std::move(*decoded);
  }
  if (source["items"].empty()) {
    for (auto& [key, data] : contents)
      files.push_back({key, std::move(data), static_cast<mode_t>(mode)});
    return Status::Ok();
  }
  for (const json::Value& item : source["items"].items()) {
    const auto content = contents.find(item["key"].Str());
    if (content == contents.end()) {
      if (optional) continue;
      return Error(Reason::kNotFound, "references non-existent {} key: {}",
                   keyed.kind == "secret" ? "secret" : "config", item["key"].AsString());
    }
    const auto item_mode = static_cast<mode_t>(item["mode"].AsInt(mode));
    files.push_back({item["path"].Str(), content->second, item_mode});
  }
  return Status::Ok();
}

Status AddDownward(const Context& context, const json::Value& source, int64_t mode,
                   std::vector<VolumeFile>& files) {
  for (const json::Value& item : source["items"].items()) {
    const auto item_mode = static_cast<mode_t>(item["mode"].AsInt(mode));
    Result<std::string> value = std::string();
    if (item.Has("fieldRef")) {
      value = FieldValue(context.pod, item["fieldRef"]["fieldPath"].AsString(), context.facts);
    } else {
      value = ResourceValue(context.pod, {}, item["resourceFieldRef"], context.facts);
    }
    if (!value) return Error(value.error());
    files.push_back({item["path"].Str(), std::move(*value), item_mode});
  }
  return Status::Ok();
}

Status AddToken(const Context& context, const json::Value& source, int64_t mode,
                std::vector<VolumeFile>& files) {
  const auto found = context.inputs.tokens.find(TokenNeedOf(source));
  if (found == context.inputs.tokens.end())
    return Error(Reason::kInternalError, "failed to fetch token: nobody asked for it");
  if (!found->second) return found->second.error().WithPrefix("failed to fetch token: ");
  files.push_back({source["path"].Str(), found->second->token, static_cast<mode_t>(mode)});
  return Status::Ok();
}

Status AddProjected(const Context& context, const json::Value& projected,
                    std::vector<VolumeFile>& files) {
  const int64_t mode = projected["defaultMode"].AsInt(kDefaultMode);
  const Keyed config_maps = {"configmap", context.inputs.config_maps};
  const Keyed secrets = {"secret", context.inputs.secrets};
  for (const json::Value& source : projected["sources"].items()) {
    if (source.Has("configMap")) {
      RETURN_IF_ERROR(AddKeys(config_maps, source["configMap"], source["configMap"]["name"].Str(),
                              mode, files));
    } else if (source.Has("secret")) {
      RETURN_IF_ERROR(
          AddKeys(secrets, source["secret"], source["secret"]["name"].Str(), mode, files));
    } else if (source.Has("downwardAPI")) {
      RETURN_IF_ERROR(AddDownward(context, source["downwardAPI"], mode, files));
    } else if (source.Has("serviceAccountToken")) {
      RETURN_IF_ERROR(AddToken(context, source["serviceAccountToken"], mode, files));
    } else {
      return Error(Reason::kInvalid, "projected source {} is not supported on this node",
                   source.members().empty() ? "(empty)" : source.members()[0].first);
    }
  }
  return Status::Ok();
}

// Of several sources that have a path, the last one is seen.
void KeepLast(std::vector<VolumeFile>& files) {
  std::set<std::string> seen;
  std::vector<VolumeFile> kept;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    if (seen.insert(file->path).second) kept.push_back(std::move(*file));
  }
  std::reverse(kept.begin(), kept.end());
  files = std::move(kept);
}

json::Value GroupField(const VolumePlan& plan) {
  return plan.group ? json::Value(int64_t{plan.group->gid}) : json::Value();
}

json::Value FilesVolume(const std::string& name, const std::vector<VolumeFile>& files,
                        const VolumePlan& plan) {
  json::Array list;
  uint64_t version = Hash64("");
  for (const VolumeFile& file : files) {
    version = Hash64(
        fmt::format("{}\n{}\n{}\n", file.path, static_cast<unsigned>(file.mode), file.data.size()),
        version);
    version = Hash64(file.data, version);
    list.push_back(json::Obj({{"path", file.path},
                              {"mode", static_cast<int64_t>(file.mode)},
                              {"data", Base64Encode(file.data)}}));
  }
  return json::Obj({{"name", name},
                    {"kind", "files"},
                    {"version", fmt::format("{:016x}", version)},
                    {"group", GroupField(plan)},
                    {"files", std::move(list)}});
}

// True if `volume` is one whose content the shim writes.
Result<bool> CollectFiles(const Context& context, const json::Value& volume,
                          std::vector<VolumeFile>& files) {
  const Keyed config_maps = {"configmap", context.inputs.config_maps};
  const Keyed secrets = {"secret", context.inputs.secrets};
  if (const json::Value* source = volume.Find("configMap")) {
    const int64_t mode = (*source)["defaultMode"].AsInt(kDefaultMode);
    RETURN_IF_ERROR(AddKeys(config_maps, *source, (*source)["name"].Str(), mode, files));
  } else if (const json::Value* secret = volume.Find("secret")) {
    const int64_t mode = (*secret)["defaultMode"].AsInt(kDefaultMode);
    RETURN_IF_ERROR(AddKeys(secrets, *secret, (*secret)["secretName"].Str(), mode, files));
  } else if (const json::Value* downward = volume.Find("downwardAPI")) {
    RETURN_IF_ERROR(
        AddDownward(context, *downward, (*downward)["defaultMode"].AsInt(kDefaultMode), files));
  } else if (const json::Value* projected = volume.Find("projected")) {
    RETURN_IF_ERROR(AddProjected(context, *projected, files));
    KeepLast(files);
  } else {
    return false;
  }
  return true;
}

Status PlanEmptyDir(const json::Value& volume, const std::string& name, const std::string& pod_dir,
                    VolumePlan& plan) {
  const json::Value& source = volume["emptyDir"];
  if (source["medium"].AsString() == "Memory") {
    int64_t bytes = 0;
    if (source.Has("sizeLimit")) {
      ASSIGN_OR_RETURN(const cluster::Quantity limit,
                       cluster::Quantity::FromJson(source["sizeLimit"]));
      bytes = limit.Units();
    }
    plan.shim_volumes = plan.shim_volumes.Append(json::Obj(
        {{"name", name}, {"kind", "memory"}, {"sizeBytes", bytes}, {"group", GroupField(plan)}}));
    plan.sources[name] = SandboxVolume(pod_dir, name);
    return Status::Ok();
  }
  plan.sources[name] = pod_dir + "/volumes/" + name;
  plan.directories.push_back(plan.sources[name]);
  return Status::Ok();
}

// `shown`: its name in messages.
void PlanNetworkVolume(NetworkVolume volume, const std::string& name, std::string shown,
                       const std::string& pod_dir, VolumePlan& plan) {
  volume.shown = std::move(shown);
  volume.target = fmt::format("{}/volumes/{}/{}", pod_dir, kNfsFolder, name);
  plan.sources[name] = volume.target;
  plan.network_volumes.push_back(std::move(volume));
}

std::string KindOf(const json::Value& volume) {
  for (const json::Member& member : volume.members()) {
    if (member.first != "name") return member.first;
  }
  return "emptyDir";
}

Status PlanVolume(const Context& context, const json::Value& volume, const std::string& pod_dir,
                  VolumePlan& plan) {
  const std::string name = volume["name"].Str();
  if (!IsFileName(name)) return Error(Reason::kInvalid, "volume name {:?} is no file name", name);
  if (volume.Has("hostPath")) {
    plan.host_paths.push_back({name, volume["hostPath"]["path"].Str(),
                               volume["hostPath"]["type"].Str(), name, "", false, false});
    plan.sources[name] = volume["hostPath"]["path"].Str();
    return Status::Ok();
  }
  if (const json::Value* nfs = volume.Find("nfs")) {
    const bool read_only = (*nfs)["readOnly"].AsBool();
    PlanNetworkVolume(NfsVolume((*nfs)["server"].Str(), (*nfs)["path"].AsString(), {}, read_only),
                      name, name, pod_dir, plan);
    if (read_only) plan.read_only.insert(name);
    return Status::Ok();
  }
  const std::string kind = KindOf(volume);
  if (kind == "emptyDir") return PlanEmptyDir(volume, name, pod_dir, plan);
  std::vector<VolumeFile> files;
  ASSIGN_OR_RETURN(const bool is_files, CollectFiles(context, volume, files));
  if (!is_files) {
    return Error(
        Reason::kInvalid,
        "volumes of kind {} are not supported on this node; use emptyDir, configMap, "
        "secret, downwardAPI, projected, hostPath, nfs, persistentVolumeClaim or ephemeral",
        kind);
  }
  plan.shim_volumes = plan.shim_volumes.Append(FilesVolume(name, files, plan));
  plan.read_only.insert(name);  // what is written there would be gone with the next change
  plan.sources[name] = SandboxVolume(pod_dir, name);
  return Status::Ok();
}

}  // namespace

bool HasFiles(const VolumePlan& plan) {
  const json::Array& volumes = plan.shim_volumes.items();
  return std::any_of(volumes.begin(), volumes.end(), [](const json::Value& volume) {
    return volume["kind"].AsString() == "files";
  });
}

namespace {

// Ok if all claims of the pod have led to a volume; else what the kubelet says after its wait.
Status CheckClaims(const PodInputs& inputs) {
  std::vector<std::string> names, faults;
  for (const auto& [name, claim] : inputs.claims) {
    if (claim) continue;
    names.push_back(name);
    faults.push_back(claim.error().message());
  }
  if (names.empty()) return Status::Ok();
  const std::string list = Join(names, " ");
  const std::string why = Join(faults, ", ");
  return Error(Reason::kNotFound,
               "Unable to attach or mount volumes: unmounted volumes=[{}], unattached volumes=[], "
               "failed to process volumes=[{}]: {}",
               list, list, faults.size() == 1 ? why : "[" + why + "]");
}

Status PlanClaim(const ClaimVolume& claim, const std::string& pod_dir, VolumePlan& plan) {
  if (!claim.fault.empty()) return Error(Reason::kInvalid, "{}", claim.fault);
  if (!IsFileName(claim.name))
    return Error(Reason::kInvalid, "volume name {:?} is no file name", claim.name);
  if (claim.read_only) plan.read_only.insert(claim.name);
  if (!claim.server.empty()) {
    PlanNetworkVolume(NfsVolume(claim.server, claim.path, claim.mount_options, claim.read_only),
                      claim.name, claim.volume, pod_dir, plan);
    return Status::Ok();
  }
  plan.host_paths.push_back(
      {claim.name, claim.path, claim.type, claim.volume, claim.folder, claim.local, claim.retain});
  plan.sources[claim.name] = claim.path;
  return Status::Ok();
}

}  // namespace

Result<VolumePlan> PlanVolumes(const json::Value& pod, const PodInputs& inputs,
                               const PodFacts& facts, const std::string& pod_dir) {
  VolumePlan plan;
  plan.group = VolumeGroupOf(pod);
  const Context context = {pod, inputs, facts};
  RETURN_IF_ERROR(CheckClaims(inputs));
  for (const json::Value& volume : pod["spec"]["volumes"].items()) {
    if (!ClaimOf(pod, volume).empty()) {
      const auto found = inputs.claims.find(volume["name"].Str());
      if (found == inputs.claims.end())
        return Error(Reason::kInternalError, "volume {} was not asked for",
                     volume["name"].AsString());
      RETURN_IF_ERROR(PlanClaim(*found->second, pod_dir, plan));
      continue;
    }
    RETURN_IF_ERROR(PlanVolume(context, volume, pod_dir, plan)
                        .WithPrefix(fmt::format("MountVolume.SetUp failed for volume \"{}\" : ",
                                                volume["name"].AsString())));
  }
  return plan;
}

namespace {

Status Expect(bool holds, const HostPathVolume& volume, std::string_view what) {
  if (holds) return Status::Ok();
  return Error(Reason::kNotFound, "hostPath type check failed: {} is not a {}", volume.path, what);
}

Status CheckHostPath(const HostPathVolume& volume) {
  const std::string& path = volume.path;
  if (path.empty() || path[0] != '/')
    return Error(Reason::kInvalid, "hostPath {:?} must be absolute", path);
  for (std::string_view part : Split(path, '/')) {
    if (part == "..") return Error(Reason::kInvalid, "hostPath {:?} must not contain '..'", path);
  }
  struct stat info = {};
  bool exists = stat(path.c_str(), &info) == 0;
  if (!exists && volume.type == "DirectoryOrCreate") {
    RETURN_IF_ERROR(MakeDirs(path));
  } else if (!exists && volume.type == "FileOrCreate") {
    RETURN_IF_ERROR(WriteFile(path, ""));
  } else if (!exists) {
    // As container runtimes do without a type: an absent path becomes a folder.
    if (!volume.type.empty())
      return Error(Reason::kNotFound, "hostPath type check failed: {} does not exist", path);
    RETURN_IF_ERROR(MakeDirs(path));
  }
  exists = stat(path.c_str(), &info) == 0;
  if (!exists) return SystemError("stat", path, errno);
  if (volume.type.starts_with("Directory"))
    return Expect(S_ISDIR(info.st_mode), volume, "directory");
  if (volume.type.starts_with("File")) return Expect(S_ISREG(info.st_mode), volume, "file");
  if (volume.type == "Socket") return Expect(S_ISSOCK(info.st_mode), volume, "socket file");
  if (volume.type == "CharDevice") return Expect(S_ISCHR(info.st_mode), volume, "character device");
  if (volume.type == "BlockDevice") return Expect(S_ISBLK(info.st_mode), volume, "block device");
  return Status::Ok();
}

std::string RealPath(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) == nullptr ? path : resolved;
}

bool IsInside(const std::string& path, const std::string& dir) {
  return path == dir || dir == "/" || path.starts_with(dir + "/");
}

}  // namespace

namespace {

// A volume that the node keeps itself, or that somebody made a PersistentVolume for by hand.
bool IsKeptByNode(const HostPathVolume& volume, const std::string& root) {
  return volume.local && IsInside(volume.path, root) && volume.path.size() > root.size() &&
         IsFileName(std::string_view(volume.path).substr(root.size() + 1));
}

std::string SetUpPrefix(const HostPathVolume& volume) {
  return fmt::format("MountVolume.SetUp failed for volume \"{}\" : ", volume.shown);
}

// A folder of the node's own is made here; another one has to be there.
Status PrepareLocal(const HostPathVolume& volume, const std::string& root) {
  if (!volume.folder.empty() && volume.path == root + "/" + volume.folder) {
    RETURN_IF_ERROR(MakeLocalVolume(root, volume.folder).WithPrefix(SetUpPrefix(volume)));
    // A pod that came before may know an older policy, which must not endanger the folder.
    return volume.retain ? RetainLocalVolume(root, volume.folder, true) : Status::Ok();
  }
  if (PathExists(volume.path)) return Status::Ok();
  return Error(Reason::kNotFound,
               "MountVolume.NewMounter initialization failed for volume \"{}\" : path {:?} does "
               "not exist",
               volume.shown, volume.path);
}

// What stock device plugins mount is this node's folder for them.
Status PreparePluginDir(HostPathVolume volume, const std::string& data_dir, VolumePlan& plan) {
  const std::string dir = PluginDir(data_dir);
  RETURN_IF_ERROR(MakeDirs(dir, 0750));
  volume.path = dir + volume.path.substr(kKubeletPluginDir.size());
  RETURN_IF_ERROR(CheckHostPath(volume).WithPrefix(SetUpPrefix(volume)));
  plan.sources[volume.name] = RealPath(volume.path);
  return Status::Ok();
}

Status PrepareHostPath(const HostPathVolume& volume, const std::string& data_dir,
                       VolumePlan& plan) {
  if (!volume.local && IsInside(volume.path, std::string(kKubeletPluginDir)))
    return PreparePluginDir(volume, data_dir, plan);
  const std::string prefix = SetUpPrefix(volume);
  const std::string data = RealPath(data_dir);
  const std::string root = LocalVolumesDir(data_dir);
  const bool kept = IsKeptByNode(volume, root);
  if (kept) RETURN_IF_ERROR(PrepareLocal(volume, root));
  const std::string real = RealPath(volume.path);
  // Before anything is made: a missing path below the data folder must not come into being.
  const bool inside = IsInside(volume.path, data_dir) || IsInside(real, data);
  if (inside && !(kept && real == RealPath(root) + volume.path.substr(root.size()))) {
    return Error(Reason::kInvalid,
                 "{}hostPath {} is inside muster's own data folder; choose another path", prefix,
                 volume.path);
  }
  if (volume.local && !kept) RETURN_IF_ERROR(PrepareLocal(volume, root));
  RETURN_IF_ERROR(CheckHostPath(volume).WithPrefix(prefix));
  plan.sources[volume.name] = RealPath(volume.path);
  if (IsInside(data, plan.sources[volume.name])) {
    const std::string& source = plan.sources[volume.name];
    plan.hidden[volume.name] = data.substr(source == "/" ? 1 : source.size() + 1);
  }
  return Status::Ok();
}

}  // namespace

Status PrepareVolumes(VolumePlan& plan, const std::string& data_dir) {
  for (const std::string& dir : plan.directories) {
    RETURN_IF_ERROR(MakeDirs(dir));
    if (chmod(dir.c_str(), 0777) != 0) return SystemError("chmod", dir, errno);
    if (plan.group) RETURN_IF_ERROR(SetVolumeGroup(dir, *plan.group, false));
  }
  for (const HostPathVolume& volume : plan.host_paths) {
    RETURN_IF_ERROR(PrepareHostPath(volume, data_dir, plan));
    if (plan.group && volume.local && !plan.read_only.contains(volume.name)) {
      RETURN_IF_ERROR(SetVolumeGroup(plan.sources[volume.name], *plan.group, false)
                          .WithPrefix(SetUpPrefix(volume) + "applyFSGroup failed: "));
    }
  }
  return Status::Ok();
}

Result<std::vector<ContainerMount>> ContainerMounts(const json::Value& container,
                                                    const VolumePlan& plan,
                                                    const EnvironmentMap& variables) {
  std::vector<ContainerMount> mounts;
  for (const json::Value& mount : container["volumeMounts"].items()) {
    const std::string name = mount["name"].Str();
    const auto source = plan.sources.find(name);
    if (source == plan.sources.end()) {
      return Error(Reason::kNotFound, "cannot find volume {:?} to mount into container {:?}", name,
                   container["name"].AsString());
    }
    ContainerMount out;
    out.source = source->second;
    out.target = mount["mountPath"].Str();
    if (!out.target.starts_with('/')) out.target = "/" + out.target;
    out.read_only = mount["readOnly"].AsBool() || plan.read_only.contains(name);
    out.sub_path = mount.Has("subPathExpr") ? Expand(mount["subPathExpr"].AsString(), variables)
                                            : mount["subPath"].Str();
    for (std::string_view part : Split(out.sub_path, '/')) {
      if (part == ".." || out.sub_path.starts_with('/')) {
        return Error(Reason::kInvalid, "subPath {:?} must be relative and must not contain '..'",
                     out.sub_path);
      }
    }
    out.resolved = std::any_of(plan.host_paths.begin(), plan.host_paths.end(),
                               [&](const HostPathVolume& volume) { return volume.name == name; });
    out.fixed = out.resolved && plan.read_only.contains(name);
    if (const auto hidden = plan.hidden.find(name); hidden != plan.hidden.end())
      out.hidden_below = hidden->second;
    mounts.push_back(std::move(out));
  }
  return mounts;
}

}  // namespace muster::agent
