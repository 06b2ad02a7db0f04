#include "ray/cluster.h"

#include <algorithm>

#include <fmt/core.h>

namespace muster::ray {
namespace {

constexpr int64_t kNoMaximum = 2147483647;

WorkerGroup ParseGroup(const json::Value& spec) {
  WorkerGroup group;
  group.name = spec["groupName"].Str();
  group.replicas = spec["replicas"].AsInt(0);
  group.min_replicas = spec["minReplicas"].AsInt(0);
  group.max_replicas = spec["maxReplicas"].AsInt(kNoMaximum);
  group.suspend = spec["suspend"].AsBool();
  group.workers_to_delete = json::ToStrings(spec["scaleStrategy"]["workersToDelete"]);
  group.start_params = spec["rayStartParams"];
  group.pod_template = spec["template"];
  return group;
}

}  // namespace

int64_t WorkerGroup::Desired() const {
  if (suspend) return 0;
  return std::clamp<int64_t>(std::min(std::max(replicas, min_replicas), max_replicas), 0,
                             kMaxWorkersPerGroup);
}

const WorkerGroup* Cluster::Find(std::string_view group) const {
  const auto found = std::ranges::find(groups, group, &WorkerGroup::name);
  return found == groups.end() ? nullptr : &*found;
}

int64_t Cluster::DesiredWorkers() const {
  int64_t sum = 0;
  for (const WorkerGroup& group : groups) sum += group.Desired();
  return sum;
}

int64_t Cluster::MinMembers() const {
  int64_t sum = 1;
  for (const WorkerGroup& group : groups) {
    if (!group.suspend) sum += autoscaling ? group.min_replicas : group.Desired();
  }
  return sum;
}

std::string Cluster::HeadAddress() const {
  return fmt::format("{}.{}.svc.cluster.local", HeadServiceName(), ns);
}

std::string Cluster::ServiceAccountName() const {
  return head["template"]["spec"]["serviceAccountName"].Str(name);
}

Cluster ParseCluster(const json::Value& object) {
  Cluster cluster;
  const json::Value& spec = object["spec"];
  cluster.object = object;
  cluster.ns = object["metadata"]["namespace"].Str();
  cluster.name = object["metadata"]["name"].Str();
  cluster.uid = object["metadata"]["uid"].Str();
  cluster.head = spec["headGroupSpec"];
  for (const json::Value& group : spec["workerGroupSpecs"].items())
    cluster.groups.push_back(ParseGroup(group));
  cluster.autoscaling = spec["enableInTreeAutoscaling"].AsBool();
  cluster.suspend = spec["suspend"].AsBool();
  cluster.recreates = spec["upgradeStrategy"]["type"].AsString() == "Recreate";
  return cluster;
}

bool IsManagedElsewhere(const json::Value& object) {
  const std::string_view manager = object["spec"]["managedBy"].AsString();
  return !manager.empty() && manager != kManagedByUs;
}

bool IsHead(const json::Value& pod) {
  return pod["metadata"]["labels"][kNodeTypeLabel].AsString() == "head";
}

std::string_view GroupOf(const json::Value& pod) {
  return pod["metadata"]["labels"][kGroupLabel].AsString();
}

}  // namespace muster::ray
