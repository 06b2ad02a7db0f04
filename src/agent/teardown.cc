// TearDownNode: what `muster down` leaves of a node, which is nothing.

#include <poll.h>
#include <signal.h>

#include <vector>

#include "agent/agent.h"
#include "agent/cgroups/cgroups.h"
#include "agent/network/host_network.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_runtime.h"
#include "agent/runtime/wire.h"
#include "agent/shim/shim.h"
#include "base/log.h"

namespace muster::agent {
namespace {

constexpr int kShutdownWaitMs = 5000;
constexpr int kRemovalTries = 100;
constexpr int kRemovalWaitMs = 20;

// Asks the shim to end and waits until its socket is closed, which means that the pod's processes
// are gone.
void EndShim(const std::string& pod_dir) {
  Result<UniqueFd> fd = ConnectUnix(pod_dir, kShimSocketName);
  if (!fd) return;
  WireConnection connection(std::move(*fd));
  connection.Send(json::Obj({{"id", 1}, {"op", "shutdown"}}));
  pollfd watched = {connection.fd(), POLLIN, 0};
  while (!connection.broken() && poll(&watched, 1, kShutdownWaitMs) > 0) connection.ReadAvailable();
}

Status RemoveCgroup(const Cgroups& cgroups, const std::string& group) {
  Status status = cgroups.Remove(group);
  for (int i = 0; i < kRemovalTries && !status.ok(); ++i) {
    cgroups.KillAll(group);
    poll(nullptr, 0, kRemovalWaitMs);
    status = cgroups.Remove(group);
  }
  return status;
}

}  // namespace

Status TearDownNode(const std::string& data_dir) {
  const Cgroups cgroups = Cgroups::DetectSystem();
  Status first;
  const auto keep = [&first](Status status) {
    if (!status.ok() && first.ok()) first = std::move(status);
  };
  for (const std::string& uid : ListDir(PodsDir(data_dir))) {
    EndShim(PodDir(data_dir, uid));
    keep(RemoveCgroup(cgroups, PodCgroup(uid)));
    keep(RemoveTree(PodDir(data_dir, uid)));
  }
  // The root group may hold pods of another data folder; then it stays.
  (void)cgroups.RemoveIfEmpty(std::string(kCgroupRoot));
  NodeNetworkConfig network;
  network.state_file = data_dir + "/run/network.state";
  if (PathExists(network.state_file)) keep(RemoveHost(network));
  return first;
}

}  // namespace muster::agent
