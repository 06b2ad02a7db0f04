#include "autoscaler/offering.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "base/strings.h"
#include "cluster/interruption.h"
#include "cluster/packing/gpu_state.h"

namespace muster::autoscaler {
namespace {

using cluster::CapacityType;
using cluster::InstanceType;
using cluster::MicroUsd;

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kMaxPods = 110;
constexpr int64_t kStorageGib = 100;
constexpr char kRegion[] = "us-east-1";
constexpr char kZone[] = "us-east-1a";

int64_t ReservedMilliCpu(int64_t vcpus) {
  // In hundred-thousandths of a core, by core.
  int64_t reserved = 0;
  for (int64_t core = 0; core < vcpus; ++core)
    reserved += core == 0 ? 6'000 : core == 1 ? 1'000 : core < 4 ? 500 : 250;
  return (reserved + 99) / 100;
}

int64_t ReservedMemory() { return (255 + 11 * kMaxPods + 100) * kMib; }

json::Value Amounts(const InstanceType& type, bool allocatable) {
  const int64_t milli = type.vcpus * 1000 - (allocatable ? ReservedMilliCpu(type.vcpus) : 0);
  const int64_t memory =
      std::max<int64_t>(type.memory_bytes - (allocatable ? ReservedMemory() : 0), 0);
  json::Value out = json::Obj({{"cpu", cluster::AmountText(cluster::resource::kCpu, milli)},
                               {"memory", fmt::format("{}Ki", memory / 1024)},
                               {"ephemeral-storage", fmt::format("{}Gi", kStorageGib)},
                               {"pods", std::to_string(kMaxPods)}});
  if (type.gpus == 0) return out;
  return out.Set(std::string(cluster::resource::kNvidiaGpu), std::to_string(type.gpus))
      .Set(std::string(cluster::resource::kGpuMilli),
           std::to_string(int64_t{cluster::kWholeGpu} * type.gpus));
}

std::vector<cluster::Device> DevicesOf(const InstanceType& type, const std::string& node) {
  std::vector<cluster::Device> devices;
  for (int i = 0; i < type.gpus; ++i) {
    cluster::Device device;
    device.resource = cluster::resource::kNvidiaGpu;
    device.id = fmt::format("GPU-{}-{}", node, i);
    device.index = i;
    device.model = type.gpu_product;
    device.memory_bytes = type.gpu_memory_mib * kMib;
    devices.push_back(std::move(device));
  }
  return devices;
}

json::Value Condition(std::string_view type, std::string_view status, std::string_view reason,
                      Time now) {
  return json::Obj({{"type", type},
                    {"status", status},
                    {"reason", reason},
                    {"message", "simulated"},
                    {"lastHeartbeatTime", FormatTime(now)},
                    {"lastTransitionTime", FormatTime(now)}});
}

json::Value StatusOf(const InstanceType& type, const std::string& name, Time now) {
  const json::Value conditions =
      json::List({Condition("MemoryPressure", "False", "KubeletHasSufficientMemory", now),
                  Condition("DiskPressure", "False", "KubeletHasNoDiskPressure", now),
                  Condition("PIDPressure", "False", "KubeletHasSufficientPID", now),
                  Condition("Ready", "True", "KubeletReady", now)});
  return json::Obj(
      {{"capacity", CapacityOf(type)},
       {"allocatable", AllocatableOf(type)},
       {"conditions", conditions},
       {"addresses", json::List({json::Obj({{"type", "InternalIP"}, {"address", "127.0.0.1"}}),
                                 json::Obj({{"type", "Hostname"}, {"address", name}})})},
       {"nodeInfo", json::Obj({{"architecture", type.arch},
                               {"operatingSystem", "linux"},
                               {"osImage", "simulated"},
                               {"kubeletVersion", "v1.32.0"},
                               {"kubeProxyVersion", ""},
                               {"containerRuntimeVersion", "simulated"},
                               {"kernelVersion", ""},
                               {"machineID", ""},
                               {"systemUUID", ""},
                               {"bootID", ""}})}});
}

// What pods of these DaemonSets take of the node.
cluster::ResourceList TakenBy(const std::vector<Daemon>& daemons, const cluster::NodeInfo& node) {
  cluster::ResourceList taken;
  for (const Daemon& daemon : daemons) {
    const cluster::PodConstraints& pod = daemon.constraints;
    if (cluster::FirstUntolerated(node.taints, pod.tolerations) != nullptr) continue;
    if (cluster::Matches(pod.affinity, node.labels_view())) cluster::AddTo(taken, pod.requests);
  }
  return taken;
}

Offering MakeOffering(size_t position, const NodePool& pool, const InstanceType& type,
                      CapacityType capacity, const std::vector<Daemon>& daemons) {
  Offering offering;
  offering.pool = position;
  offering.type = type;
  offering.capacity = capacity;
  offering.price = type.Price(capacity);
  offering.has = cluster::ToResourceList(CapacityOf(type));
  cluster::AddTo(offering.has, {{std::string(kNodesResource), 1}});
  const std::string name = fmt::format("{}-{}-{}", pool.name, type.name, ToString(capacity));
  cluster::NodeInfo node = cluster::ToNodeInfo(NodeObject(pool, type, capacity, name, {}));
  node.uid = name;
  const cluster::ResourceList taken = TakenBy(daemons, node);
  for (auto& [resource, amount] : node.allocatable)
    amount = std::max<int64_t>(amount - cluster::AmountOf(taken, resource), 0);
  offering.node = std::make_shared<const cluster::NodeInfo>(std::move(node));
  return offering;
}

}  // namespace

json::Value CapacityOf(const InstanceType& type) { return Amounts(type, false); }

json::Value AllocatableOf(const InstanceType& type) { return Amounts(type, true); }

cluster::Labels LabelsOf(const NodePool& pool, const InstanceType& type, CapacityType capacity) {
  cluster::Labels labels = cluster::ToLabels(pool.labels);
  const std::string prefix = "karpenter.k8s.aws/instance-";
  const size_t dot = type.name.find('.');
  const std::string family = type.name.substr(0, dot);
  const size_t digit = family.find_first_of("0123456789");
  labels[std::string(kNodePoolLabel)] = pool.name;
  labels[std::string(kCapacityTypeLabel)] = ToString(capacity);
  labels[std::string(kInstanceTypeLabel)] = type.name;
  labels["kubernetes.io/arch"] = type.arch;
  labels["kubernetes.io/os"] = "linux";
  labels["topology.kubernetes.io/region"] = kRegion;
  labels["topology.kubernetes.io/zone"] = kZone;
  labels[prefix + "family"] = family;
  if (digit != family.npos) {
    labels[prefix + "category"] = family.substr(0, digit);
    labels[prefix + "generation"] = family.substr(digit, 1);
  }
  if (dot != type.name.npos) labels[prefix + "size"] = type.name.substr(dot + 1);
  labels[prefix + "cpu"] = std::to_string(type.vcpus);
  labels[prefix + "memory"] = std::to_string(type.memory_bytes / kMib);
  if (type.gpus == 0) return labels;
  labels[prefix + "gpu-name"] = type.gpu_name;
  labels[prefix + "gpu-manufacturer"] = "nvidia";
  labels[prefix + "gpu-count"] = std::to_string(type.gpus);
  labels[prefix + "gpu-memory"] = std::to_string(type.gpu_memory_mib);
  labels["nvidia.com/gpu.present"] = "true";
  labels["nvidia.com/gpu.product"] = type.gpu_product;
  labels["nvidia.com/gpu.count"] = std::to_string(type.gpus);
  labels["nvidia.com/gpu.memory"] = std::to_string(type.gpu_memory_mib);
  return labels;
}

json::Value NodeObject(const NodePool& pool, const InstanceType& type, CapacityType capacity,
                       const std::string& name, Time now) {
  json::Value labels = json::Obj();
  for (const auto& [key, value] : LabelsOf(pool, type, capacity)) labels = labels.Set(key, value);
  labels = labels.Set(std::string(cluster::kHostnameLabel), name)
               .Set(std::string(cluster::kSimulatedNodeLabel), "true");
  json::Value annotations = pool.annotations.IsObject() ? pool.annotations : json::Obj();
  annotations = annotations.Set(std::string(cluster::kDevicesAnnotation),
                                cluster::WriteNodeDevices(DevicesOf(type, name)));
  json::Value spec = json::Obj({{"providerID", "muster-simulated:///" + name}});
  if (!pool.taints.empty()) spec = spec.Set("taints", pool.taints);
  return json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "Node"},
       {"metadata", json::Obj({{"name", name}, {"labels", labels}, {"annotations", annotations}})},
       {"spec", spec},
       {"status", StatusOf(type, name, now)}});
}

Daemon ToDaemon(const json::Value& daemon_set) {
  return {cluster::ToPodInfo(daemon_set["spec"]["template"]).constraints};
}

std::vector<Offering> OfferingsOf(const std::vector<NodePool>& pools, const Catalog& catalog,
                                  const std::vector<Daemon>& daemons) {
  std::vector<Offering> out;
  for (size_t position = 0; position < pools.size(); ++position) {
    for (const InstanceType& type : catalog) {
      for (const CapacityType capacity : {CapacityType::kOnDemand, CapacityType::kSpot}) {
        if (type.Price(capacity) == 0) continue;
        if (!Allows(pools[position], LabelsOf(pools[position], type, capacity))) continue;
        out.push_back(MakeOffering(position, pools[position], type, capacity, daemons));
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [&pools](const Offering& a, const Offering& b) {
    return std::tuple(-pools[a.pool].weight, a.price, a.type.name) <
           std::tuple(-pools[b.pool].weight, b.price, b.type.name);
  });
  return out;
}

std::string TextOf(const Offering& offering) {
  return fmt::format("{} ({}, {} USD/h)", offering.type.name, ToString(offering.capacity),
                     cluster::UsdText(offering.price));
}

}  // namespace muster::autoscaler
