// src/scheduler/diagnosis.h
//
// Finds out why units do not fit and what would let them: the facts behind explain.h.
//
// Three questions, each answered by trying, never by guessing: which rules exclude which nodes now;
// would the unit fit if nothing else ran; which running jobs' end makes it fit (unblocking.h).
// Units that ask for the same share one answer.
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
#include "scheduler/unblocking.h"

namespace muster::scheduler {

class Diagnosis {
 public:
  // `max_work` bounds the search for what would unblock units, in pods looked at, and as much again
  // for nodes that could be added. `detail`: also what only `muster explain` shows.
  Diagnosis(NodeFinder& finder, size_t max_work, bool detail);
  ~Diagnosis();

  // REQUIRES: the unit does not fit the working copy, or lacks members.
  Infeasible Explain(const Unit& unit);

 private:
  Infeasible Examine(const Unit& unit);
  // Adds to what was placed what fits of the sub-group of the first pod that was not; the position
  // of the pod that finds no node.
  size_t PlaceUpToFailure(const Unit& unit, GangAttempt& attempt);
  Infeasible ExamineShortage(const Unit& unit, const Shortage& shortage, Infeasible out);
  void DescribeScarcity(const Unit& unit, const cluster::Shape& failed, Infeasible& out);
  void DescribeHolders(cluster::ResourceIndex resource, const std::vector<bool>& nodes,
                       Infeasible& out);
  static int64_t ListLargest(const std::vector<int64_t>& held,
                             std::vector<std::pair<cluster::HolderIndex, int64_t>>& listed);
  void ListHolders(const std::vector<bool>& passes, cluster::ResourceIndex resource,
                   Infeasible& out);
  // `position` in Unit::pods: of a pod that found no node.
  void SearchUnblocking(const Unit& unit, size_t position, Infeasible& out);
  void AddDetail(const QueuedPod& pod, Infeasible& out);
  void AddMoreNodes(const Unit& unit, size_t position, const cluster::ClusterSnapshot& snapshot,
                    Infeasible& out);
  bool FitsAlone(const Unit& unit);
  bool SomeNodeOffers(const Unit& unit) const;

  NodeFinder& finder_;
  const bool detail_;
  size_t more_nodes_work_;
  Unblocking unblocking_;
  SearchBudget search_;  // of FitsAlone()
  std::map<std::string, Infeasible> by_demand_;
  // The cluster with nothing placed, made when first asked for.
  std::unique_ptr<cluster::ClusterSnapshot> empty_;
  std::unique_ptr<NodeFinder> empty_finder_;
  // Of the scarce resource on the nodes in question, as found by DescribeScarcity: all by holder,
  // and the holders with the most.
  std::vector<int64_t> held_;
  std::vector<std::pair<cluster::HolderIndex, int64_t>> holding_;
};

}  // namespace muster::scheduler
