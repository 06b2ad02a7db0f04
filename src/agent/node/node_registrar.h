// src/agent/node/node_registrar.h
//
// NodeRegistrar: keeps this machine's Node object and Lease alive: registers, renews the Lease
// every ten seconds, and writes the status when it changed, five minutes have passed, or somebody
// took the node for dead.
//
// Life cycle: Start() once; destroy to stop (the Node stays and goes NotReady by itself).
// Thread:     the loop thread.
// Source:     the kubelet's nodeStatusUpdateFrequency, nodeStatusReportFrequency and node leases
// (KEP-589).

#pragma once

#include <string>

#include "agent/node/node_object.h"
#include "base/task.h"
#include "client/api_client.h"
#include "client/lifetime.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr Duration kLeasePeriod = seconds(10);
inline constexpr Duration kNodeStatusPeriod = minutes(5);
inline constexpr Duration kRegistrationRetry = milliseconds(500);

class NodeRegistrar {
 public:
  NodeRegistrar(Loop& loop, client::ApiClient& client, NodeFacts facts);
  ~NodeRegistrar();

  // `registered` runs once, when the Node exists with our status. Failures are tried again for
  // ever.
  void Start(Task registered);
  // The node is Ready=False from now on, or Ready again if `reason` is "". The Lease is renewed as
  // before: the agent still reports what becomes of running pods.
  void ReportFault(std::string reason, std::string message);
  void ReportDiskPressure(bool pressure);
  // Takes devices, plugin_devices, gpu_labels and gpu_fault_* of `gpus`.
  void ReportGpus(const NodeFacts& gpus);

 private:
  void Register();
  void RegisterNow();
  void Create();
  void Refresh(const json::Value& node);
  void WriteStatus();
  void RenewLease();
  void CreateLease();
  // Whether the Node still says of Ready what this node said.
  void LookAtStatus();
  void Retry(const char* what, const Status& status);
  client::Target NodeTarget(const char* subresource = "") const;

  Loop& loop_;
  client::ApiClient& client_;
  NodeFacts facts_;
  Task registered_;
  std::string node_uid_;
  json::Value status_before_;
  TimerId lease_timer_ = 0, status_timer_ = 0, retry_timer_ = 0;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
