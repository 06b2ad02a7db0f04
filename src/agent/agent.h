// src/agent/agent.h
//
// Agent: the node agent. It registers this machine as a Node, runs the pods that are bound to it
// (each in its own namespaces, under a shim that outlives the agent), reports what became of them,
// and serves the kubelet API.
//
//   // first statement of main(), before any thread exists:
//   ASSIGN_OR_RETURN(agent::SpawnerHandle spawner,
//                    agent::SpawnerProcess::Fork({agent::SpawnerLockFile(data_dir)}));
//   ...
//   agent::Agent agent(options, loop, pool, client, informers, std::move(spawner), Rng(seed));
//   agent.Start([](Status status) { ... });   // the Node exists, the kubelet API listens
//   informers.Start();                        // before or after Start()
//   ...
//   agent.Stop([] { ... });                   // pods go on; the next agent finds them again
//
// Life cycle: construct, Start() once, Stop() once, destroy after Stop()'s callback.
// Thread:     the loop thread. File work runs on the pool; namespaces, mounts and links in the
// spawner and the shims. Invariants: a pod that this node has started is known from DIR/pods alone,
// so nothing is lost with the agent;
//             a pod object with a deletionTimestamp is removed from the server only after its last
//             process is gone.

#pragma once

#include <memory>
#include <string>

#include "agent/network/address_ranges.h"
#include "agent/spawner/spawner.h"
#include "agent/user_node/user_node.h"
#include "base/rng.h"
#include "base/status.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "gpu/gpu_monitor.h"
#include "gpu/idle_gpus.h"
#include "gpu/simulated_gpus.h"
#include "loop/asio_loop.h"
#include "loop/loop.h"
#include "net/io_threads.h"

namespace muster::agent {

inline constexpr int kMaxPodsPerNode = 110;  // as the kubelet's --max-pods
inline constexpr int kMaxSimulatedGpus = gpu::kMaxSimulatedGpus;
// Processes and threads of one pod (the kubelet's --pod-max-pids). Enough for eight ranks with
// their data loaders on a large machine; a fork bomb stops there.
inline constexpr int64_t kMaxPodPids = 16'384;
inline constexpr int kDefaultKubeletPort = 10250;
// The Node is registered without its GPUs when the driver takes longer than this; they come later.
inline constexpr Duration kGpuPatience = seconds(2);
// When the node's memory ends, pods go first: the kubelet's own score.
inline constexpr int kNodeOomScore = -999;
// The calling process and its later children. Does nothing where it is not allowed.
void ProtectFromOom(int score);

std::string SpawnerLockFile(const std::string& data_dir);

struct AgentOptions {
  std::string data_dir;   // absolute
  std::string node_name;  // lower-case host name unless told otherwise

  // Above 0: such devices instead of the machine's own.
  int simulate_gpus = 0;
  std::string simulated_gpu_model = "Simulated-GPU";

  Duration gpu_steady = gpu::kGpuSteady;  // a GPU that had a fault is offered again after it
  // A pod whose GPU did nothing for so long is told; zero: never.
  Duration gpu_idle = gpu::kIdleTold;

  int64_t pod_max_pids = kMaxPodPids;
  // False: the images that pods name mean nothing, all containers see the machine's own root.
  bool pull_images = true;

  AddressRanges ranges;
  std::string cluster_domain = "cluster.local";
  std::string node_address;  // InternalIP; "" = the address of the default route, else the bridge's

  std::string kubelet_host = "0.0.0.0";
  int kubelet_port = kDefaultKubeletPort;  // 0 = any free port
  std::string ca_file;              // who may call the kubelet API: client certificates of this CA
  std::string cert_file, key_file;  // the kubelet API's own

  net::IoThreads* io = nullptr;  // for the kubelet API; nullptr = a thread of its own

  std::string version = "v1.32.0";  // nodeInfo.kubeletVersion
};

class Agent {
 public:
  // REQUIRES: all references outlive the agent. `user_node` is empty for root's node.
  Agent(AgentOptions options, AsioLoop& loop, Pool& pool, client::ApiClient& client,
        client::InformerSet& informers, SpawnerHandle spawner, UserNode user_node, Rng rng);
  ~Agent();

  // `ready` runs once: Ok when the Node is registered and the kubelet API listens, else why not.
  void Start(Function<void(Status)> ready);
  // Stops reporting and serving; pods keep running under their shims.
  void Stop(Task done);

  // The node's GPUs as gpu/gpu_metrics.h has them; "" without real ones. At most kGpuLookPeriod
  // old; asking makes them newer.
  std::string GpuMetricsText();
  int kubelet_port() const;  // the port in use, after Start()'s callback

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The node of a user who is not root. The calling process must have one thread.
Result<UserNode> EnterNodeOfUser(const AgentOptions& options);

// What `muster down` does to a node: ends every pod under data_dir (SIGKILL), removes its cgroups,
// the bridge and our nftables tables, or the user's namespaces. What the folders of pods tell stays
// for the next agent. Blocking; needs no running agent; call it when none runs. A second call finds
// nothing to do.
Status TearDownNode(const std::string& data_dir);

}  // namespace muster::agent
