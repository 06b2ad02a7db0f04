// src/agent/spawner/spawner_client.h
//
// SpawnerClient: the agent's side of the spawner's socket. Requests are answered in order. When the
// spawner dies, another one is started and what had no answer is asked again: every operation may
// be repeated. A request that has lost kMaxSpawnerLosses spawners fails.
//
// Life cycle: owns the handle; destroy it to end the spawner. Callbacks do not run afterwards.
// Thread:     the loop thread.

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "agent/spawner/spawner.h"
#include "base/status.h"
#include "base/task.h"
#include "json/value.h"
#include "loop/asio_loop.h"

namespace muster::agent {

inline constexpr size_t kMaxSpawnerRequests = 4096;
inline constexpr int kMaxSpawnerLosses = 3;  // of one request: it may be what kills them
inline constexpr Duration kSpawnerRetry = seconds(1);

class SpawnerClient {
 public:
  using Done = Function<void(Result<json::Value>)>;

  using Respawn = std::function<Result<SpawnerHandle>()>;

  SpawnerClient(AsioLoop& loop, SpawnerHandle handle, Respawn respawn);
  ~SpawnerClient();

  // `op` as in spawner_process.cc: createSandbox, removeSandbox, setupNetwork, applyServices,
  // applyPolicies.
  void Call(const std::string& op, json::Value request, Done done);

  pid_t pid() const { return handle_.pid(); }

  // `on_state` gets why no spawner can be started, and Ok when there is one again. Requests wait
  // meanwhile.
  void OnState(std::function<void(const Status&)> on_state) { on_state_ = std::move(on_state); }

 private:
  struct Waiting {
    std::string text;
    Done done;
    int losses = 0;  // spawners that died while they had it
  };
  void SendMore();
  void OnReadable();
  void OnLost();
  void Start();
  void FailLater(Done done, Status status);

  AsioLoop& loop_;
  SpawnerHandle handle_;
  Respawn respawn_;
  std::unique_ptr<FdWatch> watch_;  // while there is a spawner
  std::deque<Waiting> waiting_;
  size_t sent_ = 0;  // of waiting_, the first ones
  int64_t next_id_ = 1;
  TimerId retry_ = 0;
  std::function<void(const Status&)> on_state_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::agent
