// src/agent/probes/node_handler_runner.h
//
// NodeHandlerRunner: commands in containers through the runtime, HTTP, TCP and gRPC from the node.
// As upstream it is the node that asks, not the pod: "localhost" in a probe is the node's.
//
// Life cycle: one per agent. Loop, runtime and I/O threads outlive it; `io` must run in the node's
//             network namespace.
// Thread:     the loop thread; bytes move on the I/O threads.

#pragma once

#include <memory>

#include "agent/probes/handler_runner.h"
#include "agent/runtime/pod_runtime.h"
#include "loop/asio_loop.h"
#include "net/client.h"
#include "net/io_threads.h"

namespace muster::agent {

// Of hooks, which have no timeout of their own; probes end earlier.
inline constexpr Duration kHandlerConnectTimeout = minutes(5);

class NodeHandlerRunner final : public HandlerRunner {
 public:
  NodeHandlerRunner(AsioLoop& loop, net::IoThreads& io, PodRuntime& runtime);

  std::unique_ptr<HandlerRun> Run(const HandlerTarget& target, const HandlerAction& action,
                                  std::optional<Duration> timeout, Done done) override;

 private:
  AsioLoop& loop_;
  PodRuntime& runtime_;
  std::unique_ptr<net::HttpClient> client_;
};

}  // namespace muster::agent
