#include "cluster/pod_info.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"

namespace muster::cluster {

namespace {

PodPhase ToPhase(std::string_view text) {
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  if (text == "Unknown") return PodPhase::kUnknown;
  return PodPhase::kPending;
}

std::string HolderOf(const json::Value& metadata) {
  const std::string ns = metadata["namespace"].Str();
  for (const json::Value& owner : metadata["ownerReferences"].items()) {
    if (owner["controller"].AsBool())
      return ToLower(owner["kind"].AsString()) + " " + ns + "/" + owner["name"].Str();
  }
  return "pod " + ns + "/" + metadata["name"].Str();
}

int64_t Minimum(const json::Value& value, int64_t without) {
  return std::clamp<int64_t>(value.AsInt(without), 0, std::numeric_limits<int32_t>::max());
}

// Empty if `min_member` does not cover them.
std::vector<TaskMinimum> TaskMinimaOf(const json::Value& min_task_member, int64_t min_member) {
  std::vector<TaskMinimum> minima;
  int64_t sum = 0;
  for (const auto& [task, value] : min_task_member.members()) {
    const int64_t wanted = Minimum(value, 0);
    if (wanted == 0) continue;
    minima.push_back({task, wanted});
    sum += wanted;
  }
  if (sum > min_member) return {};
  std::sort(minima.begin(), minima.end(),
            [](const TaskMinimum& a, const TaskMinimum& b) { return a.task < b.task; });
  return minima;
}

std::vector<SubGroupPolicy> SubGroupPoliciesOf(const json::Value& policies) {
  std::vector<SubGroupPolicy> out;
  for (const json::Value& each : policies.items()) {
    SubGroupPolicy& policy = out.emplace_back();
    policy.name = each["name"].Str();
    policy.size = std::max<int64_t>(Minimum(each["subGroupSize"], 1), 1);
    policy.min_sub_groups = Minimum(each["minSubGroups"], 0);
    if (each.Has("labelSelector"))
      policy.selector = schema::LabelSelector::FromJson(each["labelSelector"])
                            .value_or(schema::LabelSelector::Nothing());
    for (const json::Value& key : each["matchLabelKeys"].items()) policy.keys.push_back(key.Str());
  }
  return out;
}

bool IsTermOfQuota(std::string_view name) {
  return name.starts_with("requests.") || name.starts_with("limits.") || name.starts_with("count/");
}

}  // namespace

std::string GroupOf(const json::Value& metadata) {
  const std::string_view annotated =
      metadata.Path({"annotations", kGroupNameAnnotation}).AsString();
  return std::string(annotated.empty() ? metadata.Path({"labels", kPodGroupLabel}).AsString()
                                       : annotated);
}

const json::Fields& PodInfoFields() {
  static const json::Fields fields =
      json::Fields{
          {"metadata", "annotations", kGroupNameAnnotation},
          {"metadata", "annotations", kTaskSpecAnnotation},
          {"metadata", "annotations", kGangSandboxAnnotation},
          {"metadata", "creationTimestamp"},
          {"spec", "schedulerName"},
          {"spec", "nodeName"},
          {"spec", "schedulingGates"},
          {"spec", "priority"},
          {"spec", "preemptionPolicy"},
          {"spec", "tolerations"},
          {"spec", "nodeSelector"},
          {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
          {"spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"},
          {"spec", "overhead"},
          {"spec", "containers", "name"},
          {"spec", "containers", "image"},
          {"spec", "containers", "resources"},
          {"spec", "initContainers", "name"},
          {"spec", "initContainers", "image"},
          {"spec", "initContainers", "resources"},
          {"status", "phase"},
          {"status", "startTime"},
          {"status", "nominatedNodeName"}}
          .Add(PodDevicesFields())
          .Add(PodRelationsFields())
          .Add(ClaimUseFields());
  return fields;
}

PodInfo ToPodInfo(const json::Value& pod) {
  const json::Value& metadata = pod["metadata"];
  const json::Value& spec = pod["spec"];
  PodInfo out;
  out.ns = metadata["namespace"].Str();
  out.name = metadata["name"].Str();
  out.uid = metadata["uid"].Str();
  out.scheduler_name = spec["schedulerName"].Str("default-scheduler");
  out.node_name = spec["nodeName"].Str();
  out.group = GroupOf(metadata);
  if (!out.group.empty()) out.task = metadata.Path({"annotations", kTaskSpecAnnotation}).Str();
  out.holder = HolderOf(metadata);
  out.phase = ToPhase(pod.Path({"status", "phase"}).AsString());
  out.deleting = metadata.Has("deletionTimestamp");
  out.gated = !spec["schedulingGates"].empty();
  out.priority = spec["priority"].AsInt();
  out.may_preempt = spec["preemptionPolicy"].AsString() != "Never";
  out.nominated_node = pod.Path({"status", "nominatedNodeName"}).Str();
  out.created = ParseTime(metadata["creationTimestamp"].AsString()).value_or(Time{});
  out.started = ParseTime(pod.Path({"status", "startTime"}).AsString()).value_or(Time{});
  out.constraints.requests = PodRequests(pod);
  out.constraints.affinity = ToNodeAffinity(spec);
  out.constraints.tolerations = ToTolerations(spec["tolerations"]);
  out.constraints.relations = ToPodRelations(pod);
  out.labels = ToPodLabels(metadata["labels"]);
  out.constraints.images = PodImages(spec);
  out.constraints.claims = ToClaimUses(pod);
  if (out.scheduler_name == kSpreadScheduler) {
    out.constraints.profile = Profile::kSpread;
    if (spec["topologySpreadConstraints"].empty())
      out.constraints.relations.preferred_spread = DefaultSpread({out.ns, out.labels});
  }
  out.assigned_devices = PodDevices(pod);
  return out;
}

const json::Fields& NodeInfoFields() {
  static const json::Fields fields{
      {"metadata", "labels"},    {"metadata", "annotations", kDevicesAnnotation},
      {"spec", "taints"},        {"spec", "unschedulable"},
      {"status", "allocatable"}, {"status", "capacity"},
      {"status", "images"}};
  return fields;
}

NodeInfo ToNodeInfo(const json::Value& node) {
  const json::Value& metadata = node["metadata"];
  NodeInfo out;
  out.name = metadata["name"].Str();
  out.uid = metadata["uid"].Str();
  out.labels = ToLabels(metadata["labels"]);
  if (const auto hostname = out.labels.find(kHostnameLabel); hostname != out.labels.end()) {
    out.hostname = hostname->second;
    out.has_hostname = true;
    out.labels.erase(hostname);
  }
  out.taints = ToTaints(node.Path({"spec", "taints"}));
  out.unschedulable = node.Path({"spec", "unschedulable"}).AsBool();
  out.allocatable = NodeAllocatable(node);
  out.devices = NodeDevices(node);
  out.images = NodeImages(node);
  return out;
}

const json::Fields& PodGroupInfoFields() {
  static const json::Fields fields{
      {"metadata", "creationTimestamp"}, {"spec", "minMember"},    {"spec", "minTaskMember"},
      {"spec", "subGroupPolicy"},        {"spec", "minResources"}, {"spec", "priorityClassName"}};
  return fields;
}

PodGroupInfo ToPodGroupInfo(const json::Value& pod_group, GroupApi api) {
  const json::Value& metadata = pod_group["metadata"];
  const json::Value& spec = pod_group["spec"];
  PodGroupInfo out;
  out.ns = metadata["namespace"].Str();
  out.name = metadata["name"].Str();
  out.uid = metadata["uid"].Str();
  out.api = api;
  out.min_member = Minimum(spec["minMember"], 1);
  out.min_task_member = TaskMinimaOf(spec["minTaskMember"], out.min_member);
  if (api == GroupApi::kVolcano)
    out.sub_group_policies = SubGroupPoliciesOf(spec["subGroupPolicy"]);
  out.min_resources = ToResourceList(spec["minResources"]);
  std::erase_if(out.min_resources, [](const auto& entry) { return IsTermOfQuota(entry.first); });
  out.priority_class = spec["priorityClassName"].Str();
  out.created = ParseTime(metadata["creationTimestamp"].AsString()).value_or(Time{});
  return out;
}

}  // namespace muster::cluster
