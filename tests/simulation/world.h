// tests/simulation/world.h
//
// World: one simulated cluster. A store on a disk that survives it, the real API server, scheduler
// and controllers, fake machines with agents, a network that may be bad, and oracles that see every
// revision. Any part can be killed at any time and comes back after a while.
//
// Life cycle: the API server is up after construction; Start() brings up the rest; then tell a
//             story with RunFor() and the faults, Repair(), Settle(), Judge().
// Thread:     one.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/api_client.h"
#include "loop/sim_loop.h"
#include "simulation/control_plane.h"
#include "simulation/counts.h"
#include "simulation/crash_point.h"
#include "simulation/disk.h"
#include "simulation/fake_node.h"
#include "simulation/oracles.h"

namespace muster::simulation {

inline constexpr int kDevicesPerNode = 4;

struct WorldOptions {
  uint64_t seed = 1;
  int64_t nodes = 3;
  FateFunction fate = RandomFate;
  Duration max_commit_time = milliseconds(5);
  Duration back_after = seconds(2);  // a part that died at its crash point
  bool keeps_volumes = false;        // nodes make and remove folders of local volumes
  bool store_takes_all = false;      // the store is in one process with controllers and scheduler
  bool verbose = false;              // tells every change
};

class World {
 public:
  World(WorldOptions options, Counts& counts);
  void Start();

  // ---- what one may do to it; parts that are down already stay so ----
  void SetNetwork(const FaultRates& rates) { rates_ = rates; }
  void CrashControllers(Duration away);
  void CrashScheduler(Duration away);
  // With its store, as in production. `crash`: what no commit reached is lost.
  void StopServer(bool crash, Duration away);
  void CrashAgent(size_t node, Duration away);
  void PowerCut(size_t node, Duration away);  // agent and all that runs there
  void Compact(Rng& rng);                     // at some revision of the past
  void JumpClock(Duration by);
  // "controllers", "scheduler", "store", "agent-0", ...: to be killed at one of its writes.
  CrashPoint& CrashPointOf(const std::string& part);
  std::vector<std::string> Parts() const;

  // ---- time ----
  void At(Duration delay, std::function<void()> step) { loop_.After(delay, std::move(step)); }
  void RunFor(Duration duration);
  // No faults from now on, and every part comes back.
  void Repair();
  // Runs until everything is idle, `over` holds, and that lasts; false (and a violation) when
  // `limit` passes first.
  bool Settle(const std::function<bool()>& over, Duration limit);
  void Judge();  // at the fixpoint

  // ---- to look at it ----
  SimLoop& loop() { return loop_; }
  Rng& rng() { return rng_; }
  client::ApiClient& user() { return user_; }
  Oracles& oracles() { return *oracles_; }
  bool server_up() const { return server_ != nullptr; }
  bool agent_up(size_t node) const { return nodes_[node].agent != nullptr; }
  size_t nodes() const { return nodes_.size(); }
  const std::string& node_name(size_t node) const { return nodes_[node].machine->name(); }
  const Machine& machine(size_t node) const { return *nodes_[node].machine; }
  // As the store has it; null if there is none. REQUIRES: the server is up.
  json::Value Find(const std::string& key) const;
  std::vector<json::Value> FindAll(const std::string& prefix) const;
  // What is left when all is over, without names, times and places that may differ.
  std::map<std::string, std::string> Digest() const;
  void Tell(const std::string& what) const;
  void Violation(const std::string& what);
  const std::vector<std::string>& violations() const { return violations_; }
  bool stuck() const { return stuck_; }

 private:
  struct NodePart {
    std::unique_ptr<Machine> machine;
    std::unique_ptr<NodeAgent> agent;
  };

  void StartServer();
  void StartControllers();
  void StartScheduler();
  void StartAgent(size_t node);
  bool StopAgent(size_t node, Duration away);
  void KillPart(const std::string& part);
  bool AllIdle() const;
  void CheckMachines();
  void DescribeUnrest();

  const WorldOptions options_;
  SimLoop loop_;
  Rng rng_;
  Counts& counts_;
  FaultRates rates_;
  std::vector<std::string> violations_;
  std::map<std::string, CrashPoint> crash_points_;
  Gate gate_;
  Network network_;
  const FaultRates perfect_;
  Network perfect_network_;
  std::unique_ptr<Oracles> oracles_;
  Disk disk_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<apiserver::ApiServer> server_;
  FaultyTransport user_transport_;
  client::ApiClient user_;
  std::unique_ptr<ControllerManager> controllers_;
  std::unique_ptr<SchedulerPart> scheduler_;
  std::vector<NodePart> nodes_;
  bool stuck_ = false;
};

}  // namespace muster::simulation
