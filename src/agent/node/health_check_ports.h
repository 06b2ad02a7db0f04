// src/agent/node/health_check_ports.h
//
// HealthCheckPorts: where load balancers outside ask which nodes have pods of a Service of type
// LoadBalancer with externalTrafficPolicy Local. Each such Service has an HTTP server at its
// healthCheckNodePort: 200 while there are ready endpoints on this node, else 503, with
// kube-proxy's body and headers.
//
// Life cycle: Follow() for each change of a Service; destroy to stop listening.
// Thread:     the loop thread.
// Invariants: one server for a port; a connection costs little and there are few of them; a port
//             that is taken by somebody else is tried again.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "client/informer.h"
#include "json/value.h"
#include "loop/loop.h"
#include "net/server.h"

namespace muster::agent {

inline constexpr size_t kMaxHealthConnections = 64;  // of one Service
inline constexpr Duration kHealthIdleTimeout = seconds(30);
inline constexpr Duration kHealthPortRetry = seconds(5);

class HealthCheckPorts {
 public:
  // How many ready endpoints a Service has on this node.
  using CountLocal = std::function<size_t(const client::ObjectKey& service)>;

  HealthCheckPorts(Loop& loop, net::IoThreads& io, CountLocal count_local);
  ~HealthCheckPorts();

  // `service` is null when it is gone.
  void Follow(const client::ObjectKey& key, const json::Value& service);

 private:
  class Answers;
  struct Listener {
    uint16_t port = 0;
    std::unique_ptr<Answers> answers;
    std::unique_ptr<net::HttpServer> server;  // null: the port is taken
  };
  bool Listen(const client::ObjectKey& key, Listener& listener);
  void Retry();

  Loop& loop_;
  net::IoThreads& io_;
  CountLocal count_local_;
  std::map<client::ObjectKey, Listener> listeners_;
  TimerId retry_ = 0;
};

}  // namespace muster::agent
