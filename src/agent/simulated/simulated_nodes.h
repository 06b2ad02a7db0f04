// src/agent/simulated/simulated_nodes.h
//
// Simulated nodes (`muster up --simulate-nodes N`): Node objects whose pods are only said to run,
// for trying out scheduling at a size that one does not have. Labelled `muster.dev/simulated:
// "true"`.
//
// A pod bound to one goes Running at once and stays, or Succeeds after its annotation
// `muster.dev/simulated-duration` ("30s", "5m"). Deletion is answered at once. Volumes of the
// provisioner muster.dev/local-path are only said to be there, too.
//
// Nodes that the autoscaler made (label karpenter.sh/nodepool) are kept alive in the same way. A
// Node that was deleted stays away until the next start.
//
// A Node that was called NotReady while we were away, and its pods, are called Ready again.
//
// Life cycle: construct before or after InformerSet::Start(), Start() once, destroy to stop (the
//             Nodes stay).
// Thread:     the loop thread.
// Cost:       one informer over pods, one over nodes, one over PersistentVolumes, one Lease
//             write per node and kSimulatedLeasePeriod; nothing else while idle, and no timer
//             without such nodes.

#pragma once

#include <memory>
#include <string>

#include "base/rng.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr int kMaxSimulatedNodes = 10'000;
inline constexpr Duration kSimulatedLeasePeriod = seconds(10);

struct SimulatedNodesOptions {
  int count = 0;
  std::string name_prefix = "simulated-";  // simulated-0000, ...
  std::string cpu = "64", memory = "512Gi", ephemeral_storage = "1Ti";
  int gpus = 8;
  std::string gpu_model = "Simulated-GPU";
  std::string version = "v1.32.0";
};

class SimulatedNodes {
 public:
  SimulatedNodes(SimulatedNodesOptions options, Loop& loop, client::ApiClient& client,
                 client::InformerSet& informers, Rng rng);
  ~SimulatedNodes();
  void Start();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agent
