// src/agent/runtime/shim_client.h
//
// ShimClient: the agent's connection to one pod's shim.
//
// Life cycle: Connect(); destroy to disconnect (the shim goes on). No callback runs afterwards.
// Thread:     the loop thread.
// Invariants: answers come in the order of the requests; after on_gone every request fails.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/runtime/wire.h"
#include "base/status.h"
#include "base/task.h"
#include "json/value.h"
#include "loop/asio_loop.h"

namespace muster::agent {

inline constexpr Duration kWireRetryDelay = milliseconds(1);

class ShimClient {
 public:
  using Done = Function<void(Result<WireFrame>)>;

  struct Events {
    std::function<void(const json::Value& event)> on_event;
    std::function<void()> on_gone;
  };

  static Result<std::unique_ptr<ShimClient>> Connect(AsioLoop& loop, const std::string& pod_dir,
                                                     Events events);
  ~ShimClient();

  void Call(const std::string& op, json::Value request, Done done);

 private:
  ShimClient(AsioLoop& loop, UniqueFd fd, Events events);
  void OnReadable();
  void FlushLater();
  void FailAll();

  AsioLoop& loop_;
  WireConnection connection_;
  Events events_;
  std::map<int64_t, Done> waiting_;
  int64_t next_id_ = 1;
  bool gone_ = false;
  TimerId flush_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<FdWatch> watch_;
};

}  // namespace muster::agent
