// src/scheduler/pod_rules.h
//
// PodRules: the filter rules that look at other pods (host ports, inter-pod affinity and
// anti-affinity, topology spread) or at what pods claim (volume_rules.h), and the counts behind
// preferences about other pods (preferences.h), kept true while pods are placed and taken back.
//
// Each term is a Counter: how many pods it means, by topology domain. A counter is made when a pod
// first asks for it, from the pods that are placed then, and follows each placement from there on,
// so no question looks at pods. Pods of one shape that the same counters mean ask the same
// questions: they share a Look.
//
// Life cycle: made for one working copy of a snapshot, whose every change is told to it.
// Thread:     any, not shared.
// Invariants: a count is what a look at all placed pods would give. When Loosened() of a look stays
//             the same, its rules opened no node that no pod was placed on or taken from.
// Cost:       nothing where no shape has relations to pods or claims; else O(placements) once,
//             O(identities + nodes) per counter, O(counters that mean the pod) per placement,
//             O(terms) per node that is checked.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/rules.h"
#include "scheduler/volume_rules.h"

namespace muster::scheduler {

using LookIndex = uint32_t;

class PodRules {
 public:
  explicit PodRules(const cluster::ClusterSnapshot& snapshot);

  const cluster::ClusterSnapshot& snapshot() const { return snapshot_; }

  const VolumeRules& volumes() const { return volumes_; }

  // What a pod of this shape and identity looks at; kNoIndex: at no pods and no volumes.
  LookIndex LookOf(cluster::ShapeIndex shape, cluster::IdentityIndex identity);
  // The first rule that excludes the node. Upstream asks for ports before amounts and for the rest
  // after them. kNoIndex passes. REQUIRES: HasNode(node).
  Rule CheckPorts(LookIndex look, cluster::NodeIndex node) const;
  // Volumes first.
  Rule CheckTopology(LookIndex look, cluster::NodeIndex node) const;
  // Why a node that has room is excluded: kube-scheduler counts all faults of volumes, else one.
  std::vector<Rule> FailedRules(LookIndex look, cluster::NodeIndex node) const;
  // Grows whenever nodes may have passed from excluded to allowed other than the node of a change.
  uint64_t Loosened(LookIndex look) const;

  // The terms by which placed pods can keep a pod of this look away: its ports, its anti-affinity,
  // the anti-affinity of others, its spread, a claim that one pod alone may have.
  size_t TermCount(LookIndex look) const;
  // The node's domain if the term excludes it now, else kNoIndex. For ports a node is a domain, for
  // claims the cluster.
  uint32_t ExcludedDomain(LookIndex look, size_t term, cluster::NodeIndex node) const;
  // The domain in which the placed pod counts against the look, else kNoIndex.
  uint32_t CountsIn(LookIndex look, size_t term, const cluster::Placement& placement);

  // -- What a look prefers.

  // The nodes by the value of one label.
  struct Topology {
    std::vector<uint32_t> domain_of;  // by node; kNoIndex: the node has no such label
    std::vector<int64_t> nodes_in;    // by domain
  };
  // Each pod of `count` in a node's domain is worth `weight`.
  struct Pull {
    int64_t weight = 0;
    const Topology* topology = nullptr;
    const std::vector<int64_t>* count = nullptr;  // by domain
  };
  struct Spread {
    const cluster::SpreadConstraint* constraint = nullptr;
    const Topology* topology = nullptr;
    const std::vector<int64_t>* count = nullptr;
  };
  struct Preferred {
    std::vector<Pull> pulls;
    std::vector<Spread> spread;
    bool empty() const { return pulls.empty() && spread.empty(); }
  };
  // What it points to lives as long as this.
  Preferred PreferredOf(LookIndex look) const;
  // Grows whenever one of the counts changes.
  uint64_t Moved(LookIndex look) const;

  void Placed(const cluster::Placement& placement) { Count(placement, +1); }
  void Removed(const cluster::Placement& placement) { Count(placement, -1); }

 private:
  using CounterIndex = uint32_t;

  struct Counter {
    enum class Kind : uint8_t {
      kWanted,     // a node passes while the count of its domain is not zero
      kForbidden,  // ... while it is zero
      kSpread,     // ... while it is near enough to the smallest count of all domains
      kPull,       // excludes nothing
      kPreferredSpread,
    };
    Kind kind = Kind::kForbidden;
    // The pods meant: those that all of these select. None: the owners of the term, each counted
    // with its weight.
    std::vector<const cluster::PodSelector*> selectors;
    const Topology* topology = nullptr;
    std::vector<int64_t> count;  // by domain
    int64_t total = 0;
    uint64_t loosened = 0;
    uint64_t moved = 0;

