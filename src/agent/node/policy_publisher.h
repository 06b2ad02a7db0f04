// src/agent/node/policy_publisher.h
//
// PolicyPublisher: keeps the node's packet filter equal to what the cluster's network policies say
// of the pods that are here, and tells a pod's worker when that holds for its pod.
//
// A pass plans everything anew and sends the table when it differs from the last one. Changes that
// come while a pass is under way make one more behind it; the first after a while begins at once,
// so that a pod that waits for it waits for no timer. Without policies no pass is needed.
//
// A watch may be behind: of a pod that is about to start, the server is asked which policies its
// namespace has, and the pod waits until the watch, and then a pass, has seen all of these.
//
// Life cycle: made before the informers are started; Start() once the host network exists; destroy
//             to stop.
// Thread:     the loop thread; plans on the pool, the spawner applies the table.
// Invariants: a pod is said to be in force only after a pass was applied that knew its address and
//             every policy that was there before the pod; until the first pass nobody knows what
//             an earlier agent left: all pods wait for it.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/network/host_network.h"
#include "agent/pod_workers/policy_guard.h"
#include "agent/spawner/spawner_client.h"
#include "base/status.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/lifetime.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr Duration kPoliciesRetry = seconds(1);
// While the watch is behind, or the server does not answer.
inline constexpr Duration kLookAgain = milliseconds(50);

class PolicyPublisher : public PolicyGuard {
 public:
  struct Node {
    std::string name;
    NodeNetworkConfig network;
    std::string table_file;  // DIR/run/policies, for what does not fit a message
    std::function<std::vector<json::Value>()>
        pods;                                   // that are here, their addresses in status.podIP
    std::function<void()> on_policies_changed;  // Look() may answer otherwise
  };

  PolicyPublisher(Loop& loop, Pool& pool, client::ApiClient& client, client::InformerSet& informers,
                  client::Informer& pods_of_node, SpawnerClient& spawner,
                  client::EventRecorder& events, Node node);
  ~PolicyPublisher() override;

  // REQUIRES: the pods' workers have subscribed to `pods_of_node` before, so that they know of a
  // change when a pass asks them.
  void Start();
  // A pod of this node got or lost its address.
  void LocalPodsChanged();
  Answer Look(const json::Value& pod, const std::string& address) override;

 private:
  using Place = std::pair<std::string, std::string>;  // uid, address

  bool Known() const;
  // Nothing restricts a pod, and the kernel knows that.
  bool IsIdle() const;
  // The revision that the watch must have seen for this pod; nullopt: it has just been asked for.
  std::optional<uint64_t> RevisionFor(const Place& place, const std::string& ns);
  void ForgetTheGone();
  void LookAgainLater();
  void Changed();
  void Plan();
  void Apply(std::string table);
  void OnApplied(std::string table, const Status& status);

  Loop& loop_;
  Pool& pool_;
  client::ApiClient& client_;
  client::Informer& policies_;
  client::Informer& namespaces_;
  client::Informer& pods_;          // of the whole cluster
  client::Informer& pods_of_node_;  // what their workers see
  SpawnerClient& spawner_;
  client::EventRecorder& events_;
  Node node_;
  bool started_ = false, planning_ = false, again_ = false;
  bool applied_once_ = false;
  std::string applied_;  // the table that the kernel has
  std::string failure_;  // of the last pass
  std::set<Place> planned_, in_force_;
  uint64_t planned_revision_ = 0, applied_revision_ = 0;  // of the policies
  // Of pods that wait: RevisionFor(), nullopt until the server has answered.
  std::map<Place, std::optional<uint64_t>> revisions_;
  TimerId retry_ = 0, look_again_ = 0;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
