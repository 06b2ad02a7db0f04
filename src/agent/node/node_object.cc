#include "agent/node/node_object.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "agent/node/node_limitation.h"
#include "agent/runtime/files.h"
#include "agent/runtime/unique_fd.h"
#include "agent/volumes/local_volumes.h"
#include "base/strings.h"
#include "cluster/device_shares.h"
#include "cluster/packing/gpu_state.h"
#include "cluster/resources.h"
#include "gpu/labels.h"
#include "gpu/simulated_gpus.h"
#include "schema/conditions.h"

namespace muster::agent {
namespace {

std::string FirstLine(const std::string& path) {
  const auto text = ReadSmallFile(path, 64 * 1024);
  return text ? std::string(Trim(Split(*text, '\n')[0])) : std::string();
}

std::string OsImage() {
  const auto text = ReadSmallFile("/etc/os-release", 64 * 1024);
  if (!text) return "Linux";
  for (std::string_view line : Split(*text, '\n')) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    line.remove_prefix(12);
    if (line.size() >= 2 && line.front() == '"') line = line.substr(1, line.size() - 2);
    return std::string(line);
  }
  return "Linux";
}

std::string GoArchitecture(const std::string& machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return machine;
}

constexpr const char* kGpuCondition = "AcceleratedHardwareReady";
// Those that a node has at times: where one is absent, it does not hold.
constexpr std::string_view kOwnAtTimes[] = {kGpuCondition, kLimitsNotEnforced, kNoNamespaces,
                                            kNoOutsideNetwork};

json::Value Condition(const json::Value& before, const char* type, bool status,
                      std::string_view reason, std::string_view message, Time now) {
  const std::string_view truth = status ? "True" : "False";
  const json::Value& old = schema::FindCondition(before["conditions"], type);
  return json::Obj({{"type", type},
                    {"status", truth},
                    {"lastHeartbeatTime", FormatTime(now)},
                    {"lastTransitionTime", schema::TransitionTime(old, truth, now)},
                    {"reason", reason},
                    {"message", message}});
}

json::Value ReadyCondition(const NodeFacts& facts, const json::Value& before, Time now) {
  if (facts.fault_reason.empty())
    return Condition(before, "Ready", true, "KubeletReady", "kubelet is posting ready status", now);
  return Condition(before, "Ready", false, facts.fault_reason, facts.fault_message, now);
}

// Named as EKS' node monitoring names it, so that what repairs nodes there understands it.
json::Value GpuCondition(const NodeFacts& facts, const json::Value& before, Time now) {
  if (facts.gpu_fault_reason.empty()) {
    return Condition(before, kGpuCondition, true, "GPUsHealthy", "all GPUs of the node are healthy",
                     now);
  }
  return Condition(before, kGpuCondition, false, facts.gpu_fault_reason, facts.gpu_fault_message,
                   now);
}

std::vector<cluster::Device> AllDevices(const NodeFacts& facts) {
  std::vector<cluster::Device> out = facts.devices;
  out.insert(out.end(), facts.plugin_devices.begin(), facts.plugin_devices.end());
  return out;
}

json::Value Amounts(const NodeFacts& facts, bool with_unhealthy) {
  std::map<std::string, int> counts;
  bool sliced = false;
  for (const cluster::Device& device : facts.devices) {
    counts[device.resource] += with_unhealthy || device.unhealthy.empty() ? 1 : 0;
    sliced |= cluster::GpuOf(device.id) != device.id;
  }
  for (const cluster::Device& device : facts.plugin_devices)
    counts[device.resource] += with_unhealthy || device.unhealthy.empty() ? 1 : 0;
  json::Value out =
      json::Obj({{"cpu", std::to_string(facts.cpu_count)},
                 {"ephemeral-storage", fmt::format("{}Ki", facts.storage_bytes / 1024)},
                 {"memory", fmt::format("{}Ki", facts.memory_bytes / 1024)},
                 {"pods", std::to_string(facts.max_pods)}});
  for (const auto& [resource, count] : counts) {
    out = out.Set(resource, std::to_string(count));
    // Shares of both kinds on one GPU would be too many.
    if (resource == cluster::resource::kNvidiaGpu && !sliced) {
      out = out.Set(std::string(cluster::resource::kGpuMilli),
                    std::to_string(int64_t{cluster::kWholeGpu} * count));
    }
  }
  return out;
}

}  // namespace

