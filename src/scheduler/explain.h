// src/scheduler/explain.h
//
// Why something waits, and what would change it. One fact sheet (Infeasible), three renderings: the
// sentence that the condition, the event and `muster explain` show, the detail that the latter
// shows below it, and JSON for programs (fields: docs/explain.md).
//
//   0/5 nodes are available: 2 node(s) had untolerated taint {k: v}, 3 Insufficient nvidia.com/gpu.
//   Waits for ...
//
// The part up to the first full stop is kube-scheduler's text, word for word (v1.32).
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cluster/resources.h"
#include "json/value.h"

namespace muster::scheduler {

// Nodes excluded for one reason. A node that lacks several resources is counted at each.
struct RuleCount {
  std::string reason;  // "Insufficient nvidia.com/gpu"
  int64_t nodes = 0;
  bool operator==(const RuleCount&) const = default;
};

struct Holding {
  std::string holder;  // "pytorchjob default/a"
  int64_t amount = 0;  // of Infeasible::resource
  bool operator==(const Holding&) const = default;
};

// Nodes of one kind (node_kinds.h).
struct NodeKind {
  std::string kind;  // "8 GPU H100"
  int64_t nodes = 0;
  std::vector<std::string> names;  // the first kMaxNodesListed
  std::vector<RuleCount> failed_by_rule;
  int64_t free = 0;  // of Infeasible::resource, on those that pass all other rules
  int64_t most_free_on_a_node = 0;
  bool operator==(const NodeKind&) const = default;
};

// Nodes that would have to be added.
struct MoreNodes {
  int64_t count = 1;
  std::string like;               // a node that is there; "" if none would do
  std::string kind;               // of that node
  cluster::ResourceList amounts;  // that they offer; without `like`, that must be free on each
  std::vector<std::pair<std::string, std::string>> labels;  // without `like`: that they must have
  bool operator==(const MoreNodes&) const = default;
};

inline constexpr size_t kMaxNodesListed = 5;   // names of nodes of one kind
inline constexpr size_t kMaxHoldersNamed = 5;  // in a text; JSON has the first kMaxHoldersListed
inline constexpr size_t kMaxHoldersListed = 50;

struct Infeasible {
  enum class Why : uint8_t {
    kNoFit,           // not enough room now
    kNeverFits,       // would not fit if nothing else ran
    kMembersMissing,  // fewer pods of the gang exist than minMember
    kGroupMissing,    // the pods name a PodGroup that does not exist
  };
  Why why = Why::kNoFit;

  // The rules, for the first pod that found no node.
  int64_t nodes = 0;
  std::vector<RuleCount> failed_by_rule;  // sorted as kube-scheduler sorts them

  // The gang; group is "" for a pod on its own.
  std::string group;
  int64_t min_member = 0;
  int64_t members = 0;       // that have a place or could get one
  int64_t held = 0;          // that exist beside them: gated, or left to another scheduler
  int64_t pods_waiting = 1;  // that are to be placed
  int64_t pods_needed = 1;   // of these, at least
  int64_t pods_fitting = 0;  // that would have fitted
  bool uniform = true;       // all waiting pods ask for the same amount of `resource`
  // The gang has started with so many pods, and what waits is above its minimum; 0: it has not.
  int64_t started_with = 0;
  // kMembersMissing: the task that lacks pods; "" if the gang as a whole does.
  std::string task;
  int64_t task_min_member = 0;
  int64_t task_members = 0;
  // Of a gang with sub-groups that are not whole: those of one policy.
  struct OpenSubGroups {
    std::string policy;       // "": the gang has none
    bool is_missing = false;  // kMembersMissing: pods of them
    std::string name;         // is_missing: one that lacks pods; "" if there are too few sub-groups
    int64_t there = 0;  // is_missing: pods of that one, or sub-groups; else sub-groups that fit
    int64_t wanted = 0;
    bool operator==(const OpenSubGroups&) const = default;
  };
  OpenSubGroups sub_groups;
  // What is short is what the PodGroup's minResources ask for, all of it in `wanted`.
  bool for_min_resources = false;

  // The scarcest resource among those that were insufficient; "" if no resource was.
  std::string resource;
  int64_t wanted_per_pod = 0;
  int64_t wanted = 0;   // of all pods that must be placed together
  int64_t free = 0;     // on the nodes that pass all other rules
  int64_t offered = 0;  // on the same nodes
  int64_t most_free_on_a_node = 0;
  // Room is made for it: where it is to go, the pods that leave are the last thing that it waits
  // for. Of these, those that have to leave because of it: "pod ns/name".
  bool room_is_made = false;
  std::vector<std::string> preempts;
  // It may evict nobody before then: its binding was refused after room had been made for it.
  std::optional<Time> evicts_after;
  std::string refusal;
  std::vector<Holding>
      holders;  // of `resource` on these nodes, largest first, at most kMaxHoldersListed
  int64_t holder_count = 0;  // all of them
  // Where whole GPUs are short: those that pods share on these nodes, and who has how many
  // thousandths of them, listed as holders are.
  int64_t shared_gpus = 0;
  std::vector<Holding> sharers;
  int64_t sharer_count = 0;

  // Its required affinity to other pods excludes nodes: what it wants near may not be there.
  bool wants_neighbours = false;
  // What the pod claims excludes all nodes alike, which are not looked at any further; "" if not.
  std::string claim_fault;
  // Which claims or volumes keep it from nodes, and what would change that: volume_hints.h.
  std::string volume_hint;
  // What no node can satisfy, or none does: affinity_faults.h. "" if that is not the cause.
  std::string affinity_fault;
  // Models of the devices of nodes that pass all other rules, where they name one.
  std::vector<std::string> models;

  // The detail, if it was asked for (PlannerConfig::detail).
  std::vector<NodeKind> kinds;             // all nodes
  std::vector<RuleCount> excluded_by_one;  // nodes that take the pod but for this one rule

  // Adding these makes it fit; what never fits would then fit if nothing else ran. Worked out for
  // what never fits, and with the detail.
  std::optional<MoreNodes> more_nodes;

  // The end of all of these makes it fit; empty if not worked out, or if nothing that runs would
  // help.
  std::vector<Holding> unblocked_by;

  bool operator==(const Infeasible&) const = default;
};

// It waits for those that leave, so nobody else has to end.
void RoomIsMade(Infeasible& infeasible);

// The whole message. Amounts of cpu and bytes are written as quantities.
std::string Explain(const Infeasible& infeasible);
// Lines that say more than the message; empty without the detail.
std::vector<std::string> DetailLines(const Infeasible& infeasible);
// Only the upstream sentence.
std::string NodesAvailableText(const Infeasible& infeasible);
json::Value ToJson(const Infeasible& infeasible);

}  // namespace muster::scheduler
