// src/scheduler/diagnosis.h
//
// Finds out why units do not fit and what would let them: the facts behind explain.h.
//
// Three questions, each answered by trying, never by guessing: which rules exclude which nodes now;
// would the unit fit if nothing else ran; which running jobs' end makes it fit. Units that ask for
// the same share one answer.
//
// Life cycle: made after a plan's placements are done, on its working copy; used for that plan's
// refused units.
// Thread:     any, not shared.
// Invariants: the working copy is as before after every call.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/explain.h"
#include "scheduler/gang_planner.h"
#include "scheduler/node_finder.h"
#include "scheduler/queue.h"

namespace muster::scheduler {

// Holders whose end is tried, per unit; those with the most come first.
inline constexpr size_t kMaxHoldersTried = 32;
static_assert(kMaxHoldersTried <= kMaxHoldersListed);

class Diagnosis {
 public:
  // `max_unblock_work` bounds the search for what would unblock units, in pods looked at.
  Diagnosis(NodeFinder& finder, size_t max_unblock_work);
  ~Diagnosis();

  // REQUIRES: the unit does not fit the working copy, or lacks members.
  Infeasible Explain(const Unit& unit);

 private:
  Infeasible Examine(const Unit& unit);
  Infeasible ExamineShortage(const Unit& unit, const Shortage& shortage, Infeasible out);
  void DescribeScarcity(const Unit& unit, const cluster::Shape& failed, Infeasible& out);
  void DescribeHolders(cluster::ResourceIndex resource, const std::vector<bool>& nodes,
                       Infeasible& out);
  bool FitsAlone(const Unit& unit);
  bool SomeNodeOffers(const Unit& unit) const;
  void SearchUnblocking(const Unit& unit, Infeasible& out);
  // False also when the bound on work is used up.
  bool FitsWithout(const Unit& unit, const std::vector<cluster::HolderIndex>& holders);

  NodeFinder& finder_;
  size_t work_left_;
  SearchBudget search_;  // for all attempts together
  std::map<std::string, Infeasible> by_demand_;
  // The cluster with nothing placed, made when first asked for.
  std::unique_ptr<cluster::ClusterSnapshot> empty_;
  std::unique_ptr<NodeFinder> empty_finder_;
  // Holders of the scarce resource on the nodes in question, as found by DescribeScarcity.
  std::vector<std::pair<cluster::HolderIndex, int64_t>> holding_;
};

}  // namespace muster::scheduler
