// tests/simulation/oracles.h
//
// Oracles: reads every committed revision as a watcher of the store and checks what must hold after
// each.
//
//   watch equals log     revisions come one by one, each event's previous state is the one known
//   bound once           a pod's nodeName never changes
//   device owned once    no two unfinished pods of a node hold one device
//   gang all or nothing  a gang's first member is bound only when at least minMember members exist
//                        and the devices for them are free; at a fixpoint (CheckFixpoint) no gang
//                        has some but fewer than minMember bound
//   one epoch            pods of a restarted gang are made when those of the epoch before are gone
//
// Thread:     the simulation's.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/informer.h"
#include "loop/loop.h"
#include "simulation/counts.h"
#include "store/store.h"

namespace muster::simulation {

class Oracles {
 public:
  Oracles(Loop& loop, store::Store& store, Counts& counts,
          std::function<void(const std::string&)> on_violation);
  ~Oracles();

  // REQUIRES: nothing is in flight.
  void CheckFixpoint();
  // The informer holds exactly what the store does.
  void CheckInformer(const client::Informer& informer);
  // Over everything that was ever committed.
  uint64_t trace_hash() const { return trace_hash_; }
  uint64_t revisions() const { return revisions_; }

 private:
  struct Pod {
    std::string key, ns, group, node;
    std::set<std::string> devices;
    int64_t wanted_devices = 0;
    int64_t epoch = 0;
    Time created{};
    bool finished = false;
  };
  struct Gang {
    int64_t members = 0, bound = 0;
    int64_t wanted_devices = 0;
  };

  void OnEvent(const store::WatchEvent& event);
  void OnPod(const store::WatchEvent& event, const json::Value& object);
  void CheckEpoch(const Pod& pod);
  void OnBound(const std::string& uid, const Pod& pod);
  void CheckGangStart(const std::string& uid, const Pod& pod);
  void OnNode(const store::WatchEvent& event, const json::Value& object);
  void CountBranches(const store::WatchEvent& event, const json::Value& object);
  Gang CountGang(const std::string& ns, const std::string& group) const;
  int64_t FreeDevices() const;

  Loop& loop_;
  store::Store& store_;
  Counts& counts_;
  std::function<void(const std::string&)> on_violation_;
  store::Store::WatchId watch_ = 0;
  store::Revision last_revision_ = 0;
  uint64_t revisions_ = 0;
  uint64_t trace_hash_ = 0;
  std::map<std::string, store::Revision> known_;  // key -> mod_revision
  std::map<std::string, Pod> pods_;               // by UID
  std::map<std::string, int64_t> gangs_;          // "ns/name" -> minMember
  std::map<std::string, int64_t> nodes_;          // name -> devices
  Time nodes_changed_{};
};

}  // namespace muster::simulation
