#include "scheduler/volume_rules.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

namespace muster::scheduler {

using cluster::ClaimInfo;
using cluster::ClaimKey;
using cluster::ClaimUse;
using cluster::NodeIndex;
using cluster::NodeLabels;
using cluster::ShapeIndex;
using cluster::Storage;
using cluster::VolumeInfo;

namespace {

bool IsSmaller(const VolumeInfo* a, const VolumeInfo* b) {
  return std::tie(a->bytes, a->name) < std::tie(b->bytes, b->name);
}

// The hosts that a local volume names; empty if it may be reached from others, too.
std::vector<std::string_view> HostsOf(const VolumeInfo& volume) {
  std::vector<std::string_view> hosts;
  for (const cluster::NodeSelectorTerm& term : volume.affinity.terms) {
    const auto names_host =
        std::find_if(term.expressions.begin(), term.expressions.end(), [](const auto& each) {
          return each.key == cluster::kHostnameLabel && each.op == cluster::SelectorOperator::kIn;
        });
    if (names_host == term.expressions.end()) return {};
    hosts.insert(hosts.end(), names_host->values.begin(), names_host->values.end());
  }
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

bool Suits(const VolumeInfo& volume, const ClaimInfo& claim) {
  return volume.bytes >= claim.bytes && volume.block == claim.block && !volume.deleting;
}

bool IsSelected(const VolumeInfo& volume, const ClaimInfo& claim) {
  return claim.selector.MatchesBy([&](std::string_view key) -> std::optional<std::string_view> {
    const auto found = volume.labels.find(key);
    if (found == volume.labels.end()) return std::nullopt;
    return found->second;
  });
}

}  // namespace

VolumeRules::VolumeRules(const cluster::ClusterSnapshot& snapshot) : snapshot_(snapshot) {
  const Storage* storage = snapshot.Storage();
  if (storage == nullptr) return;
  for (ShapeIndex shape = 0; shape < snapshot.shape_slots(); ++shape) {
    const std::vector<ClaimUse>& uses = snapshot.Shape(shape).constraints.claims;
    if (uses.empty()) continue;
    asks_.resize(snapshot.shape_slots());
    Ask& ask = asks_[shape];
    for (const ClaimUse& use : uses) {
      ask.claims.push_back(ClaimOf(use.claim));
      if (ask.claims.back()->delayed) ask.delayed.push_back(ask.claims.back());
    }
    std::stable_sort(ask.delayed.begin(), ask.delayed.end(), [](const Claim* a, const Claim* b) {
      return a->info->bytes < b->info->bytes;
    });
    ask.fault = FaultOf(snapshot.Shape(shape));
  }
  if (active()) ListVolumes();
}

VolumeRules::Claim* VolumeRules::ClaimOf(const ClaimKey& key) {
  Claim*& known = claim_of_[key];
  if (known != nullptr) return known;
  known = &claims_.emplace_back();
  const Storage& storage = *snapshot_.Storage();
  known->info = storage.Claim(key);
  if (known->info == nullptr) return known;
  known->exclusive = (known->info->modes & cluster::kReadWriteOncePod) != 0;
  known->delayed = !known->info->bound && storage.IsDelayed(*known->info);
  if (known->info->bound) known->volume = storage.Volume(known->info->volume);
  if (!known->delayed) return known;
  known->made_on = known->info->selected_node;
  if (const auto decided = storage.decided.find(key); decided != storage.decided.end()) {
    const cluster::VolumeChoice& choice = decided->second.choice;
    if (choice.volume.empty()) {
      known->made_on = choice.node;
    } else {
      known->chosen = storage.Volume(choice.volume);
    }
  }
  known->kept = known->IsDecided();
  return known;
}

void VolumeRules::ListVolumes() {
  const Storage& storage = *snapshot_.Storage();
  for (const auto& [name, volume] : storage.volumes) {
    if (storage.taken.contains(name)) taken_.insert(volume.get());
    if (!volume->claim.name.empty()) {
      reserved_[volume->claim].push_back(volume.get());
    } else if (volume->available && !volume->deleting) {
      FreeVolumes& of_class = free_[volume->class_name];
      const std::vector<std::string_view> hosts = HostsOf(*volume);
      if (hosts.empty()) of_class.anywhere.push_back(volume.get());
      for (const std::string_view host : hosts) of_class.on_host[host].push_back(volume.get());
    }
  }
  for (auto& [class_name, volumes] : free_) {
    std::sort(volumes.anywhere.begin(), volumes.anywhere.end(), IsSmaller);
    for (auto& [host, on_host] : volumes.on_host)
      std::sort(on_host.begin(), on_host.end(), IsSmaller);
  }
}

// -- What excludes all nodes.

std::string_view VolumeRules::Fault(ShapeIndex shape) const {
  const Ask* ask = Find(shape);
  return ask == nullptr ? std::string_view() : std::string_view(ask->fault);
}

std::string VolumeRules::FaultOf(const cluster::Shape& shape) const {
  const Storage& storage = *snapshot_.Storage();
  const std::vector<ClaimUse>& uses = shape.constraints.claims;
  for (const ClaimUse& use : uses) {
    if (!use.IsEphemeral() && storage.Claim(use.claim) == nullptr)
      return fmt::format("persistentvolumeclaim \"{}\" not found", use.claim.name);
  }
  bool some_wait = false;
  for (const ClaimUse& use : uses) {
    const ClaimInfo* claim = storage.Claim(use.claim);
    if (claim == nullptr) {
      return fmt::format(
          "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"",
          use.claim.name);
    }
    if (claim->lost) {
      return fmt::format(
          "persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"",
          use.claim.name, claim->volume);
    }
    if (claim->deleting)
      return fmt::format("persistentvolumeclaim \"{}\" is being deleted", use.claim.name);
    if (use.IsEphemeral() && claim->owner_uid != use.pod_uid) {
      return fmt::format("PVC {} was not created for pod {}/{} (pod is not owner)",
                         use.claim.ToString(), use.claim.ns, use.pod_name);
    }
    some_wait |= !claim->bound && !storage.IsDelayed(*claim);
  }
  return some_wait ? "pod has unbound immediate PersistentVolumeClaims" : "";
}

// -- What excludes a node.

bool VolumeRules::IsInUse(ShapeIndex shape) const {
  const Ask* ask = Find(shape);
  return ask != nullptr &&
         std::any_of(ask->claims.begin(), ask->claims.end(),
                     [](const Claim* claim) { return claim->exclusive && claim->users > 0; });
}

bool VolumeRules::Contend(ShapeIndex a, ShapeIndex b) const {
  const Ask* one = Find(a);
  const Ask* other = Find(b);
  if (one == nullptr || other == nullptr) return false;
  return std::any_of(one->claims.begin(), one->claims.end(), [&](const Claim* claim) {
    return claim->exclusive &&
           std::find(other->claims.begin(), other->claims.end(), claim) != other->claims.end();
  });
}

std::vector<Rule> VolumeRules::Failed(ShapeIndex shape, NodeIndex node) const {
  std::vector<Rule> failed;
  const Ask* ask = Find(shape);
  if (ask == nullptr) return failed;
  if (!ask->fault.empty()) return {Rule::kClaim};
  if (IsInUse(shape)) return {Rule::kClaimInUse};
  const NodeLabels labels = snapshot_.Node(node).labels_view();
  // Of bound claims the first that is at fault.
  const auto at_fault =
      std::find_if(ask->claims.begin(), ask->claims.end(), [&](const Claim* each) {
        return each->info->bound && (each->volume == nullptr || !Reaches(*each->volume, labels));
      });
  const bool some_bound = at_fault != ask->claims.end();
  if (some_bound && (*at_fault)->volume != nullptr) failed.push_back(Rule::kVolumeAffinity);
  if (!ask->delayed.empty() && !Choose(*ask, node, nullptr)) failed.push_back(Rule::kNoVolume);
  if (some_bound && (*at_fault)->volume == nullptr) failed.push_back(Rule::kVolumeGone);
  if (!failed.empty()) return failed;
  for (const Claim* claim : ask->claims) {
    if (claim->info->bound && !cluster::IsInZoneOf(*claim->volume, labels))
      return {Rule::kVolumeZone};
  }
  return failed;
}

// -- Which volume.

bool VolumeRules::CanBeMade(const Claim& claim, const NodeLabels& node) const {
  const cluster::StorageClassInfo* of_claim = snapshot_.Storage()->Class(claim.info->class_name);
  return of_claim != nullptr && of_claim->Provisions() &&
         cluster::Matches(of_claim->topologies, node);
}

bool VolumeRules::Choose(const Ask& ask, NodeIndex index, std::vector<Choice>* choices) const {
  const NodeLabels node = snapshot_.Node(index).labels_view();
  for (const Claim* claim : ask.delayed) {
    if (!claim->made_on.empty() && claim->made_on != node.name) return false;
  }
  std::vector<Choice> chosen;
  for (Claim* claim : ask.delayed) {
    const VolumeInfo* volume = claim->made_on.empty() ? FindVolume(*claim, node, chosen) : nullptr;
    if (volume == nullptr && !CanBeMade(*claim, node)) return false;
    chosen.push_back({claim, volume});
  }
  if (choices != nullptr) *choices = std::move(chosen);
  return true;
}

const VolumeInfo* VolumeRules::FindVolume(const Claim& claim, const NodeLabels& node,
                                          const std::vector<Choice>& others) const {
  const ClaimInfo& info = *claim.info;
  // One that is meant for the claim already, or no other.
  if (claim.chosen != nullptr)
    return cluster::Reaches(*claim.chosen, node) ? claim.chosen : nullptr;
  if (const auto own = reserved_.find(info.key); own != reserved_.end()) {
    for (const VolumeInfo* volume : own->second) {
      if (volume->IsFor(info) && volume->class_name == info.class_name && Suits(*volume, info))
        return cluster::Reaches(*volume, node) ? volume : nullptr;
    }
  }
  const auto of_class = free_.find(info.class_name);
  if (of_class == free_.end()) return nullptr;
  const auto will_do = [&](const VolumeInfo* volume) {
    const bool is_taken = taken_.contains(volume) ||
                          std::any_of(others.begin(), others.end(),
                                      [&](const Choice& other) { return other.volume == volume; });
    return !is_taken && Suits(*volume, info) && (info.modes & ~volume->modes) == 0 &&
           IsSelected(*volume, info) && cluster::Reaches(*volume, node);
  };
  const auto smallest = [&](const Volumes& volumes) -> const VolumeInfo* {
    const auto large_enough =
        std::lower_bound(volumes.begin(), volumes.end(), info.bytes,
                         [](const VolumeInfo* each, int64_t bytes) { return each->bytes < bytes; });
    const auto found = std::find_if(large_enough, volumes.end(), will_do);
    return found == volumes.end() ? nullptr : *found;
  };
  const VolumeInfo* best = smallest(of_class->second.anywhere);
  const auto on_host = of_class->second.on_host.find(node.has_hostname ? node.hostname : "");
  if (on_host == of_class->second.on_host.end()) return best;
  const VolumeInfo* local = smallest(on_host->second);
  if (best == nullptr || local == nullptr) return best == nullptr ? local : best;
  return std::min(best, local, IsSmaller);
}

std::vector<cluster::VolumeChoice> VolumeRules::ChoicesOf(ShapeIndex shape, NodeIndex node) const {
  std::vector<cluster::VolumeChoice> out;
  const Ask* ask = Find(shape);
  if (ask == nullptr) return out;
  for (const Claim* claim : ask->delayed) {
    out.push_back({claim->info->key, claim->chosen == nullptr ? "" : claim->chosen->name,
                   snapshot_.Node(node).name});
  }
  return out;
}

void VolumeRules::Count(ShapeIndex shape, NodeIndex node, int64_t sign) {
  const Ask* ask = Find(shape);
  if (ask == nullptr) return;
  for (Claim* claim : ask->claims) claim->users += sign;
  if (sign > 0) {
    std::vector<Choice> choices;
    // A pod that runs there although it could not be placed there decides nothing.
    if (ask->delayed.empty() || !ask->fault.empty() || !Choose(*ask, node, &choices)) return;
    for (const Choice& choice : choices) {
      if (choice.claim->IsDecided()) continue;
      choice.claim->chosen = choice.volume;
      if (choice.volume == nullptr) {
        choice.claim->made_on = snapshot_.Node(node).name;
      } else {
        taken_.insert(choice.volume);
      }
    }
    return;
  }
  ++loosened_;
  for (Claim* claim : ask->delayed) {
    if (claim->users > 0 || claim->kept) continue;
    taken_.erase(claim->chosen);
    claim->chosen = nullptr;
    claim->made_on.clear();
  }
}

}  // namespace muster::scheduler
