// src/agent/node/network_publisher.h
//
// NetworkPublisher: keeps the node's DNS and the rules of Services and hostPorts equal to what the
// API server and the pod workers say. Changes of one moment become one DNS table and one change of
// rules; a change of rules is planned for the Services that it concerns, which are all of them when
// the node comes into another zone.
//
// Life cycle: made before the informers are started; Start() once the host network exists; destroy
//             to stop.
// Thread:     the loop thread; plans on the pool, the DNS server has its own thread, the spawner
//             applies the rules.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/network/dns_server.h"
#include "agent/network/host_network.h"
#include "agent/network/service_planner.h"
#include "agent/node/health_check_ports.h"
#include "agent/spawner/spawner_client.h"
#include "client/informer.h"
#include "client/lifetime.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr Duration kRulesDelay = milliseconds(2);
inline constexpr Duration kRulesRetry = seconds(1);
inline constexpr Duration kDnsDelay = milliseconds(1);

class NetworkPublisher {
 public:
  struct Options {
    NodeNetworkConfig network;
    std::string node_name;
    std::string cluster_domain;
    std::string resolv_conf;  // the host's
    std::string table_file;   // DIR/run/services, for a table that does not fit a message
    DnsSockets dns;           // not valid: bound by Start()
    // Of the machine's network, for healthCheckNodePorts; null: the node's network is another one,
    // which no load balancer reaches.
    net::IoThreads* health_io = nullptr;
  };
  // Pods of this node, with their addresses in status.podIP.
  struct LocalPods {
    std::function<std::vector<json::Value>()> all;
    // Those that have hostPorts; nullopt: those of an earlier run are not known yet, and rules stay
    // as they are.
    std::function<std::optional<std::vector<json::Value>>()> with_host_ports;
  };
  NetworkPublisher(Loop& loop, Pool& pool, client::InformerSet& informers, SpawnerClient& spawner,
                   Options options, LocalPods local_pods);
  ~NetworkPublisher();

  // Listens on the bridge's address.
  Status Start();
  void LocalPodsChanged();

 private:
  void PublishDns();
  void PublishDnsNow();
  void NoteService(const client::ObjectKey& service);
  void NoteSlice(const json::Value& slice);
  void NoteNode(const json::Value& before, const json::Value& after);
  std::vector<json::Value> SlicesOf(const client::ObjectKey& service) const;
  void NoteHostPorts(const std::vector<json::Value>& pods);
  void PublishRules(Duration delay);
  void PlanRules();
  void ApplyRules(const std::string& table);
  void OnApplied(const Status& status);

  Loop& loop_;
  Pool& pool_;
  client::Informer& services_;
  client::Informer& slices_;
  client::Informer& node_;  // this one alone
  SpawnerClient& spawner_;
  Options options_;
  LocalPods local_pods_;
  std::unique_ptr<DnsServer> dns_;
  std::unique_ptr<HealthCheckPorts> health_checks_;
  std::set<client::ObjectKey> changed_services_;       // not planned yet
  std::map<std::string, ServiceTable> host_ports_;     // by the pod's uid
  std::map<std::string, ServiceTable> changed_ports_;  // not planned yet
  std::shared_ptr<ServiceRows> rows_ =
      std::make_shared<ServiceRows>();  // the pool's while planning_
  bool whole_table_ = true;             // the spawner must hear everything, not the changes alone
  bool host_ports_known_ = false;
  bool started_ = false, planning_ = false, building_dns_ = false;
  TimerId dns_timer_ = 0, rules_timer_ = 0;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
