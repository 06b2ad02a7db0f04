// src/agent/spawner/spawner_client.h
//
// SpawnerClient: the agent's side of the spawner's socket. Requests are answered in order; a dead
// spawner fails them all and every later one: only a restart of the process brings another one.
//
// Life cycle: owns the handle; destroy it to end the spawner. Callbacks do not run afterwards.
// Thread:     the loop thread.

#pragma once

#include <deque>
#include <memory>
#include <string>

#include "agent/spawner/spawner.h"
#include "base/status.h"
#include "base/task.h"
#include "json/value.h"
#include "loop/asio_loop.h"

namespace muster::agent {

inline constexpr size_t kMaxSpawnerRequests = 4096;

class SpawnerClient {
 public:
  using Done = Function<void(Result<json::Value>)>;

  SpawnerClient(AsioLoop& loop, SpawnerHandle handle);
  ~SpawnerClient();

  // `op` as in spawner_process.cc: createSandbox, removeSandbox, setupNetwork, applyRules.
  void Call(const std::string& op, json::Value request, Done done);

  // Runs once, when the spawner is found dead. Set it before the first Call().
  void OnLost(Task on_lost) { on_lost_ = std::move(on_lost); }

 private:
  struct Waiting {
    std::string text;  // "" once it is sent
    Done done;
  };
  void SendMore();
  void OnReadable();
  void Fail(const Status& status);

  AsioLoop& loop_;
  SpawnerHandle handle_;
  std::unique_ptr<FdWatch> watch_;
  std::deque<Waiting> waiting_;
  size_t sent_ = 0;
  int64_t next_id_ = 1;
  bool dead_ = false;
  Task on_lost_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::agent
