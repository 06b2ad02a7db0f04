#include "controllers/persistentvolume/volume_matching.h"

#include <bit>
#include <optional>
#include <tuple>

#include "controllers/persistentvolume/storage_facts.h"

namespace muster::controllers {
namespace {

using cluster::ClaimInfo;
using cluster::VolumeInfo;

bool HasModes(const VolumeInfo& volume, const ClaimInfo& claim) {
  return (claim.modes & ~volume.modes) == 0;
}

std::string_view AttributesOf(const json::Value& object) {
  return object["spec"]["volumeAttributesClassName"].AsString();
}

bool IsSelected(const VolumeInfo& volume, const ClaimInfo& claim) {
  return claim.selector.MatchesBy([&](std::string_view key) -> std::optional<std::string_view> {
    const auto found = volume.labels.find(key);
    if (found == volume.labels.end()) return std::nullopt;
    return found->second;
  });
}

// The least is the best.
auto Rank(const VolumeInfo& volume) {
  return std::tuple(std::popcount(volume.modes), volume.bytes, volume.name);
}

class Choice {
 public:
  explicit Choice(const json::Value& claim) : claim_(claim), info_(cluster::ToClaimInfo(claim)) {}

  void Consider(const json::Value& volume, bool kept_for_it) {
    VolumeInfo info = cluster::ToVolumeInfo(volume);
    const bool suits = info.bytes >= info_.bytes && info.block == info_.block && !info.deleting &&
                       HasModes(info, info_) && AttributesOf(volume) == AttributesOf(claim_);
    if (!suits || (!kept_for_it && !IsSelected(info, info_))) return;
    if (best_ != nullptr && Rank(best_info_) <= Rank(info)) return;
    best_ = &volume;
    best_info_ = std::move(info);
  }
  const json::Value* best() const { return best_; }

 private:
  const json::Value& claim_;
  const ClaimInfo info_;
  const json::Value* best_ = nullptr;
  VolumeInfo best_info_;
};

}  // namespace

const json::Value* FindVolumeFor(const json::Value& claim, const client::Informer& volumes,
                                 bool waits) {
  Choice choice(claim);
  for (const client::ObjectKey& key : VolumesFor(volumes, client::KeyOf(claim))) {
    const json::Value& volume = *volumes.Find(key);
    if (IsFor(volume, claim)) choice.Consider(volume, true);
  }
  if (choice.best() != nullptr || waits) return choice.best();
  for (const client::ObjectKey& key : FreeOfClass(volumes, ClassOf(claim)))
    choice.Consider(*volumes.Find(key), false);
  return choice.best();
}

bool IsOfOtherMode(const json::Value& volume, const json::Value& claim) {
  const auto is_block = [](const json::Value& object) {
    return object["spec"]["volumeMode"].AsString() == "Block";
  };
  return is_block(volume) != is_block(claim);
}

std::string MismatchOf(const json::Value& volume, const json::Value& claim) {
  const VolumeInfo has = cluster::ToVolumeInfo(volume);
  const ClaimInfo wants = cluster::ToClaimInfo(claim);
  if (has.bytes < wants.bytes) return "requested PV is too small";
  if (has.class_name != wants.class_name) return "storageClassName does not match";
  if (AttributesOf(volume) != AttributesOf(claim))
    return "volumeAttributesClassName does not match";
  if (has.block != wants.block) return "incompatible volumeMode";
  return HasModes(has, wants) ? "" : "incompatible accessMode";
}

}  // namespace muster::controllers
