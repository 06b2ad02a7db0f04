// bench/packing/planner_policy.h
//
// PlannerPolicy: the production planner in the packing experiment. Nodes and pods are what the API
// would make of them: GPUs as devices, shares as muster.dev/gpu-milli, models as a label that pods
// name by node affinity, cpu and memory as they are; each arrival is a plan of its own
// (scheduler/planner.h). A pod that is refused is gone, as the experiment has it, so it is no part
// of the mix that the planner learns from: that of the pods that run.
//
// Life cycle: made for one run. Thread: not shared.

#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster_cache.h"
#include "packing/packing_policy.h"
#include "scheduler/planner.h"

namespace muster::bench {

class PlannerPolicy final : public PackingPolicy {
 public:
  // In the order that decides ties.
  explicit PlannerPolicy(const std::vector<cluster::GpuState>& nodes);
  bool Arrive(const cluster::GpuAsk& pod) override;

 private:
  cluster::ClusterCache cache_;
  scheduler::PlannerConfig config_;
  int64_t arrived_ = 0;
};

}  // namespace muster::bench
