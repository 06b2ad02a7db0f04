// src/controllers/nodelifecycle/node_lifecycle_controller.h
//
// Notices nodes that stopped talking. A node whose Lease (namespace kube-node-lease) has not been
// renewed for kNodeMonitorGracePeriod gets Ready=Unknown and the taints node.kubernetes.io/
// unreachable; its pods are deleted once their tolerations run out; when the Node object itself is
// gone, its pods are removed by force. A node under pressure gets a taint that keeps new pods away.
// Names and times: pkg/controller/nodelifecycle of Kubernetes.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: a renewal is dated by when it was seen here, not by the node's clock: after a restart
//             of ours every node has the whole period again. Nodes that never had a Lease are left
//             alone. A pod on a silent node stays Terminating until the node answers or is removed:
//             only then is it certain that its devices are free.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

inline constexpr Duration kNodeMonitorGracePeriod = seconds(40);
inline constexpr std::string_view kNodeLeaseNamespace = "kube-node-lease";
inline constexpr std::string_view kUnreachableTaint = "node.kubernetes.io/unreachable";
inline constexpr std::string_view kNotReadyTaint = "node.kubernetes.io/not-ready";
inline constexpr std::string_view kMemoryPressureTaint = "node.kubernetes.io/memory-pressure";
inline constexpr std::string_view kDiskPressureTaint = "node.kubernetes.io/disk-pressure";
inline constexpr std::string_view kPidPressureTaint = "node.kubernetes.io/pid-pressure";

class NodeLifecycleController final : public client::Controller {
 public:
  std::string_view name() const override { return "node-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  struct Heartbeat {
    std::string renew_time;
    Time seen_at{};
  };
  Time LastHeard(const std::string& node, const json::Value& lease, Time now);

  std::map<std::string, Heartbeat> heartbeats_;
  Time last_pass_{};
};

}  // namespace muster::controllers