    // Of the two kinds of spreading.
    const cluster::SpreadConstraint* spread = nullptr;
    std::vector<uint8_t> eligible;  // by node: counts at all
    // kSpread only.
    std::vector<int64_t> domains_with;  // domains of eligible nodes, by count
    int64_t domains = 0;
    size_t smallest = 0;  // count

    void Add(cluster::NodeIndex node, int64_t sign);
    bool Allows(cluster::NodeIndex node, bool counts_itself) const;  // kSpread
  };

  // The counters of a shape's own terms.
  struct Terms {
    bool known = false;
    std::vector<CounterIndex> affinity, anti_affinity, spread, preferred, preferred_spread;
  };

  struct Look {
    cluster::ShapeIndex shape;
    bool matches_own_affinity = false;
    std::vector<CounterIndex> affinity, anti_affinity, spread;
    std::vector<bool> counts_itself;     // by position in `spread`
    std::vector<CounterIndex> blockers;  // anti-affinity of others that means the pod
    std::vector<CounterIndex> pullers;   // preferences and affinity of others that mean the pod
    std::vector<CounterIndex> preferred, preferred_spread;
  };

  // A term by which its owners keep pods away that it means, or pull them near.
  struct Claim {
    const cluster::PodTerm* term;
    bool forbids;
    std::vector<std::pair<cluster::ShapeIndex, int64_t>> owners;  // with the weight of each
    CounterIndex counter = cluster::kNoIndex;                     // once a pod asked
  };

  struct Known {
    size_t asked = 0;                 // counters up to this one
    std::vector<CounterIndex> means;  // of these, those that mean the identity
    bool claims_known = false;
    std::vector<size_t> claims;  // that mean the identity
  };

  // By the numbers of TermCount(), without the ports.
  CounterIndex CounterOf(const Look& look, size_t term) const;
  Rule CheckPods(const Look& look, cluster::NodeIndex node) const;
  bool PortsCollide(const Look& look, const std::vector<cluster::HostPort>& taken) const;
  void MakeClaims();
  void Count(const cluster::Placement& placement, int64_t sign);
  const Topology& TopologyOf(const std::string& key);
  const Terms& TermsOf(cluster::ShapeIndex shape);
  CounterIndex NewCounter(Counter::Kind kind, const std::string& key,
                          std::vector<const cluster::PodSelector*> selectors);
  void CountPlaced(CounterIndex counter);
  std::vector<CounterIndex> CountSpread(Counter::Kind kind, const cluster::Shape& shape,
                                        const std::vector<cluster::SpreadConstraint>& constraints);
  void FindEligible(Counter& counter, const cluster::Shape& shape,
                    const std::vector<cluster::SpreadConstraint>& constraints);
  CounterIndex OwnersOf(Claim& claim);
  Known& KnownOf(cluster::IdentityIndex identity);
  bool Means(CounterIndex counter, cluster::IdentityIndex identity);
  const std::vector<size_t>& ClaimsOn(cluster::IdentityIndex identity);

  const cluster::ClusterSnapshot& snapshot_;
  VolumeRules volumes_;
  bool active_ = false;  // some shape has relations or claims
  std::map<std::string, Topology> topologies_;
  std::deque<Counter> counters_;
  std::vector<Terms> terms_;  // by shape
  std::vector<Claim> claims_;
  std::vector<std::vector<std::pair<size_t, int64_t>>> claims_of_;  // by shape, with weights
  std::vector<Known> known_;                                        // by identity
  std::vector<std::vector<cluster::NodeIndex>> on_by_identity_;     // of each placement, any order
  std::vector<std::vector<cluster::NodeIndex>> on_by_shape_;        // of shapes with claims
  std::vector<std::vector<cluster::HostPort>> ports_on_;            // by node
  std::deque<Look> looks_;
  std::unordered_map<uint64_t, LookIndex> look_of_;  // shape and identity
  std::map<std::tuple<cluster::ShapeIndex, std::vector<bool>, std::vector<CounterIndex>,
                      std::vector<CounterIndex>>,
           LookIndex>
      same_looks_;
};

}  // namespace muster::scheduler
