// src/scheduler/preemption.h
//
// PreemptionPlanner: which running pods have to go so that a unit that was refused fits, as
// kube-scheduler's DefaultPreemption decides it, for gangs in one transaction.
//
// Who:    units from high to low priority whose pods' preemptionPolicy is not Never. A victim's
//         priority (that of its PodGroup, if higher) is below the unit's, strictly. Pods that are
//         leaving anyway cost nothing: who fits once they are gone waits for them.
// Where:  for each pod that finds no room, the node with the fewest victims that violate a
//         PodDisruptionBudget, the lowest priority of its most important victim, the fewest broken
//         gangs, the smallest sum of priorities, the fewest victims, the most important victim that
//         started last, the lower index.
// Victims of a node: all that may go are taken off; if the pod fits then, they are put back while
//         it still fits: first those whose going violates a budget, each time the most important
//         first (higher priority, would break its gang, started earlier). A gang that does not stay
//         whole is decided about before its other members: none of them stays behind.
// Gangs:  members beyond the minima go alone; one whose loss would leave fewer takes all of its
//         gang with it, as one victim. A unit of several pods gets room for as many as it needs or
//         none, and then each victim is put back once more if all of them fit without it. Nobody
//         goes for minResources beyond what the pods ask for. A gang to which the same plan gave
//         pods does not go as a whole: they would stay behind.
//
// Life cycle: made after a plan's placements are done, on its working copy, which holds the units
//             that were given room as placed until it is destroyed; then it is as before.
// Thread:     any, not shared.
// Invariants: without any one of the victims' going the unit does not fit; a unit that cannot be
//             given room leaves no trace.
// Cost:       O(pods that may go) for the first pod of a shape and priority, then O(those on nodes
//             changed since); for pods that look at other pods, always the former.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cluster/snapshot.h"
#include "scheduler/gang_planner.h"
#include "scheduler/node_finder.h"
#include "scheduler/preemption_facts.h"
#include "scheduler/queue.h"
#include "scheduler/rules.h"

namespace muster::scheduler {

struct Nomination {
  size_t pod = 0;  // position in Unit::pods
  std::string node;
};

struct Victim {
  cluster::PlacementIndex placement = cluster::kNoIndex;
  uint64_t serial = 0;           // PlacedPod::serial
  bool violates_budget = false;  // there was no other way
};

struct Preemption {
  std::vector<Nomination> nominations;  // where the pods will go; at least as many as are needed
  std::vector<Victim> victims;          // none: it fits when those that are leaving are gone
};

class PreemptionPlanner {
 public:
  enum class Outcome : uint8_t {
    kRoom,
    kNoRoom,
    kUndecided,  // not looked for: nobody could go, or the bound on work was used up before
  };

  // `max_work` bounds the search, in running pods looked at; a unit that was begun is finished.
  PreemptionPlanner(NodeFinder& finder, const PreemptionFacts& facts, size_t max_work, Time now);
  ~PreemptionPlanner();
  PreemptionPlanner(const PreemptionPlanner&) = delete;
  PreemptionPlanner& operator=(const PreemptionPlanner&) = delete;

  // The plan has placed pods of this gang: it does not go as a whole now, nor do its sub-groups.
  void Grows(const Unit& unit);

  // On kRoom the unit counts as placed from now on. Without `may_evict` nobody goes that is not
  // leaving.
  // REQUIRES: the unit does not fit the working copy as it was; HasItsMembers(unit).
  Outcome MakeRoom(const Unit& unit, bool may_evict, Preemption& out);

 private:
  using PodId = uint32_t;  // running pods by placement, then those that were placed here

  struct Pod {
    cluster::Placement what;
    cluster::PlacementIndex at = cluster::kNoIndex;  // kNoIndex: taken off
    uint32_t gang = cluster::kNoIndex;
    size_t task = kNoTask;           // of its gang
    size_t sub_group = kNoSubGroup;  // likewise
    int64_t priority = 0;
    Time started{};
  };

  // Members of a gang that may go without breaking it; less than zero where some are missing.
  struct Surplus {
    int64_t members = 0;
    std::vector<int64_t> of_task;
    std::vector<int64_t> of_group;   // above the size; less than zero: it is not whole
    std::vector<int64_t> of_policy;  // whole sub-groups
    // False, and nothing is taken, if there is none.
    bool Take(const Pod& pod);
    // All pods of one sub-group.
    bool TakeGroup(const std::vector<Pod>& pods, const SubGroups& sub_groups);
    void Count(const Pod& pod, int64_t sign, const SubGroups& sub_groups);
  };

  // Pods that go together: one, those of a sub-group, or those without which their gang cannot be.
  struct Candidate {
    std::vector<PodId> pods;
    uint32_t gang = cluster::kNoIndex;
    bool breaks_gang = false;
    bool breaks_group = false;       // all pods of `sub_group`, but for those in other candidates
    size_t sub_group = kNoSubGroup;  // that all its pods are of
    int64_t priority = 0;
    Time started{};
    int64_t violations = 0;  // pods among them that violate a budget
    bool reprieved_first = false;
    int64_t rank = 0;  // among those that are put back: its priority or, of what breaks a gang or a
                       // sub-group, the highest of all of it
  };

