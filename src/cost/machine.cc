#include "cost/machine.h"

#include <algorithm>

#include "base/strings.h"
#include "cluster/device_shares.h"
#include "cluster/devices.h"
#include "cluster/resources.h"

namespace muster::cost {
namespace {

constexpr std::string_view kInstanceTypeLabel = "node.kubernetes.io/instance-type";
constexpr std::string_view kGpuCountLabel = "nvidia.com/gpu.count";
constexpr std::string_view kGpuProductLabel = "nvidia.com/gpu.product";

// The labels by which Karpenter, EKS, GKE and AKS mark machines that may be taken away.
struct SpotLabel {
  std::string_view name, value;
};
constexpr SpotLabel kSpotLabels[] = {
    {"karpenter.sh/capacity-type", "spot"},
    {"eks.amazonaws.com/capacityType", "spot"},
    {"cloud.google.com/gke-preemptible", "true"},
    {"cloud.google.com/gke-spot", "true"},
    {"kubernetes.azure.com/scalesetpriority", "spot"},
};

bool IsSpot(const json::Value& labels) {
  return std::any_of(std::begin(kSpotLabels), std::end(kSpotLabels), [&](const SpotLabel& label) {
    return EqualsIgnoreCase(labels[label.name].AsString(), label.value);
  });
}

bool IsGpu(std::string_view resource) {
  return resource == cluster::resource::kNvidiaGpu || resource == "nvidia.com/gpu.shared";
}

// Of a node that lists no devices: what the labels of GPU feature discovery say.
void CountByLabels(const json::Value& labels, NodeFacts& facts) {
  if (facts.gpu_units == 0) return;
  const int64_t count =
      ParseInt(labels[kGpuCountLabel].AsString()).value_or(0);  // without it no GPU is shared
  std::string model = labels[kGpuProductLabel].Str();
  if (model.ends_with("-SHARED")) model.resize(model.size() - std::string_view("-SHARED").size());
  facts.machine.gpus[model] = count > 0 ? count : facts.gpu_units;
}

}  // namespace

int64_t Machine::GpuCount() const {
  int64_t sum = 0;
  for (const auto& [model, count] : gpus) sum += count;
  return sum;
}

const json::Fields& NodeFactsFields() {
  static const json::Fields fields{{"metadata", "creationTimestamp"},
                                   {"metadata", "labels"},
                                   {"metadata", "annotations", kHourlyPriceAnnotation},
                                   {"metadata", "annotations", cluster::kDevicesAnnotation},
                                   {"status", "capacity"}};
  return fields;
}

NodeFacts NodeFactsOf(const json::Value& node) {
  const json::Value& metadata = node["metadata"];
  const json::Value& labels = metadata["labels"];
  NodeFacts facts;
  facts.name = metadata["name"].Str();
  facts.uid = metadata["uid"].Str();
  facts.created = ParseTime(metadata["creationTimestamp"].AsString()).value_or(Time{});
  facts.machine.instance_type = labels[kInstanceTypeLabel].Str();
  facts.machine.spot = IsSpot(labels);
  facts.machine.hourly_price = metadata.Path({"annotations", kHourlyPriceAnnotation}).Str();
  const cluster::ResourceList capacity = cluster::ToResourceList(node["status"]["capacity"]);
  facts.machine.cpu_milli = cluster::AmountOf(capacity, cluster::resource::kCpu);
  facts.machine.memory_bytes = cluster::AmountOf(capacity, cluster::resource::kMemory);
  for (const auto& [resource, amount] : capacity) facts.gpu_units += IsGpu(resource) ? amount : 0;
  for (const cluster::Device& device : cluster::NodeDevices(node)) {
    if (!IsGpu(device.resource)) continue;
    const auto [gpu, is_new] = facts.gpus.try_emplace(std::string(cluster::GpuOf(device.id)));
    if (!is_new) {
      ++gpu->second.shares;
      continue;
    }
    gpu->second.model = device.model;
    ++facts.machine.gpus[device.model];
  }
  if (facts.gpus.empty()) CountByLabels(labels, facts);
  return facts;
}

json::Value ToJson(const Machine& machine) {
  json::Value out =
      json::Obj({{"cpuMilli", machine.cpu_milli}, {"memoryBytes", machine.memory_bytes}});
  if (!machine.instance_type.empty())
    out = std::move(out).Set("instanceType", machine.instance_type);
  if (machine.spot) out = std::move(out).Set("spot", true);
  if (!machine.hourly_price.empty()) out = std::move(out).Set("hourlyPrice", machine.hourly_price);
  json::Object gpus;
  for (const auto& [model, count] : machine.gpus) gpus.emplace_back(model, count);
  if (!gpus.empty()) out = std::move(out).Set("gpus", std::move(gpus));
  return out;
}

Machine MachineFromJson(const json::Value& value) {
  Machine machine;
  machine.instance_type = value["instanceType"].Str();
  machine.spot = value["spot"].AsBool();
  machine.hourly_price = value["hourlyPrice"].Str();
  machine.cpu_milli = std::max<int64_t>(value["cpuMilli"].AsInt(), 0);
  machine.memory_bytes = std::max<int64_t>(value["memoryBytes"].AsInt(), 0);
  for (const auto& [model, count] : value["gpus"].members())
    machine.gpus[model] = std::max<int64_t>(count.AsInt(), 0);
  return machine;
}

}  // namespace muster::cost
