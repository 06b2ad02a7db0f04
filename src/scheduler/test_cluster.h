// src/scheduler/test_cluster.h
//
// TestCluster: a cluster in a few words, for tests and benchmarks of the planner.
//
//   TestCluster c;
//   c.AddNodes(4, {{"cpu", 8000}, {"nvidia.com/gpu", 8}});
//   c.AddGang("b", 4, 4, {{"nvidia.com/gpu", 1}});
//   c.Plan();   EXPECT_EQ(c.NodeOf("b-0"), "n0");

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster_cache.h"
#include "scheduler/pending.h"
#include "scheduler/planner.h"

namespace muster::scheduler {

class TestCluster {
 public:
  // Amounts as scheduling counts them (cpu in milli-cores). 110 pods unless said otherwise.
  // Extended resources get listed devices "<resource>-0", ...
  cluster::NodeInfo MakeNode(const std::string& name, cluster::ResourceList amounts) {
    cluster::NodeInfo node;
    node.name = name;
    node.uid = "uid-" + name;
    node.hostname = name;
    node.has_hostname = true;
    for (auto& [resource, amount] : amounts) cluster::AddTo(node.allocatable, {{resource, amount}});
    if (cluster::AmountOf(node.allocatable, "pods") == 0)
      cluster::AddTo(node.allocatable, {{"pods", 110}});
    for (const auto& [resource, amount] : node.allocatable) {
      if (!cluster::IsExtendedResource(resource)) continue;
      for (int64_t i = 0; i < amount; ++i) {
        node.devices.push_back({resource, resource + "-" + std::to_string(i), i, "Simulated"});
      }
    }
    return node;
  }
  // NVLinks between the node's devices at these positions.
  static void LinkDevices(cluster::NodeInfo& node,
                          const std::vector<std::pair<size_t, size_t>>& pairs) {
    for (const auto& [a, b] : pairs) {
      node.devices[a].links[node.devices[b].id] = 4;
      node.devices[b].links[node.devices[a].id] = 4;
    }
  }
  void AddNodes(int count, const cluster::ResourceList& amounts) {
    for (int i = 0; i < count; ++i)
      cache.UpsertNode(MakeNode("n" + std::to_string(next_node_++), amounts));
  }

  cluster::PodInfo MakePod(const std::string& name, const cluster::ResourceList& requests) {
    cluster::PodInfo pod;
    pod.ns = "default";
    pod.name = name;
    pod.uid = "uid-" + name;
    pod.scheduler_name = "default-scheduler";
    pod.holder = "pod default/" + name;
    pod.created = Time(seconds(1000 + next_pod_++));
    for (const auto& [resource, amount] : requests)
      cluster::AddTo(pod.constraints.requests, {{resource, amount}});
    cluster::AddTo(pod.constraints.requests, {{"pods", 1}});
    return pod;
  }
  void AddPod(cluster::PodInfo pod) {
    const cluster::PodKey key{pod.ns, pod.name};
    cache.UpsertPod(std::move(pod));
    const cluster::PodRecord* record = cache.FindPod(key);
    if (!record->IsPlaced()) pending[key] = record;
  }
  void AddPod(const std::string& name, const cluster::ResourceList& requests) {
    AddPod(MakePod(name, requests));
  }

  // Pods NAME-0, NAME-1, ... held by job NAME.
  void AddGang(const std::string& name, int64_t min_member, int pods,
               const cluster::ResourceList& requests, int64_t priority = 0) {
    cluster::PodGroupInfo group;
    group.ns = "default";
    group.name = name;
    group.min_member = min_member;
    group.created = Time(seconds(1000 + next_pod_));
    cache.UpsertGroup(group);
    for (int i = 0; i < pods; ++i)
      AddGangPod(name, name + "-" + std::to_string(i), requests, priority);
  }
  // Changes what the PodGroup asks for.
  template <class Change>
  void ChangeGroup(const std::string& name, Change change) {
    cluster::PodGroupInfo group = *cache.FindGroup({"default", name})->info();
    change(group);
    cache.UpsertGroup(std::move(group));
  }
  void AddGangPod(const std::string& gang, const std::string& name,
                  const cluster::ResourceList& requests, int64_t priority = 0,
                  const std::string& task = "") {
    cluster::PodInfo pod = MakePod(name, requests);
    pod.group = gang;
    pod.task = task;
    pod.holder = "pytorchjob default/" + gang;
    pod.priority = priority;
    AddPod(std::move(pod));
  }

