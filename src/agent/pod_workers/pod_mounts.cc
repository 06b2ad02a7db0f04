// PodWorker: its volumes that servers keep. They are mounted before there is a sandbox, which gets
// the mounts of the node as they are then. What was mounted before, by an agent that was killed
// perhaps, is found mounted and kept.

#include "agent/pod_workers/pod_worker.h"

namespace muster::agent {

void PodWorker::MountNetworkVolumes(std::vector<NetworkVolume> volumes) {
  const std::string first = volumes.front().shown, source = volumes.front().source;
  if (context_.mounter == nullptr) {
    return RetryLater(
        "FailedMount",
        fmt::format("MountVolume.SetUp failed for volume \"{}\" : this node mounts no "
                    "volumes of servers",
                    first));
  }
  busy_ = mounting_ = true;
  slow_mount_timer_ = context_.loop.After(kSlowMount, [this, first, source] {
    slow_mount_timer_ = 0;
    ShowWait(
        "FailedMount",
        fmt::format("MountVolume.SetUp for volume \"{}\" : still waiting for {}; it is given up "
                    "after {} and tried again",
                    first, source, HumanDuration(kMountTimeLimit)));
  });
  context_.mounter->Mount(uid_, std::move(volumes), lifetime_.Guard([this](const Status& status) {
    context_.loop.Cancel(slow_mount_timer_);
    slow_mount_timer_ = 0;
    busy_ = mounting_ = false;
    if (ShouldStop() || step_ == Step::kLost) return Sync();
    if (!status.ok()) return RetryLater("FailedMount", status.message());
    FolderMade();
  }));
}

// A pod that ends waits for no server.
void PodWorker::StopMounting() { context_.mounter->Cancel(uid_); }

}  // namespace muster::agent
