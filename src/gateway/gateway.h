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
// Life cycle: made with a bound socket; Start() before the informers; the destructor cuts what is
//             in flight.
// Thread:     the control-plane loop.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/api_client.h"
#include "client/informer.h"

namespace muster::gateway {

inline constexpr int kGatewayIoThreads = 1;
inline constexpr size_t kMaxInferenceBytes = 64 * 1024 * 1024;  // of one request, of one answer

struct GatewayOptions {
  int bound_socket = -1;  // taken over
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