NodeFacts GatherNodeFacts(const std::string& data_dir) {
  NodeFacts facts;
  facts.cpu_count = std::max<long>(sysconf(_SC_NPROCESSORS_ONLN), 1);
  struct sysinfo memory = {};
  if (sysinfo(&memory) == 0)
    facts.memory_bytes = static_cast<int64_t>(memory.totalram) * memory.mem_unit;
  struct statvfs disk = {};
  if (statvfs(data_dir.c_str(), &disk) == 0) {
    facts.storage_bytes = static_cast<int64_t>(disk.f_blocks) * static_cast<int64_t>(disk.f_frsize);
  }
  facts.machine = FirstLine("/sys/class/dmi/id/product_name");
  facts.machine_id = FirstLine("/etc/machine-id");
  facts.system_uuid = FirstLine("/sys/class/dmi/id/product_uuid");
  if (facts.system_uuid.empty()) facts.system_uuid = facts.machine_id;
  facts.boot_id = FirstLine("/proc/sys/kernel/random/boot_id");
  struct utsname names = {};
  if (uname(&names) == 0) {
    facts.kernel_version = names.release;
    facts.architecture = GoArchitecture(names.machine);
  }
  facts.os_image = OsImage();
  return facts;
}

std::string DefaultRouteAddress() {
  // Connecting a UDP socket only chooses a route; 192.0.2.1 (RFC 5737) is never reached.
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in remote = {};
  remote.sin_family = AF_INET;
  remote.sin_port = htons(9);
  remote.sin_addr.s_addr = htonl(0xC0000201);
  sockaddr_in local = {};
  socklen_t length = sizeof local;
  if (!fd.valid() || connect(fd.get(), reinterpret_cast<sockaddr*>(&remote), sizeof remote) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0) {
    return "";
  }
  char text[INET_ADDRSTRLEN] = {};
  return inet_ntop(AF_INET, &local.sin_addr, text, sizeof text) == nullptr ? "" : text;
}

std::vector<cluster::Device> SimulatedDevices(int count, const std::string& model) {
  std::vector<cluster::Device> devices;
  for (const gpu::Gpu& gpu : gpu::SimulatedGpus(count, model)) {
    devices.push_back({std::string(gpu::kGpuResource), gpu.uuid, gpu.index, gpu.model});
  }
  return devices;
}

json::Value NodeCapacity(const NodeFacts& facts) { return Amounts(facts, true); }

json::Value NodeAllocatable(const NodeFacts& facts) { return Amounts(facts, false); }

std::vector<std::string_view> GpuLabelNames() {
  std::vector<std::string_view> names = {"muster.dev/simulated-gpus"};
  for (const std::string_view name : gpu::AllNodeLabels()) names.push_back(name);
  return names;
}

json::Value NodeLabels(const NodeFacts& facts) {
  json::Value labels = json::Obj({{"kubernetes.io/hostname", facts.name},
                                  {"kubernetes.io/os", "linux"},
                                  {"kubernetes.io/arch", facts.architecture}});
  for (const auto& [name, value] : facts.gpu_labels.members()) labels = labels.Set(name, value);
  if (facts.devices.empty() || !facts.devices_simulated) return labels;
  labels = labels.Set("nvidia.com/gpu.product", gpu::SimulatedProductLabel(facts.devices[0].model));
  labels = labels.Set("nvidia.com/gpu.count", std::to_string(facts.devices.size()));
  return labels.Set("muster.dev/simulated-gpus", "true");
}

json::Value NodeAnnotations(const NodeFacts& facts) {
  const json::Value annotations = json::Obj(
      {{std::string(cluster::kDevicesAnnotation), cluster::WriteNodeDevices(AllDevices(facts))}});
  if (facts.local_volumes.empty()) return annotations;
  return annotations.Set(std::string(kLocalVolumesAnnotation), facts.local_volumes);
}

