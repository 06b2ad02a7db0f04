// src/scheduler/cluster_copy.h
//
// ClusterCopy: a cluster as the scheduler sees it, made from lists of the API instead of watches.
// `muster explain` plans on it; whoever may read nodes and pods gets the scheduler's own answer,
// wherever that scheduler runs.
//
// Life cycle: made once, from one look at the cluster.
// Thread:     any, not shared.

#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster_cache.h"
#include "json/value.h"
#include "scheduler/pending.h"
#include "scheduler/planner.h"
#include "scheduler/preemption_facts.h"
#include "scheduler/status_publisher.h"

namespace muster::scheduler {

// Work that a question about one unit may cost, as PlannerConfig::max_unblock_work.
inline constexpr size_t kMaxExplainWork = 20'000'000;

// List objects, or null where there are none to be had.
struct ClusterLists {
  json::Value nodes, pods, namespaces, priority_classes, disruption_budgets;
  std::array<json::Value, cluster::kGroupApis> pod_groups;
  // Null where the server has none; without claims what pods claim is no matter.
  json::Value claims, volumes, storage_classes;
};

// What a plan of everything that waits says of one unit.
struct UnitAnswer {
  bool waits = false;              // it is among what waits; else the rest is empty
  std::vector<std::string> nodes;  // where its pods would go now
  std::optional<Infeasible> infeasible;
};

class ClusterCopy {
 public:
  ClusterCopy(const ClusterLists& lists, const std::vector<std::string>& scheduler_names);

  // With the detail, and with whom it would preempt.
  UnitAnswer Ask(const UnitKey& unit) const;
  // As the scheduler's own plan asks about the rest (preemption_facts.h).
  PreemptionFacts Facts() const;

  cluster::ClusterCache cache;
  PendingPods pending;
  PriorityClasses priorities;
  std::vector<std::pair<std::string, json::Value>> budgets;  // namespace, PodDisruptionBudget
};

}  // namespace muster::scheduler
