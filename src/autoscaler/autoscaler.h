// src/autoscaler/autoscaler.h
//
// Autoscaler: asks for nodes when pods wait that no node takes (NodePools and NodeClaims of
// karpenter.sh/v1), and lets those go whose pods fit on others. Machines start and nodes join and
// go by node_claim_controller.h; empty nodes go by node_disruption_controller.h.
//
// Life cycle: construct before InformerSet::Start(), Start() once, destroy to stop.
// Thread:     the loop thread; plans are made on the pool.
// Invariants: what was asked for counts as there until it is seen: a plan is made only when the
//             claims of the one before are known. Nothing happens, and nothing is read, while there
//             is no NodePool.
// Cost:       while there is none: informers that others have as well. Else a plan kBatchIdle after
//             the last change that pods wait for, at most kBatchMost after the first.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autoscaler/scale_up_planner.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "loop/loop.h"

namespace muster::autoscaler {

// As Karpenter's.
inline constexpr Duration kBatchIdle = seconds(1);
inline constexpr Duration kBatchMost = seconds(10);
// A type whose machine never became a node is not tried again for so long.
inline constexpr Duration kAvoidedFor = minutes(30);

struct AutoscalerConfig {
  Catalog catalog;
  std::vector<std::string> scheduler_names;
  ScaleUpConfig planner;
};

class Autoscaler {
 public:
  // REQUIRES: everything passed by reference outlives it.
  Autoscaler(client::ApiClient& api, client::InformerSet& informers, Pool& pool,
             AutoscalerConfig config, Rng rng);
  ~Autoscaler();
  void Start();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::autoscaler
