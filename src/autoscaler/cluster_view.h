// src/autoscaler/cluster_view.h
//
// The cluster as scaling up sees it, from lists of the API: with the nodes that are coming, without
// those that go. The autoscaler and `muster explain` ask the same question of it.
//
// Thread: any (pure).

#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "autoscaler/scale_up_planner.h"
#include "scheduler/cluster_copy.h"

namespace muster::autoscaler {

// A type that is not tried for a while: pool, instance type, capacity type.
using AvoidedType = std::tuple<std::string, std::string, cluster::CapacityType>;

struct ClusterView {
  scheduler::ClusterLists lists;
  std::vector<json::Value> pools, claims, daemon_sets;
  Catalog catalog;
  std::set<AvoidedType> avoided;
};

struct ScaleUpAnswer {
  std::vector<NodePool> pools;
  std::vector<Offering> offerings;
  std::vector<cluster::ResourceList> used;  // by pool, before the plan
  ScaleUp plan;
};

ScaleUpAnswer AskWhatToAdd(const ClusterView& view, const std::vector<std::string>& scheduler_names,
                           const ScaleUpConfig& config = {});

// What is added for the unit, or why nothing is: "NodePool gpu adds 2 x g5.xlarge (spot, 0.7042
// USD/h)"; "" if there is nothing to say: it fits, or is not looked at.
std::string TextFor(const ScaleUpAnswer& answer, const scheduler::UnitKey& unit);

}  // namespace muster::autoscaler
