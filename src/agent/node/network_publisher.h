// src/agent/node/network_publisher.h
//
// NetworkPublisher: keeps the node's DNS and Service rules equal to what the API server and the pod
// workers say. Changes of one moment become one table; rules are applied at most every
// kRulesPeriod.
//
// Life cycle: made before the informers are started; Start() once the host network exists; destroy
// to stop. Thread:     the loop thread; the DNS server has its own, the spawner applies the rules.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/network/dns_server.h"
#include "agent/network/host_network.h"
#include "agent/spawner/spawner_client.h"
#include "client/informer.h"
#include "client/lifetime.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr Duration kRulesPeriod = milliseconds(100);
inline constexpr Duration kDnsDelay = milliseconds(1);

class NetworkPublisher {
 public:
  struct Options {
    NodeNetworkConfig network;
    std::string cluster_domain;
    std::string resolv_conf;  // the host's
    std::string rules_file;   // DIR/run/services.nft
    DnsSockets dns;           // not valid: bound by Start()
  };
  // `local_pods`: pods of this node with their addresses in status.podIP.
  NetworkPublisher(Loop& loop, Pool& pool, client::InformerSet& informers, SpawnerClient& spawner,
                   Options options, std::function<std::vector<json::Value>()> local_pods);
  ~NetworkPublisher();

  // Listens on the bridge's address.
  Status Start();
  void LocalPodsChanged() { PublishDns(); }

 private:
  void PublishDns();
  void PublishDnsNow();
  void PublishRules();
  void ApplyRules();

  Loop& loop_;
  Pool& pool_;
  client::Informer& services_;
  client::Informer& slices_;
  SpawnerClient& spawner_;
  Options options_;
  std::function<std::vector<json::Value>()> local_pods_;
  std::unique_ptr<DnsServer> dns_;
  std::string applied_rules_;
  bool started_ = false, applying_ = false, building_dns_ = false;
  TimerId dns_timer_ = 0, rules_timer_ = 0;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
