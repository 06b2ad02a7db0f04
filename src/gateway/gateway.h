// src/gateway/gateway.h
//
// Gateway: how requests reach InferenceServices and InferenceGraphs. The Service of each leads
// here, to one address in the pods' network.
//
//   control-plane loop   informers -> RouteTable (immutable), TrafficScaler
//   gateway thread       Proxy, the HTTP server and client of its own
//   gateway I/O thread   sockets and framing (net::IoThreads of its own)
//
// The last two begin with the first InferenceService, and go on with the last table while the
// control-plane loop is busy.
//
// Where it cannot listen (another process came first) it says so, in the log and in the conditions
// of InferenceServices (GatewayAddress::fault), and tries again.
//
// Life cycle: made with a bound socket; Start() before the informers; the destructor cuts what is
//             in flight.
// Thread:     the control-plane loop.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/api_client.h"
#include "client/informer.h"
#include "serving/serving_pass.h"

namespace muster::gateway {

inline constexpr int kGatewayIoThreads = 1;
// Answers on their way, all connections together; a further long one gets 503.
inline constexpr size_t kMaxAllAnswerBytes = 256 * 1024 * 1024;
inline constexpr Duration kMinListenBackoff = milliseconds(100);
inline constexpr Duration kMaxListenBackoff = seconds(10);  // between two tries to listen

struct GatewayOptions {
  int bound_socket = -1;  // taken over
  // Where that leads; its fault is kept up to date here.
  serving::GatewayAddress address = {};
  // The first thing that the gateway's threads do, e.g. enter the pods' network.
  std::function<void()> on_thread_start = {};
  uint64_t seed = 1;
};

class Gateway {
 public:
  Gateway(Loop& loop, client::ApiClient& client, client::InformerSet& informers,
          GatewayOptions options);
  ~Gateway();
  void Start();
  std::string MetricsText() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::gateway