  // What goes as a whole, and with it all of it that is in other candidates.
  struct Broken {
    std::vector<uint32_t> gangs;
    std::vector<std::pair<uint32_t, size_t>> groups;  // of a gang
    void Add(const Candidate& candidate);
    bool TakesAlong(const Candidate& candidate) const;
  };

  // In the order of preference.
  struct Cost {
    int64_t violations = 0;
    int64_t highest_priority = 0;
    int64_t broken_gangs = 0;
    int64_t priority_sum = 0;
    int64_t victims = 0;
    int64_t age = 0;  // of the most important victim that started first; smaller: younger
    cluster::NodeIndex node = cluster::kNoIndex;
    auto operator<=>(const Cost&) const = default;
  };
  struct Choice {
    Cost cost;
    std::vector<Candidate> victims;
  };

  struct Change {
    PodId pod;
    bool placed;  // else taken off
    bool counts;  // as an eviction, or as taking one back
  };

  // The nodes for one shape and priority.
  struct Ranking {
    NodeFilter filter;
    bool scanned = false;
    size_t seen = 0;                              // of changes_
    std::vector<std::pair<Cost, uint64_t>> heap;  // with the node's version; cheapest first
  };
  // Shape, identity (if it matters), priority, own gang.
  using RankingKey = std::tuple<cluster::ShapeIndex, cluster::IdentityIndex, int64_t, std::string>;

  // The unit's pods that are placed, by position in Unit::pods.
  using Places = std::map<size_t, PodId>;

  void ReadFacts();
  // Changes of the working copy, undone by RollBack().
  void TakeOff(PodId id, bool counts);
  void PutBack(PodId id, bool counts);
  void Count(PodId id, int64_t sign);
  PodId Place(const QueuedPod& pod, cluster::NodeIndex node);
  void RollBack(size_t changes);
  void NoteChange(cluster::NodeIndex node);
  void NoteDependents();

  const std::vector<size_t>& BudgetsOf(PodId id);
  std::vector<Candidate> CandidatesOn(cluster::NodeIndex node, const Unit& unit);
  // Of the gang's sub-groups with pods in `rest` those that it can do without, each whole but for
  // pods in `others`, and takes their pods from `rest`.
  std::vector<Candidate> SubGroupCandidates(int64_t unit_priority, const std::set<PodId>& others,
                                            Surplus left, std::vector<PodId>& rest) const;
  void AddGangCandidates(std::vector<PodId> here, int64_t unit_priority,
                         std::vector<Candidate>& out);
  Candidate MakeCandidate(std::vector<PodId> pods, bool breaks_gang) const;
  static bool IsMoreImportant(const Candidate& a, const Candidate& b);
  void CountViolations(std::vector<Candidate>& candidates);
  static void SortToPutBack(std::vector<Candidate>& candidates);
  Cost CostOf(const std::vector<Candidate>& victims, cluster::NodeIndex node) const;
  std::optional<Choice> Try(const Unit& unit, const QueuedPod& pod, cluster::NodeIndex node);

  Ranking& RankingOf(const Unit& unit, const QueuedPod& pod);
  void Consider(Ranking& ranking, const Unit& unit, const QueuedPod& pod, cluster::NodeIndex node);
  cluster::NodeIndex BestNode(const Unit& unit, const QueuedPod& pod);

  void Adopt(const GangAttempt& attempt, Places& places);
  bool PlaceOneMore(const Unit& unit, size_t position, Places& places,
                    std::vector<Candidate>& victims);
  static Lack LackOf(const Unit& unit, const Places& places);
  void Reprieve(const Unit& unit, Places& places, std::vector<Candidate>& victims);

  NodeFinder& finder_;
  const PreemptionFacts& facts_;
  const Time now_;
  size_t work_left_;
  SearchBudget search_;
  bool searching_ = false;  // changes are about to be undone
  std::vector<Pod> pods_;
  std::vector<std::vector<PodId>> on_node_;
  std::vector<std::vector<PodId>> in_gang_;
  std::vector<bool> grows_;  // by gang
  std::vector<Surplus> surplus_;                                // by gang
  std::vector<int64_t> allowed_;                                // by budget
  std::vector<std::optional<std::vector<size_t>>> budgets_of_;  // by identity
  std::vector<Change> journal_;
  std::vector<cluster::NodeIndex> changes_;  // nodes, in the order in which they changed
  std::vector<uint64_t> version_;            // by node
  std::vector<uint32_t> dirty_gangs_;
  std::vector<size_t> dirty_budgets_;
  std::map<RankingKey, Ranking> rankings_;
};

}  // namespace muster::scheduler
