#include "scheduler/volume_hints.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/core.h>

#include "base/strings.h"
#include "cluster/resources.h"

namespace muster::scheduler {

using cluster::ClaimInfo;
using cluster::ClaimUse;
using cluster::ClusterSnapshot;
using cluster::NodeIndex;
using cluster::Storage;
using cluster::StorageClassInfo;
using cluster::VolumeInfo;

namespace {

constexpr size_t kMaxNodesNamed = 3;

std::string Name(const ClaimInfo& claim) { return "PersistentVolumeClaim " + claim.key.ToString(); }

std::string SizeText(const ClaimInfo& claim) {
  return cluster::AmountText(cluster::resource::kMemory, claim.bytes);
}

// "only on n1, n2, n3 and 3 more of 9 nodes"
template <class Admits>
std::string NodesText(const ClusterSnapshot& snapshot, Admits admits) {
  std::vector<std::string> names;
  size_t count = 0;
  for (NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node) || !admits(snapshot.Node(node).labels_view())) continue;
    if (++count <= kMaxNodesNamed) names.push_back(snapshot.Node(node).name);
  }
  if (count == 0) return fmt::format("on none of the {} nodes", snapshot.node_count());
  if (count == snapshot.node_count()) return fmt::format("on all {} nodes", count);
  std::string out = "only on " + Join(names, ", ");
  if (count > names.size()) out += fmt::format(" and {} more", count - names.size());
  return out + fmt::format(" of {} nodes", snapshot.node_count());
}

// Who would have to do something for an unbound claim.
std::string UnboundText(const Storage& storage, const ClaimInfo& claim) {
  const std::string is_not = Name(claim) + " is not bound: ";
  const StorageClassInfo* of_claim = storage.Class(claim.class_name);
  if (!claim.volume.empty()) {
    const bool exists = storage.Volume(claim.volume) != nullptr;
    return is_not + fmt::format("it waits for PersistentVolume {}{}", claim.volume,
                                exists ? "" : ", which does not exist");
  }
  if (of_claim != nullptr && of_claim->Provisions()) {
    return is_not + fmt::format("it waits for {}, the provisioner of its StorageClass {}",
                                of_claim->provisioner, of_claim->name);
  }
  std::string why = "it names no StorageClass";
  if (of_claim != nullptr) {
    why = fmt::format("its StorageClass {} provisions nothing", claim.class_name);
  } else if (!claim.class_name.empty()) {
    why = fmt::format("its StorageClass {} does not exist", claim.class_name);
  }
  return is_not + fmt::format("{}, so it waits for somebody to create a PersistentVolume of {}",
                              why, SizeText(claim));
}

// For a claim that waits for its first pod, and for which no node will do.
std::string NoVolumeText(const VolumeRules& rules, const ClusterSnapshot& snapshot,
                         const ClaimInfo& claim) {
  const Storage& storage = *snapshot.Storage();
  const StorageClassInfo& of_claim = *storage.Class(claim.class_name);
  if (!claim.selected_node.empty()) {
    return fmt::format("the volume of {} is being made on node {}", Name(claim),
                       claim.selected_node);
  }
  if (of_claim.Provisions()) {
    return fmt::format("StorageClass {} makes volumes for {} {}", of_claim.name, Name(claim),
                       NodesText(snapshot, [&](const cluster::NodeLabels& node) {
                         return cluster::Matches(of_claim.topologies, node);
                       }));
  }
  size_t free = 0, large = 0;
  std::vector<const VolumeInfo*> suitable;
  for (const auto& [name, volume] : storage.volumes) {
    const bool is_free = volume->available && volume->claim.name.empty() && !rules.IsTaken(*volume);
    if (volume->class_name != of_claim.name || !(is_free || volume->IsFor(claim))) continue;
    ++free;
    if (volume->bytes < claim.bytes) continue;
    ++large;
    suitable.push_back(volume.get());
  }
  std::string out = fmt::format("{} wants a PersistentVolume of class {} with {}: ", Name(claim),
                                of_claim.name, SizeText(claim));
  if (large == 0) {
    return out + (free == 0 ? "none is free" : fmt::format("{} free, too small", free));
  }
  return out + fmt::format("{} free and large enough, to be used {}", large,
                           NodesText(snapshot, [&](const cluster::NodeLabels& node) {
                             return std::any_of(suitable.begin(), suitable.end(),
                                                [&](const VolumeInfo* volume) {
                                                  return cluster::Reaches(*volume, node);
                                                });
                           }));
}

std::string FaultHint(const Storage& storage, const std::vector<ClaimUse>& uses) {
  for (const ClaimUse& use : uses) {
    const ClaimInfo* claim = storage.Claim(use.claim);
    if (claim == nullptr) {
      return fmt::format("it waits for somebody to create PersistentVolumeClaim {}",
                         use.claim.ToString());
    }
    if (claim->deleting) return Name(*claim) + " must be gone and be created again";
    if (claim->lost) {
      return fmt::format("PersistentVolume {} is gone: {} must be created again", claim->volume,
                         Name(*claim));
    }
    if (use.IsEphemeral() && claim->owner_uid != use.pod_uid)
      return Name(*claim) + " is in the way of the pod's own: it must be deleted";
  }
  for (const ClaimUse& use : uses) {
    const ClaimInfo* claim = storage.Claim(use.claim);
    if (!claim->bound && !storage.IsDelayed(*claim)) return UnboundText(storage, *claim);
  }
  return "";
}

}  // namespace

std::string VolumeHint(const VolumeRules& rules, const ClusterSnapshot& snapshot,
                       cluster::ShapeIndex shape) {
  if (!rules.Asks(shape)) return "";
  const Storage& storage = *snapshot.Storage();
  const std::vector<ClaimUse>& uses = snapshot.Shape(shape).constraints.claims;
  if (!rules.Fault(shape).empty()) return FaultHint(storage, uses);
  std::set<Rule> failed;
  for (NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node)) continue;
    for (const Rule rule : rules.Failed(shape, node)) failed.insert(rule);
  }
  std::vector<std::string> hints;
  for (const ClaimUse& use : uses) {
    const ClaimInfo& claim = *storage.Claim(use.claim);
    if (failed.contains(Rule::kClaimInUse) && (claim.modes & cluster::kReadWriteOncePod) != 0)
      hints.push_back(Name(claim) + " is ReadWriteOncePod, and another pod has it");
    if (!claim.bound) {
      if (failed.contains(Rule::kNoVolume)) hints.push_back(NoVolumeText(rules, snapshot, claim));
      continue;
    }
    const VolumeInfo* volume = storage.Volume(claim.volume);
    if (volume == nullptr) {
      hints.push_back(fmt::format("PersistentVolume {}, to which {} is bound, does not exist",
                                  claim.volume, Name(claim)));
    } else if (failed.contains(Rule::kVolumeAffinity) || failed.contains(Rule::kVolumeZone)) {
      if (volume->affinity.IsTrivial() && volume->zones.empty()) continue;
      hints.push_back(
          fmt::format("PersistentVolume {} of {} can be used {}", volume->name, Name(claim),
                      NodesText(snapshot, [&](const cluster::NodeLabels& node) {
                        return cluster::Reaches(*volume, node) && IsInZoneOf(*volume, node);
                      })));
    }
  }
  return Join(hints, "; ");
}

}  // namespace muster::scheduler