  // A pod that runs on that node.
  cluster::PodInfo MakeRunning(const std::string& name, const std::string& node, int64_t priority,
                               const cluster::ResourceList& requests) {
    cluster::PodInfo pod = MakePod(name, requests);
    pod.node_name = node;
    pod.phase = cluster::PodPhase::kRunning;
    pod.started = pod.created;
    pod.priority = priority;
    return pod;
  }
  void AddRunning(const std::string& name, const std::string& node, int64_t priority,
                  const cluster::ResourceList& requests) {
    AddPod(MakeRunning(name, node, priority, requests));
  }
  void AddPreemptor(const std::string& name, int64_t priority,
                    const cluster::ResourceList& requests) {
    cluster::PodInfo pod = MakePod(name, requests);
    pod.priority = priority;
    AddPod(std::move(pod));
  }

  Queue MakeQueue() const { return BuildQueue(cache, pending, {}, {}); }

  // Plans, and takes the decisions over as the scheduler does. Returns how many pods were placed.
  size_t Plan() {
    queue = MakeQueue();
    for (Unit& unit : queue) {
      for (QueuedPod& pod : unit.pods)
        pod.nominated = cache.FindNode(cache.FindPod(pod.key)->info.nominated_node);
    }
    PreemptionFacts facts;
    if (PreemptionMatters(queue, cache)) facts = MakePreemptionFacts(cache, {});
    facts.budgets = budgets;
    result = scheduler::Plan(cache.snapshot(), queue, config, Time(seconds(2000)), facts);
    size_t placed = 0;
    for (const UnitPlan& unit : result.units) {
      for (const Assignment& assignment : unit.assignments) {
        const cluster::PodKey& pod = queue[unit.unit].pods[assignment.pod].key;
        if (!cache.Assume(pod, assignment.node, assignment.devices, assignment.volumes)) {
          ++refused;
          continue;
        }
        pending.erase(pod);
        ++placed;
      }
    }
    return placed;
  }
  void Remove(const std::string& pod) {
    cache.RemovePod({"default", pod});
    pending.erase({"default", pod});
  }

  std::string NodeOf(const std::string& pod) const {
    const cluster::PodRecord* record = cache.FindPod({"default", pod});
    return record == nullptr ? "gone" : record->assumed_node;
  }
  std::vector<size_t> DevicesOf(const std::string& pod) const {
    return cache.FindPod({"default", pod})->assumed_devices.Positions();
  }
  const UnitPlan& PlanOf(const std::string& unit) const {
    return *std::find_if(result.units.begin(), result.units.end(),
                         [&](const UnitPlan& plan) { return queue[plan.unit].name == unit; });
  }
  // The names of the pods that have to go for the unit, and where its pods are nominated.
  std::set<std::string> VictimsOf(const std::string& unit) const {
    std::set<std::string> names;
    for (const Victim& victim : PlanOf(unit).preemption.victims)
      names.insert(cache.FindPlaced(victim.placement, victim.serial)->info.name);
    return names;
  }
  std::map<std::string, std::string> NominationsOf(const std::string& unit) const {
    std::map<std::string, std::string> nodes;
    const UnitPlan& plan = PlanOf(unit);
    for (const Nomination& nomination : plan.preemption.nominations)
      nodes[queue[plan.unit].pods[nomination.pod].key.name] = nomination.node;
    return nodes;
  }
  // What the last plan says about the unit of that name; a default one if it has nothing to say.
  Infeasible WhyNot(const std::string& unit) const {
    for (const UnitPlan& plan : result.units) {
      if (queue[plan.unit].name == unit && plan.infeasible.has_value()) return *plan.infeasible;
    }
    return {};
  }
  std::string Message(const std::string& unit) const { return Explain(WhyNot(unit)); }

  cluster::ClusterCache cache;
  PendingPods pending;
  PlannerConfig config;
  std::vector<DisruptionBudget> budgets;
  Queue queue;
  PlanResult result;
  size_t refused = 0;  // decisions that the live snapshot did not take: always a bug here

 private:
  int next_node_ = 0;
  int next_pod_ = 0;
};

}  // namespace muster::scheduler
