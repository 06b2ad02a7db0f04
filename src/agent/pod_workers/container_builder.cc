#include "agent/pod_workers/container_builder.h"

#include <algorithm>
#include <utility>

#include "agent/devices/device_plugins.h"
#include "agent/images/image_files.h"
#include "agent/network/pod_files.h"
#include "agent/pod_workers/device_allocator.h"
#include "agent/pod_workers/environment.h"
#include "agent/pod_workers/gang_sandboxes.h"
#include "agent/pod_workers/pod_status.h"
#include "agent/runtime/process_runtime.h"
#include "base/strings.h"
#include "cluster/device_shares.h"
#include "cluster/quantity.h"

namespace muster::agent {
namespace {

// Amount of `resource` in limits or requests, in units or milli-units; 0 if absent.
int64_t Amount(const json::Value& container, const char* list, const char* resource, bool milli) {
  const auto quantity = cluster::Quantity::FromJson(container["resources"][list][resource]);
  if (!quantity) return 0;
  return milli ? quantity->Milli() : quantity->Units();
}

CgroupLimits ContainerLimits(const json::Value& container) {
  CgroupLimits limits;
  limits.memory_bytes = Amount(container, "limits", "memory", false);
  limits.cpu_limit_milli = Amount(container, "limits", "cpu", true);
  // 1 gives the smallest share, as for pods that request nothing.
  limits.cpu_request_milli = std::max<int64_t>(Amount(container, "requests", "cpu", true), 1);
  return limits;
}

std::vector<std::string> GpuIdsOf(const cluster::AssignedDevices& assigned,
                                  const std::string& container) {
  std::vector<std::string> ids;
  const auto lists = assigned.find(container);
  if (lists == assigned.end()) return ids;
  for (const auto& [resource, list] : lists->second) {
    if (!DevicePlugins::IsOfPlugin(resource)) ids.insert(ids.end(), list.begin(), list.end());
  }
  return ids;
}

// The container's own variables go before those of plugins, as with the kubelet.
Status TakeFromPlugins(const PluginAllocation& plugins, EnvironmentMap& variables,
                       ContainerSpec& spec) {
  for (const auto& [name, value] : plugins.environment) variables.try_emplace(name, value);
  for (const PluginAllocation::Mount& mount : plugins.mounts) {
    if (!mount.host_path.starts_with('/') || !mount.container_path.starts_with('/')) {
      return Error(Reason::kInvalid, "a device plugin mounts {:?} at {:?}: not absolute",
                   mount.host_path, mount.container_path);
    }
    spec.mounts.push_back(
        {.source = mount.host_path, .target = mount.container_path, .read_only = mount.read_only});
  }
  for (const PluginAllocation::DeviceNode& device : plugins.devices)
    spec.plugin_devices.push_back({device.host_path, device.container_path});
  return Status::Ok();
}

// What CUDA and container runtimes read, by UUID: numbers would shift where the devices of the gang
// are there, too. "void": no library shows all.
void OfferDevices(const ContainerBuildInput& input, EnvironmentMap& variables,
                  ContainerSpec& spec) {
  const std::vector<std::string> ids = GpuIdsOf(input.devices, spec.name);
  if (ids.empty()) {
    const bool any = std::ranges::any_of(
        input.node_devices.devices(),
        [](const cluster::Device& device) { return !DevicePlugins::IsOfPlugin(device.resource); });
    if (any) variables.try_emplace("NVIDIA_VISIBLE_DEVICES", "void");
    return;
  }
  const std::string gpus = Join(cluster::GpusOf(ids), ",");
  variables["NVIDIA_VISIBLE_DEVICES"] = gpus;
  variables.try_emplace("CUDA_VISIBLE_DEVICES", gpus);
  spec.devices = input.node_devices.FilesOf(input.devices, spec.name, input.gang_devices);
}

// The container's own setting, else the pod's.
const json::Value& Security(const json::Value& pod, const json::Value& container,
                            const char* field) {
  const json::Value& own = container["securityContext"][field];
  return own.IsNull() ? pod["spec"]["securityContext"][field] : own;
}

// Who the program is, as ContainerSpec::user. Invalid, in the kubelet's words, when it must not be
// root and is or could be.
Result<std::string> UserOf(const json::Value& pod, const json::Value& container,
                           const ImageConfig& image, bool machine) {
  const std::optional<int64_t> uid = Security(pod, container, "runAsUser").Int();
  const std::optional<int64_t> gid = Security(pod, container, "runAsGroup").Int();
  const std::string of_image = image.user.substr(0, image.user.find(':'));
  if (Security(pod, container, "runAsNonRoot").AsBool()) {
    const json::Value& meta = pod["metadata"];
    const std::string where = fmt::format("(pod: \"{}_{}({})\", container: {})",
                                          meta["name"].AsString(), meta["namespace"].AsString(),
                                          meta["uid"].AsString(), container["name"].AsString());
    if (uid && *uid == 0)
      return Error(Reason::kInvalid, "container's runAsUser breaks non-root policy {}", where);
    const std::optional<int64_t> number = of_image.empty() ? 0 : ParseInt(of_image);
    if (!uid && !number) {
      return Error(Reason::kInvalid,
                   "container has runAsNonRoot and image has non-numeric user ({}), cannot verify "
                   "user is non-root {}",
                   of_image, where);
    }
    if (!uid && *number == 0) {
      return Error(Reason::kInvalid, "container has runAsNonRoot and image will run as root {}",
                   where);
    }
  }
  if (!uid && !gid) return machine ? "" : image.user.empty() ? "0" : image.user;
  const std::string user = uid ? std::to_string(*uid) : of_image.empty() ? "0" : of_image;
  return gid ? fmt::format("{}:{}", user, *gid) : user;
}

}  // namespace

CgroupLimits PodLimits(const json::Value& pod) {
  CgroupLimits out;
  bool all_memory = true;
  bool all_cpu = true;
  for (const json::Value& container : pod["spec"]["containers"].items()) {
    const CgroupLimits limits = ContainerLimits(container);
    out.memory_bytes += limits.memory_bytes;
    out.cpu_limit_milli += limits.cpu_limit_milli;
    out.cpu_request_milli += limits.cpu_request_milli;
    all_memory = all_memory && limits.memory_bytes > 0;
    all_cpu = all_cpu && limits.cpu_limit_milli > 0;
  }
  for (const json::Value& container : pod["spec"]["initContainers"].items()) {
    const CgroupLimits limits = ContainerLimits(container);
    out.memory_bytes = std::max(out.memory_bytes, limits.memory_bytes);
    out.cpu_limit_milli = std::max(out.cpu_limit_milli, limits.cpu_limit_milli);
    all_memory = all_memory && limits.memory_bytes > 0;
    all_cpu = all_cpu && limits.cpu_limit_milli > 0;
  }
  if (!all_memory) out.memory_bytes = 0;
  if (!all_cpu) out.cpu_limit_milli = 0;
  return out;
}

int64_t PodMemoryLimit(const json::Value& pod) { return PodLimits(pod).memory_bytes; }

int OomScoreAdjust(const json::Value& pod, const json::Value& container,
                   int64_t node_memory_bytes) {
  const std::string qos = QosClass(pod);
  if (qos == "Guaranteed") return -997;
  if (qos == "BestEffort" || node_memory_bytes <= 0) return 1000;
  const int64_t request = Amount(container, "requests", "memory", false);
  const int64_t score = 1000 - 1000 * request / node_memory_bytes;
  return static_cast<int>(std::clamp<int64_t>(score, 3, 999));
}

std::string PodLogsDir(const std::string& data_dir) { return data_dir + "/logs/pods"; }

std::string PodLogDir(const std::string& data_dir, const json::Value& pod) {
  const json::Value& meta = pod["metadata"];
  return fmt::format("{}/{}_{}_{}", PodLogsDir(data_dir), meta["namespace"].AsString(),
                     meta["name"].AsString(), meta["uid"].AsString());
}

std::string ContainerLogPath(const std::string& data_dir, const json::Value& pod,
                             const std::string& container, int attempt) {
  return fmt::format("{}/{}/{}.log", PodLogDir(data_dir, pod), container, attempt);
}

Result<ContainerSpec> BuildContainerSpec(const ContainerBuildInput& input,
                                         const json::Value& container, int attempt) {
  const json::Value& pod = input.pod;
  ContainerSpec spec;
  spec.name = container["name"].Str();
  spec.attempt = attempt;
  ASSIGN_OR_RETURN(EnvironmentMap variables,
                   ContainerEnvironment(pod, container, input.inputs, input.facts));
  const bool machine = input.image == nullptr;
  const ImageConfig image = machine ? ImageConfig() : input.image->config;
  if (!machine) {
    spec.image_root = ImageRoot(input.data_dir, input.image->root);
    spec.image_name = input.image->root;
  }
  ASSIGN_OR_RETURN(spec.user, UserOf(pod, container, image, machine));
  const json::Value& pod_security = pod["spec"]["securityContext"];
  for (const json::Value& group : pod_security["supplementalGroups"].items())
    spec.groups.push_back(group.AsInt());
  if (const auto group = VolumeGroupOf(pod)) spec.groups.push_back(group->gid);
  spec.only_groups = pod_security["supplementalGroupsPolicy"].AsString() == "Strict";
  spec.arguments = ContainerArguments(container, variables, image);
  ASSIGN_OR_RETURN(const std::vector<ContainerMount> volumes,
                   ContainerMounts(container, input.plan, variables));
  OfferDevices(input, variables, spec);
  RETURN_IF_ERROR(TakeFromPlugins(input.plugins, variables, spec));
  const std::vector<ContainerMount> from_plugins = std::exchange(spec.mounts, {});
  // NCCL takes pods with different ones for different machines, and talks through sockets.
  if (const std::string gang = SharedGangOf(pod); !gang.empty())
    variables.try_emplace("NCCL_HOSTID", gang + "@" + input.facts.node_name);
  spec.environment = FinishEnvironment(std::move(variables), PodHostname(pod), image,
                                       spec.user.empty() ? "/root" : "");
  // First, so that a volume may lie in one. An image has no place for what the machine has mounted.
  for (const std::string& path : input.node_mounts) {
    if (machine)
      spec.mounts.push_back({.source = path, .target = path, .read_only = true, .resolved = true});
  }
  if (!machine && !spec.devices.empty()) RETURN_IF_ERROR(AddDriverFiles(input.driver_files, spec));
  spec.mounts.insert(spec.mounts.end(), from_plugins.begin(), from_plugins.end());
  spec.mounts.insert(spec.mounts.end(), volumes.begin(), volumes.end());
  spec.working_dir = container["workingDir"].Str(image.working_dir);
  spec.cgroup = PodCgroup(pod["metadata"]["uid"].Str()) + "/" + spec.name;
  spec.limits = ContainerLimits(container);
  spec.oom_score_adj = OomScoreAdjust(pod, container, input.node_memory_bytes);
  spec.log_path = ContainerLogPath(input.data_dir, pod, spec.name, attempt);
  spec.termination_message_path = container["terminationMessagePath"].Str("/dev/termination-log");
  spec.message_from_log =
      container["terminationMessagePolicy"].AsString() == "FallbackToLogsOnError";
  spec.share_pid_namespace = pod["spec"]["shareProcessNamespace"].AsBool();
  const json::Value& security = container["securityContext"];
  spec.read_only_root = security["readOnlyRootFilesystem"].AsBool();
  spec.no_new_privileges = !security["allowPrivilegeEscalation"].AsBool(true);
  ASSIGN_OR_RETURN(spec.capabilities,
                   ContainerCapabilities(json::ToStrings(security["capabilities"]["add"]),
                                         json::ToStrings(security["capabilities"]["drop"])));
  spec.tty = container["tty"].AsBool();
  return spec;
}

}  // namespace muster::agent
