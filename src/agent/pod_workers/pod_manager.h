// src/agent/pod_workers/pod_manager.h
//
// PodManager: one PodWorker for each pod of this node: those that the API server binds to it and
// those that its folder remembers. Routes the runtime's events to them.
//
// Life cycle: made before PodRuntime::Recover() is called; Start() when it has answered; destroy to
//             stop (pods go on).
// Thread:     the loop thread.
// Invariants: a worker per uid; two pods of one name (old going, new come) have a worker each; a
//             recovered pod that the API server no longer knows is ended.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/pod_workers/pod_worker.h"
#include "client/informer.h"

namespace muster::agent {

class PodManager {
 public:
  // `pods` is the informer of this node's pods. REQUIRES: `context` outlives the manager.
  PodManager(PodWorkerContext& context, client::Informer& pods);
  ~PodManager();

  void Start(std::vector<RecoveredPod> recovered);

  // Before it is, a pod that is not found here may be one of an earlier run.
  bool synced() const { return synced_; }
  // nullptr if no such pod is here. The newest one of that name.
  const PodWorker* Find(const std::string& ns, const std::string& name) const;
  // The pods' objects, with the address that the node has given them in status.podIP.
  std::vector<json::Value> PodsWithAddresses() const { return PodsWithAddresses(false); }
  // Of those, the ones that have hostPorts; nullopt until all pods of an earlier run are known.
  std::optional<std::vector<json::Value>> PodsWithHostPorts() const;
  json::Array Objects() const;  // all pods that are here
  const PodWorker* FindByUid(const std::string& uid) const;
  // Which images pods have started from or are about to.
  ImageCache::Users ImageUsers() const;
  void DevicesChanged();   // what context.devices says
  void PoliciesChanged();  // what context.policies says
  void Evict(const std::string& uid, const std::string& message);
  size_t size() const { return workers_.size(); }

 private:
  void OnChange(const json::Value& before, const json::Value& after);
  void OnSynced();
  void SweepLogs();
  std::vector<json::Value> PodsWithAddresses(bool with_host_ports) const;
  void ListenToRuntime();
  void Add(const json::Value& pod);
  void Remove(const std::string& uid);

  PodWorkerContext& context_;
  client::Informer& pods_;
  std::map<std::string, RecoveredPod> recovered_;              // not claimed by an object yet
  std::map<std::string, std::unique_ptr<PodWorker>> workers_;  // by uid
  // Told by the runtime between its recovery and Start().
  struct EarlyExit {
    std::string uid, container;
    int attempt = 0;
    ContainerExit exit;
  };
  std::vector<EarlyExit> early_exits_;
  bool synced_ = false;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
