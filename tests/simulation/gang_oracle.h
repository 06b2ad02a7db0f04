// tests/simulation/gang_oracle.h
//
// GangOracle: gangs are placed whole or not at all. Sees every change of pods, nodes and PodGroups
// in the order of the log, and knows nothing of the scheduler.
//
//   begins whole     below minMember, a member is bound only if minMember members were there and
//                    room for all of them was free at some moment of the last kPlanAge (what the
//                    scheduler planned with may be that old, no older). The watch of pods may lag
//                    behind that of PodGroups, so pods count that went before their PodGroup came;
//                    and that of PodGroups behind that of pods, so the smallest minMember counts
//                    that it had in this time, though the pods were made after it had changed
//   ends whole       a gang does not stay half bound for kBindWindow while its other members are
//                    there and have room: bindings are repeated, a new scheduler goes on
//   comes first      nobody else is given the room that a half bound gang needs, unless it is whole
//                    by the minMember that counts
//   rests whole      at a fixpoint no gang is half bound whose members are there (or would be made
//                    anew by their owner), and none waits that would fit
//
// A gang is the pods of one group and one epoch; the pods that a restart leaves behind are another.
// Room is counted in devices: all pods of a job ask for as many, so counting is exact. What a node
// had counts for another kPlanAge after it went: an informer may show its pods gone before it.
//
// Thread: the simulation's.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "loop/sim_loop.h"
#include "simulation/counts.h"

namespace muster::simulation {

inline constexpr Duration kPlanAge = seconds(10);
inline constexpr Duration kBindWindow = seconds(60);

// A pod as the oracles know it.
struct PodState {
  std::string key, ns, name, group, node;
  std::string owner_uid, replica;  // "worker/2"
  std::set<std::string> devices;
  int64_t wanted_devices = 0;
  int64_t epoch = 0;
  int64_t restarts = 0;  // in place
  int64_t priority = 0;
  std::string app, nominated;  // label; node
  Time created{};              // steady
  bool deleting = false, running = false, succeeded = false, failed = false;
  bool may_preempt = true;
  bool preempted = false;  // it has to go for another one

  bool IsFinished() const { return succeeded || failed; }
};

class GangOracle {
 public:
  GangOracle(SimLoop& loop, Counts& counts, std::function<void(const std::string&)> on_violation)
      : loop_(loop), counts_(counts), on_violation_(std::move(on_violation)) {}

  // Either may be null: made or gone.
  void OnPod(const PodState* before, const PodState* after);
  // nullopt: gone.
  void OnGroup(const std::string& key, std::optional<int64_t> min_member);
  // Devices on which a pod may be placed now; nullopt: gone.
  void OnNode(const std::string& name, std::optional<int64_t> devices);

  // Time has passed.
  void Tick();
  void CheckFixpoint();

 private:
  using GangKey = std::pair<std::string, int64_t>;  // "ns/group", epoch

  struct Gang {
    int64_t pods = 0;
    int64_t members = 0;                 // neither failed nor leaving
    int64_t occupied = 0;                // of these, bound or succeeded
    int64_t bound = 0;                   // of all
    int64_t owned = 0;                   // of all: somebody makes them anew
    std::map<int64_t, int64_t> waiting;  // unbound members by the devices that they want
    std::optional<Time> placeable_at;    // the last moment
    std::map<int64_t, Time> reached_at;  // by Reach(): the last moment
    std::optional<Time> half_since;      // though its members are there and have room
    bool whole = false;                  // has been: a member that is lost later is another matter
    bool told = false;
  };
  struct Node {
    int64_t devices = 0;  // 0: gone or tainted
    int64_t used = 0;
    int64_t before = 0;  // devices until changed_at
    Time changed_at{};
  };

  void Count(const PodState& pod, int64_t times);
  int64_t MinimumOf(const GangKey& key) const;  // 0: its PodGroup is not there
  // The smallest that it had within kPlanAge.
  int64_t LeastMinimumOf(const GangKey& key) const;
  int64_t RoomFor(int64_t devices) const;
  bool IsHalf(const GangKey& key, const Gang& gang) const;
  int64_t Reach(const Gang& gang) const;
  bool IsPlaceable(const GangKey& key, const Gang& gang) const;
  void CheckBinding(const PodState& pod);
  void BeforeChange();
  void AfterChange(const PodState* bound);

  SimLoop& loop_;
  Counts& counts_;
  std::function<void(const std::string&)> on_violation_;
  std::map<GangKey, Gang> gangs_;
  std::map<std::string, int64_t> minimum_;  // by "ns/group"
  // Those before, by "ns/group": the last moment of each.
  std::map<std::string, std::map<int64_t, Time>> former_minima_;
  std::map<std::string, Node> nodes_;
  Time nodes_changed_{};
};

}  // namespace muster::simulation
