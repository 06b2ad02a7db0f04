// PodWorker: the volumes of its claims. Once it has them it keeps them: what becomes of claims and
// PersistentVolumes afterwards does not end a pod, nor hinder a container of it from restarting.

#include "agent/pod_workers/pod_worker.h"

namespace muster::agent {

void PodWorker::RestoreClaims(const json::Value& record) {
  for (ClaimVolume& claim : ClaimVolumesFromJson(record["claims"])) {
    claims_held_ = true;
    inputs_.claims.emplace(claim.name, std::move(claim));
  }
}

std::vector<ClaimVolume> PodWorker::Claims() const {
  std::vector<ClaimVolume> out;
  for (const auto& [name, claim] : inputs_.claims) {
    if (claim) out.push_back(*claim);
  }
  return out;
}

// Before it has them it looks anew each time.
void PodWorker::ForgetClaims() {
  if (claims_held_) return;
  inputs_.claims.clear();
  context_.volume_users.Release(uid_);
}

}  // namespace muster::agent
