#include "agent/volumes/volume_users.h"

#include <algorithm>

namespace muster::agent {

bool VolumeUsers::HasOtherUser(std::string_view volume, const std::string& uid) const {
  return std::ranges::any_of(users_, [&](const auto& entry) {
    return entry.first != uid && entry.second.contains(volume);
  });
}

Status VolumeUsers::Take(const std::string& uid, const std::vector<ClaimVolume>& volumes) {
  for (const ClaimVolume& each : volumes) {
    if (removed_.contains(each.volume)) {
      return Error(Reason::kConflict,
                   "MountVolume.SetUp failed for volume \"{}\" : it is being removed", each.volume);
    }
    if (each.one_pod && HasOtherUser(each.volume, uid)) {
      return Error(Reason::kConflict,
                   "MountVolume.SetUp failed for volume \"{}\" : volume uses the ReadWriteOncePod "
                   "access mode and is already in use by another pod",
                   each.volume);
    }
  }
  Adopt(uid, volumes);
  return Status::Ok();
}

void VolumeUsers::Adopt(const std::string& uid, const std::vector<ClaimVolume>& volumes) {
  if (volumes.empty()) return;
  std::set<std::string, std::less<>>& mine = users_[uid];
  mine.clear();
  for (const ClaimVolume& each : volumes) mine.insert(each.volume);
}

void VolumeUsers::Release(const std::string& uid) {
  const auto found = users_.find(uid);
  if (found == users_.end()) return;
  const std::set<std::string, std::less<>> volumes = std::move(found->second);
  users_.erase(found);
  if (!on_released_) return;
  for (const std::string& volume : volumes) {
    if (!IsUsed(volume)) on_released_(volume);
  }
}

bool VolumeUsers::BeginRemoval(const std::string& volume) {
  if (IsUsed(volume)) return false;
  removed_.insert(volume);
  return true;
}

}  // namespace muster::agent
