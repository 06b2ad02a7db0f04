// tests/simulation/fake_node.h
//
// A machine with devices, and the agent on it, without processes: pods run for a while and end with
// a code, as their fate is.
//
//   Machine    what really runs. Survives a crash of the agent, not a power cut.
//   NodeAgent  what talks to the API server: registers the node, renews its lease, starts and stops
//              pods, reports.
//
// Thread: the simulation's.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/api_client.h"
#include "client/informer.h"
#include "loop/loop.h"
#include "simulation/faulty_transport.h"
#include "simulation/node_volumes.h"

namespace muster::simulation {

// What becomes of a pod, known beforehand: by its UID and by how often it was restarted.
struct Fate {
  Duration starts_in = milliseconds(100);
  Duration runs_for = seconds(10);
  int exit_code = 0;
  Duration stops_in = milliseconds(500);  // once it is told to
};
using FateFunction = std::function<Fate(const json::Value& pod, int64_t restarts)>;
Fate RandomFate(const json::Value& pod, int64_t restarts);
// A pod with this annotation runs for so many milliseconds and ends well, whatever its UID.
inline constexpr std::string_view kRunsForAnnotation = "simulation/runs-for-ms";
inline constexpr std::string_view kForEverMs = "1000000000";

struct ProcessState {
  enum class Phase : uint8_t { kStarting, kRunning, kExited };
  Phase phase = Phase::kStarting;
  int exit_code = 0;
  int64_t restarts = 0;
  std::string restart_policy;
  std::set<std::string> devices;
};

class Machine {
 public:
  // `on_change(pod uid)` tells the agent; `on_violation` is an oracle.
  Machine(Loop& loop, std::string name, FateFunction fate,
          std::function<void(const std::string&)> on_violation);
  ~Machine();

  void Start(const std::string& uid, const json::Value& pod, int64_t restarts);
  Fate FateOf(const json::Value& pod, int64_t restarts) const { return fate_(pod, restarts); }
  void Kill(const std::string& uid);
  void PowerCut();  // everything that ran is gone, and nothing remembers it
  const ProcessState* Find(const std::string& uid) const;
  std::vector<std::string> Uids() const;
  void Listen(std::function<void(const std::string& uid)> on_change);
  const std::string& name() const { return name_; }
  // Folders of local volumes, by the name of the volume. They outlive a power cut.
  std::set<std::string>& folders() { return folders_; }
  const std::set<std::string>& folders() const { return folders_; }

 private:
  struct Process {
    ProcessState state;
    json::Value pod;
    TimerId timer = 0;
  };
  void ScheduleEnd(const std::string& uid);
  void OnEnd(const std::string& uid);
  void Changed(const std::string& uid);

  Loop& loop_;
  const std::string name_;
  const FateFunction fate_;
  std::function<void(const std::string&)> on_violation_;
  std::function<void(const std::string&)> on_change_;
  std::map<std::string, Process> processes_;
  std::set<std::string> folders_;
};

class NodeAgent {
 public:
  struct Options {
    int devices = 0;
    bool keeps_volumes = false;  // node_volumes.h
  };
  NodeAgent(const Network& network, Machine& machine, Options options, Rng rng, CrashPoint* crash);
  ~NodeAgent();

  // Nothing to report and nothing to stop (leases do not count).
  bool Idle() const;

 private:
  struct PodWork {
    bool sending = false;
    bool again = false;
    TimerId timer = 0;
  };

  void Register();
  void Heartbeat();
  void PostNodeStatus();
  void Sync(const client::ObjectKey& key);
  void OnSynced();
  void Report(const client::ObjectKey& key, const json::Value& pod, const ProcessState& state);
  void Terminate(const client::ObjectKey& key, const json::Value& pod);
  void Finished(const client::ObjectKey& key, bool ok);
  json::Value NodeObject() const;

  Loop& loop_;
  Machine& machine_;
  const Options options_;
  Rng rng_;
  Counts& counts_;
  FaultyTransport link_;
  client::ApiClient client_;
  client::InformerSet informers_;
  std::unique_ptr<NodeVolumes> volumes_;
  std::map<client::ObjectKey, PodWork> work_;
  std::map<std::string, client::ObjectKey> keys_;  // of the pods that were seen, by UID
  client::Lifetime lifetime_;
};

}  // namespace muster::simulation
