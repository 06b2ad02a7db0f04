// src/autoscaler/node_pool.h
//
// A NodePool (karpenter.sh/v1) as the planners read it, and the names that Karpenter gives to
// labels, taints, conditions and reasons (kubernetes-sigs/karpenter pkg/apis/v1).
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "client/api_client.h"
#include "cluster/node_affinity.h"
#include "cluster/resources.h"
#include "json/value.h"

namespace muster::autoscaler {

inline const client::Resource kNodePools{"karpenter.sh", "v1", "nodepools"};
inline const client::Resource kNodeClaims{"karpenter.sh", "v1", "nodeclaims"};

inline constexpr std::string_view kNodePoolLabel = "karpenter.sh/nodepool";
inline constexpr std::string_view kCapacityTypeLabel = "karpenter.sh/capacity-type";
inline constexpr std::string_view kInstanceTypeLabel = "node.kubernetes.io/instance-type";
inline constexpr std::string_view kDoNotDisrupt = "karpenter.sh/do-not-disrupt";
inline constexpr std::string_view kDisruptedTaint = "karpenter.sh/disrupted";  // NoSchedule
// The value of that taint on a node that goes because its pods fit on others.
inline constexpr std::string_view kUnderutilized = "Underutilized";
inline constexpr std::string_view kTerminationFinalizer = "karpenter.sh/termination";

// Limits count nodes under this name.
inline constexpr std::string_view kNodesResource = "nodes";

struct Budget {
  std::vector<std::string> reasons;  // any if empty
  std::string nodes;                 // "3", "10%"
};

struct NodePool {
  std::string name, uid;
  json::Value labels, annotations, taints;  // of its nodes; null or as in the object
  json::Value requirements;                 // a list
  cluster::ResourceList limits;             // kNodesResource among them
  int64_t weight = 0;
  std::optional<Duration> consolidate_after;  // nullopt: never
  bool when_underutilized = true;
  std::vector<Budget> budgets;
};

NodePool ToNodePool(const json::Value& object);

// The requirements hold of these labels. A pool that says nothing of the capacity type wants nodes
// on demand, as in Karpenter.
bool Allows(const NodePool& pool, const cluster::Labels& labels);

// How many of `nodes` nodes may go at a time for this reason ("Empty", "Underutilized"): the least
// of the budgets. A percentage is rounded up, as in Karpenter.
int64_t MayGo(const NodePool& pool, std::string_view reason, int64_t nodes);

}  // namespace muster::autoscaler
