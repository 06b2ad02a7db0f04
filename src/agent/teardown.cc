// TearDownNode: what `muster down` leaves of a node, which is nothing that runs or is mounted.

#include <poll.h>
#include <unistd.h>

#include <vector>

#include "agent/agent.h"
#include "agent/cgroups/cgroups.h"
#include "agent/cgroups/delegated_group.h"
#include "agent/network/host_network.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_lock.h"
#include "agent/runtime/process_runtime.h"
#include "agent/runtime/unmount.h"
#include "agent/runtime/wire.h"
#include "agent/shim/shim.h"
#include "agent/spawner/sandbox.h"
#include "agent/user_node/user_identity.h"
#include "agent/user_node/user_node.h"
#include "base/log.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr int kShutdownWaitMs = 5000;
constexpr int kRemovalTries = 500;
constexpr int kRemovalWaitMs = 20;
constexpr int kBreakOffEvery = 100;  // tries

// Asks the shim to end and waits until it has: its socket and its lock are closed while its
// namespaces are still there.
void EndShim(const std::string& pod_dir) {
  const Result<UniqueFd> shim = OpenProcessLockHolder(pod_dir + "/" + kShimLockName);
  Result<UniqueFd> fd = ConnectUnix(pod_dir, kShimSocketName);
  if (!fd) return;
  WireConnection connection(std::move(*fd));
  connection.Send(json::Obj({{"id", 1}, {"op", "shutdown"}}));
  pollfd watched = {connection.fd(), POLLIN, 0};
  while (!connection.broken() && poll(&watched, 1, kShutdownWaitMs) > 0) connection.ReadAvailable();
  pollfd ended = {shim ? shim->get() : -1, POLLIN, 0};
  if (ended.fd >= 0) (void)poll(&ended, 1, kShutdownWaitMs);
}

// Not root and in no namespace: pods are plain processes.
bool IsPlain() { return geteuid() != 0; }

Status EndPod(const Cgroups& cgroups, const std::string& pod_dir, const std::string& uid) {
  EndShim(pod_dir);
  Status status = EndSandbox(pod_dir, PodCgroup(uid), cgroups, IsPlain());
  for (int i = 0; i < kRemovalTries && !status.ok(); ++i) {
    poll(nullptr, 0, kRemovalWaitMs);
    // Perhaps a server of a network volume is silent, for which they wait.
    if (i % kBreakOffEvery == kBreakOffEvery - 1) BreakOffRequestsBelow(pod_dir);
    status = EndSandbox(pod_dir, PodCgroup(uid), cgroups, IsPlain());
  }
  return status;
}

// What containers wrote outside of volumes: the next ones do not see it.
Status RemoveLayers(const std::string& pod_dir) {
  for (const std::string& name : ListDir(pod_dir + "/containers")) {
    const std::string dir = fmt::format("{}/containers/{}", pod_dir, name);
    for (const std::string& entry : ListDir(dir)) {
      if (ParseInt(entry)) RETURN_IF_ERROR(RemoveTree(dir + "/" + entry));
    }
  }
  return Status::Ok();
}

// What was made in the machine's network, or, with the namespaces, all of the user's.
Status RemoveNetwork(const std::string& data_dir) {
  NodeNetworkConfig network;
  network.state_file = data_dir + "/run/network.state";
  if (InUserNamespace()) {
    RETURN_IF_ERROR(EndUserNode(data_dir));
    return RemoveTree(network.state_file);
  }
  if (!PathExists(network.state_file)) return Status::Ok();
  ASSIGN_OR_RETURN(const auto ranges, LoadAddressRanges(data_dir));
  if (ranges) network.UseRanges(*ranges);
  return RemoveHost(network);
}

}  // namespace

Status TearDownNode(const std::string& data_dir) {
  const Cgroups cgroups =
      IsPlain() || InUserNamespace() ? CgroupsOfUserNode(data_dir) : Cgroups::DetectSystem();
  Status first;
  const auto keep = [&first](Status status) {
    if (!status.ok() && first.ok()) first = std::move(status);
  };
  // Their folders stay, as when the machine is switched off: the next agent counts restarts on from
  // them, and runs nothing twice that must not be.
  for (const std::string& uid : PodFolders(data_dir)) {
    keep(EndPod(cgroups, PodDir(data_dir, uid), uid));
    // The next agent mounts them again.
    keep(UnmountBelow(PodDir(data_dir, uid)));
    keep(RemoveLayers(PodDir(data_dir, uid)));
  }
  SweepPodFolders(data_dir);
  // The root group may hold pods of another data folder; then it stays.
  (void)cgroups.RemoveIfEmpty(std::string(kCgroupRoot));
  keep(RemoveNetwork(data_dir));
  (void)cgroups.RemoveIfEmpty(std::string(kControlGroup));
  return first;
}

}  // namespace muster::agent
