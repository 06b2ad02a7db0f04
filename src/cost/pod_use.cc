#include "cost/pod_use.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cluster/cost_keys.h"
#include "cluster/device_shares.h"
#include "cluster/devices.h"
#include "cluster/resources.h"
#include "schema/pod_phase.h"

namespace muster::cost {
namespace {

constexpr size_t kMaxLabelBytes = 253;  // of a value; longer ones are cut
constexpr std::string_view kJobSetLabel = "jobset.sigs.k8s.io/jobset-name";
constexpr std::string_view kTemplateHashLabel = "pod-template-hash";

// Whom people know as the maker of the pod: of a Deployment not its ReplicaSet, of a JobSet not
// its Job.
std::string WorkloadOf(const json::Value& metadata) {
  const json::Value& labels = metadata["labels"];
  if (const std::string_view set = labels[kJobSetLabel].AsString(); !set.empty())
    return "jobset/" + std::string(set);
  for (const json::Value& owner : metadata["ownerReferences"].items()) {
    if (!owner["controller"].AsBool()) continue;
    const std::string name = owner["name"].Str();
    const std::string suffix = "-" + labels[kTemplateHashLabel].Str();
    if (owner["kind"].AsString() == "ReplicaSet" && suffix.size() > 1 && name.ends_with(suffix))
      return "deployment/" + name.substr(0, name.size() - suffix.size());
    return ToLower(owner["kind"].AsString()) + "/" + name;
  }
  return "pod/" + metadata["name"].Str();
}

std::string_view ValueOf(const json::Value& metadata, const std::string& key) {
  const std::string_view annotated = metadata["annotations"][key].AsString();
  return annotated.empty() ? metadata["labels"][key].AsString() : annotated;
}

std::map<std::string, std::string> LabelsOf(const json::Value& metadata,
                                            const json::Value& name_space,
                                            std::span<const std::string> keys) {
  std::map<std::string, std::string> labels;
  for (const std::string& key : keys) {
    std::string_view value = ValueOf(metadata, key);
    if (value.empty()) value = ValueOf(name_space["metadata"], key);
    if (!value.empty()) labels[key] = value.substr(0, kMaxLabelBytes);
  }
  return labels;
}

// When its last container ended; nullopt while the pod goes on. Where nobody told (its node was
// lost, or never started it), when it was last said how it is.
std::optional<Time> EndOf(const json::Value& status) {
  if (!schema::IsFinalPhase(status["phase"].AsString())) return std::nullopt;
  std::optional<Time> end;
  for (const json::Value& container : status["containerStatuses"].items()) {
    const auto finished =
        ParseTime(container.Path({"state", "terminated", "finishedAt"}).AsString());
    if (finished && (!end || *finished > *end)) end = finished;
  }
  if (end) return end;
  end = ParseTime(status["startTime"].AsString());
  for (const json::Value& condition : status["conditions"].items()) {
    const auto said = ParseTime(condition["lastTransitionTime"].AsString());
    if (said && end && *said > *end) end = said;
  }
  return end;
}

// The GPUs that the pod was given by name; false where nobody named any.
bool CountNamed(const json::Value& pod, const NodeFacts& node, int64_t shared_milli, PodUse& out) {
  std::set<std::string> ids;  // containers that start after each other have the same ones
  for (const auto& [container, lists] : cluster::PodDevices(pod)) {
    for (const auto& [resource, list] : lists) {
      for (const std::string& id : list)
        if (node.gpus.contains(std::string(cluster::GpuOf(id)))) ids.insert(id);
    }
  }
  for (const std::string& id : ids) {
    const NodeFacts::Gpu& gpu = node.gpus.at(std::string(cluster::GpuOf(id)));
    const bool is_share = cluster::GpuOf(id) != id;
    out.gpu_milli[gpu.model] += shared_milli > 0 ? shared_milli
                                : is_share       ? 1000 / std::max<int64_t>(gpu.shares, 1)
                                                 : 1000;
  }
  return !ids.empty();
}

void CountGpus(const json::Value& pod, const NodeFacts& node, const cluster::ResourceList& requests,
               PodUse& out) {
  const int64_t shared = cluster::AmountOf(requests, cluster::resource::kGpuMilli);
  const int64_t units = cluster::AmountOf(requests, cluster::resource::kNvidiaGpu) +
                        cluster::AmountOf(requests, "nvidia.com/gpu.shared");
  if ((shared == 0 && units == 0) || CountNamed(pod, node, shared, out)) return;
  const int64_t all = node.machine.GpuCount();
  if (all == 0) return;
  // Which ones nobody says: of each model as many as there are of it.
  const int64_t milli =
      shared + (node.gpu_units > 0 ? units * 1000 * all / node.gpu_units : units * 1000);
  for (const auto& [model, count] : node.machine.gpus)
    if (count > 0) out.gpu_milli[model] += milli * count / all;
}

}  // namespace

std::vector<std::string> CostKeys() {
  return {std::begin(cluster::kCostKeys), std::end(cluster::kCostKeys)};
}

const json::Fields& PodUseFields() {
  static const json::Fields fields = [] {
    json::Fields out =
        json::Fields{{"metadata", "labels"},
                     {"spec", "nodeName"},
                     {"spec", "overhead"},
                     {"spec", "containers", "name"},
                     {"spec", "containers", "resources"},
                     {"spec", "initContainers", "name"},
                     {"spec", "initContainers", "resources"},
                     {"spec", "initContainers", "restartPolicy"},
                     {"status", "phase"},
                     {"status", "startTime"},
                     {"status", "conditions"},
                     {"status", "containerStatuses", "state", "terminated", "finishedAt"}};
    for (const std::string_view key : cluster::kCostKeys)
      out.Add(json::Fields{{"metadata", "annotations", key}});
    return out.Add(cluster::PodDevicesFields());
  }();
  return fields;
}

const json::Fields& NamespaceUseFields() {
  static const json::Fields fields = [] {
    json::Fields out;
    for (const std::string_view key : cluster::kCostKeys)
      out.Add(json::Fields{{"metadata", "annotations", key}, {"metadata", "labels", key}});
    return out;
  }();
  return fields;
}

PodUse PodUseOf(const json::Value& pod, const NodeFacts& node, const json::Value& name_space,
                std::span<const std::string> keys) {
  const json::Value& metadata = pod["metadata"];
  PodUse out;
  out.ns = metadata["namespace"].Str();
  out.workload = WorkloadOf(metadata);
  out.labels = LabelsOf(metadata, name_space, keys);
  out.node_name = pod["spec"]["nodeName"].Str();
  out.from = ParseTime(pod["status"]["startTime"].AsString());
  out.to = EndOf(pod["status"]);
  const cluster::ResourceList requests = cluster::PodRequests(pod);
  out.cpu_milli = cluster::AmountOf(requests, cluster::resource::kCpu);
  out.memory_bytes = cluster::AmountOf(requests, cluster::resource::kMemory);
  CountGpus(pod, node, requests, out);
  return out;
}

}  // namespace muster::cost
