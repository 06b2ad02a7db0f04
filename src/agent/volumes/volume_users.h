// src/agent/volumes/volume_users.h
//
// VolumeUsers: which pods of this node have which PersistentVolumes, from before they are mounted
// until nothing of the pod is left.
//
// Life cycle: one per agent.
// Thread:     the loop thread.
// Invariants: a volume that is being removed gets no user, one that has a user is not removed.

#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/volumes/claim_volume.h"
#include "base/status.h"

namespace muster::agent {

class VolumeUsers {
 public:
  // All or none; the pod's earlier ones are replaced. Conflict, in the kubelet's words, where one
  // of them is for one pod alone and another pod has it, or is being removed.
  Status Take(const std::string& uid, const std::vector<ClaimVolume>& volumes);
  // Of a pod that is here already, without a question.
  void Adopt(const std::string& uid, const std::vector<ClaimVolume>& volumes);
  void Release(const std::string& uid);
  bool IsUsed(const std::string& volume) const { return HasOtherUser(volume, ""); }

  // False while somebody has it. Until EndRemoval() nobody gets it.
  bool BeginRemoval(const std::string& volume);
  void EndRemoval(const std::string& volume) { removed_.erase(volume); }
  // `on_released` gets each volume that a pod had and has no more.
  void OnReleased(std::function<void(const std::string& volume)> on_released) {
    on_released_ = std::move(on_released);
  }

 private:
  bool HasOtherUser(std::string_view volume, const std::string& uid) const;

  std::map<std::string, std::set<std::string, std::less<>>> users_;  // pod uid -> volumes
  std::set<std::string, std::less<>> removed_;
  std::function<void(const std::string& volume)> on_released_;
};

}  // namespace muster::agent
