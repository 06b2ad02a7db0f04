// src/controllers/nodelifecycle/node_lifecycle_controller.h
//
// Notices nodes that stopped talking. A node whose Lease (namespace kube-node-lease) has not been
// renewed for kNodeMonitorGracePeriod gets Ready=Unknown; pods of a node that is not Ready are not
// Ready either. Conditions become taints: those that keep new pods away at once, those that make
// pods leave (NoExecute, see tainteviction/) one node after the other, and none while no node at
// all is Ready: then it is more likely us who lost the network. Names, times and rates:
// pkg/controller/nodelifecycle of Kubernetes.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: a renewal is dated by when it was seen here, not by the node's clock: after a restart
//             of ours every node has the whole period again. Nodes that never had a Lease are left
//             alone. A pod on a silent node stays Terminating until the node answers, is removed or
//             is declared dead (podgc/): only then is it certain that its devices are free.

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
inline constexpr std::string_view kNetworkUnavailableTaint =
    "node.kubernetes.io/network-unavailable";

// How often a node of one zone may begin to be emptied; and in a zone of which at least
// kUnhealthyZoneShare percent is not Ready, if it is large. In a small one of those: never.
inline constexpr Duration kEvictionPeriod = seconds(10);
inline constexpr Duration kSlowEvictionPeriod = seconds(100);
inline constexpr size_t kUnhealthyZoneShare = 55;
inline constexpr size_t kLargeZoneNodes = 50;  // more are large
// How often a node that may not be emptied yet looks again.
inline constexpr Duration kNodeMonitorPeriod = seconds(5);

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
  // Whether another node of the zone may begin to be emptied now; if so, it has begun. If not, the
  // pass looks again.
  bool TakeEvictionTurn(const client::Informer& nodes, const json::Value& node, Time now,
                        client::Reconciled& out);

  std::map<std::string, Heartbeat> heartbeats_;
  std::map<std::string, Time> last_turn_;  // by zone
  Time last_pass_{};
};

}  // namespace muster::controllers
