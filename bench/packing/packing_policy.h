// bench/packing/packing_policy.h
//
// PackingPolicy: what is compared, behind one face: nodes, and a choice for each pod that arrives.
//   muster    src/cluster/packing
//   fgd       least growth of fragments (Weng et al., ATC 2023), from its publication
//   bestfit   the least weighted cpu and GPU left
//   dotprod   the least product of what the pod wants and what the node has
//   random    any node
//   planner   src/scheduler, which asks the first one (planner_policy.h); its ties are fixed
// All but muster and planner score nodes in whole numbers from 0 to 100, as plugins of
// kube-scheduler do.
//
// Life cycle: made for one run. Thread: not shared.

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/rng.h"
#include "cluster/packing/gpu_packer.h"
#include "packing/openb_trace.h"

namespace muster::bench {

class PackingPolicy {
 public:
  virtual ~PackingPolicy() = default;
  // Places the pod; false if no node takes it.
  virtual bool Arrive(const cluster::GpuAsk& pod) = 0;
};

// `nodes` in the order that decides ties; with `ties` equals are drawn from instead. `choices` is
// for policies that draw. Null if there is no such policy, or not
// with such ties.
std::unique_ptr<PackingPolicy> MakePackingPolicy(const std::string& name, const OpenbTrace& trace,
                                                 std::vector<cluster::GpuState> nodes, Rng* ties,
                                                 Rng& choices);

}  // namespace muster::bench
