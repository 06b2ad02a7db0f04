// src/scheduler/volume_rules.h
//
// VolumeRules: the filter rules about what pods claim (kube-scheduler's VolumeRestrictions,
// VolumeBinding and VolumeZone), and which volume a claim gets that waits for its first pod.
//
// A claim of a class with WaitForFirstConsumer is decided when a pod that names it is placed: it
// gets the smallest free volume that suits it and reaches the node or, if there is none, its
// provisioner is to make one there. The claim keeps it, and nobody else gets it, until the last pod
// that names the claim is taken back.
//
// Life cycle: made for one working copy of a snapshot, whose every change is told to it.
// Thread:     any, not shared.
// Invariants: a volume is chosen for one claim at a time. While Loosened() stays the same, its
//             rules opened no node.
// Cost:       nothing where no shape names a claim. A question costs O(claims of the pod), and per
//             claim to be decided O(free volumes of its class that do not name a host, or this
//             one).

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduler/rules.h"

namespace muster::scheduler {

class VolumeRules {
 public:
  explicit VolumeRules(const cluster::ClusterSnapshot& snapshot);

  // Some shape names a claim, and somebody keeps storage.
  bool active() const { return !asks_.empty(); }
  bool Asks(cluster::ShapeIndex shape) const { return Find(shape) != nullptr; }
  // What keeps such pods from every node, in kube-scheduler's words; "" if nothing does.
  std::string_view Fault(cluster::ShapeIndex shape) const;
  // All rules that exclude the node; upstream looks no further than the first plugin that does.
  // REQUIRES: HasNode(node).
  std::vector<Rule> Failed(cluster::ShapeIndex shape, cluster::NodeIndex node) const;
  // Somebody has a claim of theirs that one pod alone may have.
  bool IsInUse(cluster::ShapeIndex shape) const;
  // Both name such a claim.
  bool Contend(cluster::ShapeIndex a, cluster::ShapeIndex b) const;
  // Of a pod of the shape that was placed there: how its claims that waited get their volumes.
  std::vector<cluster::VolumeChoice> ChoicesOf(cluster::ShapeIndex shape,
                                               cluster::NodeIndex node) const;
  // It is chosen for some claim, and nobody has written that yet.
  bool IsTaken(const cluster::VolumeInfo& volume) const { return taken_.contains(&volume); }
  // Grows whenever nodes may have passed from excluded to allowed.
  uint64_t Loosened() const { return loosened_; }

  // The pod of that shape is placed on the node, or taken from it.
  void Count(cluster::ShapeIndex shape, cluster::NodeIndex node, int64_t sign);

 private:
  struct Claim {
    const cluster::ClaimInfo* info = nullptr;     // null: there is none
    const cluster::VolumeInfo* volume = nullptr;  // that it is bound to; null if that is gone
    bool delayed = false;
    bool exclusive = false;  // ReadWriteOncePod
    int64_t users = 0;       // placed pods that name it
    // Of delayed claims, once decided:
    const cluster::VolumeInfo* chosen = nullptr;
    std::string made_on;  // or the node where it is to be made
    bool kept = false;    // it was decided before this plan
    bool IsDecided() const { return chosen != nullptr || !made_on.empty(); }
  };
  struct Ask {
    std::vector<Claim*> claims;   // all
    std::vector<Claim*> delayed;  // of these, the smallest first
    std::string fault;
  };
  // Free volumes of a class, the smallest first.
  using Volumes = std::vector<const cluster::VolumeInfo*>;
  struct FreeVolumes {
    Volumes anywhere;
    std::unordered_map<std::string_view, Volumes> on_host;  // that reach these hosts alone
  };
  struct Choice {
    Claim* claim;
    const cluster::VolumeInfo* volume;  // null: to be made
  };

  const Ask* Find(cluster::ShapeIndex shape) const {
    return shape < asks_.size() && !asks_[shape].claims.empty() ? &asks_[shape] : nullptr;
  }
  void ListVolumes();
  Claim* ClaimOf(const cluster::ClaimKey& key);
  std::string FaultOf(const cluster::Shape& shape) const;
  // False if some claim of them finds no volume there; else what each undecided one gets.
  bool Choose(const Ask& ask, cluster::NodeIndex node, std::vector<Choice>* choices) const;
  // nullptr if no volume that exists will do.
  const cluster::VolumeInfo* FindVolume(const Claim& claim, const cluster::NodeLabels& node,
                                        const std::vector<Choice>& others) const;
  bool CanBeMade(const Claim& claim, const cluster::NodeLabels& node) const;

  const cluster::ClusterSnapshot& snapshot_;
  std::vector<Ask> asks_;  // by shape
  std::deque<Claim> claims_;
  std::map<cluster::ClaimKey, Claim*> claim_of_;
  std::map<cluster::ClaimKey, Volumes> reserved_;           // volumes that name a claim
  std::unordered_map<std::string_view, FreeVolumes> free_;  // by class
  std::unordered_set<const cluster::VolumeInfo*> taken_;    // chosen in this plan or before
  uint64_t loosened_ = 0;
};

}  // namespace muster::scheduler
