// src/controllers/daemonset/daemon_ledger.h
//
// What a DaemonSet has on each node and what has to be done there, kept from pass to pass with its
// sums: only nodes of which something changed are looked at again.
//
// Life cycle: made for a set as its spec is; Put and Touch what is there, then what changes;
//             Update() before it is read.
// Thread:     the loop thread.
// Invariants: after Update() it is what a new ledger would be that was given the same nodes and
//             pods.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "client/informer.h"
#include "controllers/daemonset/daemon_pods.h"
#include "json/value.h"

namespace muster::controllers {

// Sums over nodes, those of the status first.
struct DaemonCounts {
  int64_t desired = 0, current = 0, misscheduled = 0, ready = 0, available = 0, updated = 0;
  int64_t unavailable = 0;  // nodes that count against the bound of a replacement
  void Add(const DaemonCounts& other, int64_t times);
};

// What one node wants, whatever the others do.
struct DaemonNodePlan {
  DaemonCounts counts;
  bool create = false;
  std::vector<json::Value> ends;  // pods that have to go
  std::vector<json::Value> over;  // those of them that ended by themselves
  // An old pod that serves: it is replaced when the bound allows.
  std::optional<json::Value> replaceable;
  std::optional<Time> look_again_at;
};

class DaemonLedger {
 public:
  explicit DaemonLedger(const json::Value& daemon_set);

  // The set is as it was when the ledger was made, but for its status.
  bool IsOf(const json::Value& daemon_set) const;

  // `pod`: its own, as it is now.
  void PutPod(const json::Value& pod);
  void RemovePod(const std::string& name);
  // The node came, went or changed.
  void Touch(const std::string& node) { touched_.insert(node); }

  // `hash`: of the revision of the present template.
  void Update(const client::Informer& nodes, const std::string& hash, Time now);

  const DaemonCounts& counts() const { return sums_; }
  bool HasPodOf(std::string_view hash) const { return hashes_.contains(hash); }
  // Nodes where something has to be done at once, and those with something replaceable, by name.
  const std::set<std::string>& acting() const { return acting_; }
  const std::set<std::string>& replaceable() const { return replaceable_; }
  const DaemonNodePlan& PlanOf(const std::string& node) const { return nodes_.at(node).plan; }
  std::optional<Time> look_again_at() const;

  // maxSurge or maxUnavailable of the update strategy, in nodes.
  int64_t Bound(const char* field, bool otherwise_one) const;

 private:
  struct NodeState {
    bool is_there = false;
    NodeVerdict verdict;
    // From old to new.
    std::map<std::pair<std::string, std::string>, json::Value> pods;  // (created, name)
    DaemonNodePlan plan;
  };
  struct Pair;

  void Judge(const std::string& name, NodeState& node, const client::Informer& nodes) const;
  void Replan(const std::string& name, NodeState& node, Time now);
  DaemonNodePlan MakePlan(const NodeState& node, Time now) const;
  Pair PairOf(const NodeState& node) const;
  void PlanReplacement(const NodeState& node, Time now, DaemonNodePlan& plan) const;
  void PlanReplacementBeside(const NodeState& node, Time now, DaemonNodePlan& plan) const;
  void CountStatus(const NodeState& node, Time now, DaemonNodePlan& plan) const;
  bool IsPresent(const json::Value& pod) const;
  bool IsAvailable(const json::Value& pod, Time now, DaemonNodePlan& plan) const;

  const json::Value set_;
  const json::Value pod_spec_;  // as nodes are judged by
  const Duration min_ready_;
  const bool goes_;  // the set is being deleted
  std::string hash_;
  bool surges_ = false;
  std::map<std::string, NodeState> nodes_;
  std::map<std::string, std::string> node_of_;          // pod -> node
  std::map<std::string, int64_t, std::less<>> hashes_;  // of pods
  std::set<std::string> touched_;
  std::set<std::pair<Time, std::string>> due_;  // nodes to look at again
  DaemonCounts sums_;
  std::set<std::string> acting_, replaceable_;
};

}  // namespace muster::controllers