namespace {

// Upstream's four, after what this node does not keep.
json::Value Conditions(const NodeFacts& facts, const json::Value& before, Time now) {
  json::Array out;
  for (const NodeLimitation& limitation : facts.limitations) {
    out.push_back(Condition(before, limitation.condition.c_str(), true, limitation.reason,
                            limitation.Text(), now));
  }
  out.push_back(Condition(before, "MemoryPressure", false, "KubeletHasSufficientMemory",
                          "kubelet has sufficient memory available", now));
  out.push_back(facts.disk_pressure
                    ? Condition(before, "DiskPressure", true, "KubeletHasDiskPressure",
                                "kubelet has disk pressure", now)
                    : Condition(before, "DiskPressure", false, "KubeletHasNoDiskPressure",
                                "kubelet has no disk pressure", now));
  out.push_back(Condition(before, "PIDPressure", false, "KubeletHasSufficientPID",
                          "kubelet has sufficient PID available", now));
  out.push_back(ReadyCondition(facts, before, now));
  const bool real_gpus = !facts.devices.empty() && !facts.devices_simulated;
  if (real_gpus || !facts.gpu_fault_reason.empty()) out.push_back(GpuCondition(facts, before, now));
  // What others say of the node stays.
  const json::Value own(out);
  for (const json::Value& condition : before["conditions"].items()) {
    const std::string_view type = condition["type"].AsString();
    if (std::ranges::find(kOwnAtTimes, type) == std::end(kOwnAtTimes) &&
        schema::FindCondition(own, type).IsNull())
      out.push_back(condition);
  }
  return out;
}

}  // namespace

json::Value NodeStatus(const NodeFacts& facts, const json::Value& before, Time now) {
  return json::Obj(
      {{"capacity", NodeCapacity(facts)},
       {"allocatable", NodeAllocatable(facts)},
       {"conditions", Conditions(facts, before, now)},
       {"addresses", json::List({json::Obj({{"type", "InternalIP"}, {"address", facts.address}}),
                                 json::Obj({{"type", "Hostname"}, {"address", facts.name}})})},
       {"daemonEndpoints",
        json::Obj({{"kubeletEndpoint", json::Obj({{"Port", facts.kubelet_port}})}})},
       {"nodeInfo",
        json::Obj({{"machineID", facts.machine_id},
                   {"systemUUID", facts.system_uuid},
                   {"bootID", facts.boot_id},
                   {"kernelVersion", facts.kernel_version},
                   {"osImage", facts.os_image},
                   {"containerRuntimeVersion",
                    "muster://" + facts.version.substr(facts.version.starts_with("v") ? 1 : 0)},
                   {"kubeletVersion", facts.version},
                   {"kubeProxyVersion", facts.version},
                   {"operatingSystem", "linux"},
                   {"architecture", facts.architecture}})}});
}

json::Value NewNode(const NodeFacts& facts, Time now) {
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "Node"},
                    {"metadata", json::Obj({{"name", facts.name},
                                            {"labels", NodeLabels(facts)},
                                            {"annotations", NodeAnnotations(facts)}})},
                    {"spec", json::Obj({{"podCIDR", facts.pod_cidr},
                                        {"podCIDRs", json::List({facts.pod_cidr})}})},
                    {"status", NodeStatus(facts, {}, now)}});
}

json::Value NewLease(const std::string& node, const std::string& node_uid, Time now) {
  return json::Obj(
      {{"apiVersion", "coordination.k8s.io/v1"},
       {"kind", "Lease"},
       {"metadata", json::Obj({{"name", node},
                               {"namespace", "kube-node-lease"},
                               {"ownerReferences", json::List({json::Obj({{"apiVersion", "v1"},
                                                                          {"kind", "Node"},
                                                                          {"name", node},
                                                                          {"uid", node_uid}})})}})},
       {"spec", json::Obj({{"holderIdentity", node},
                           {"leaseDurationSeconds", 40},
                           {"renewTime", FormatMicroTime(now)}})}});
}

}  // namespace muster::agent
