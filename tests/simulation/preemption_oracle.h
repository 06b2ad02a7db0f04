// tests/simulation/preemption_oracle.h
//
// PreemptionOracle: pods go for others only where that is needed. Sees every change of pods, nodes,
// PodGroups and PodDisruptionBudgets in the order of the log, and knows nothing of the scheduler.
//
//   for whom       a pod goes only while one of higher priority waits, or did within kPlanAge; or
//                  as the rest of a gang of which so many went that it is below its minimum: that
//                  goes later, too, by a scheduler that was started since
//   for a need     it does not go for a pod that has had room enough, free or being freed, for
//                  longer than kPlanAge: so nobody goes a second time for the same reason
//   budgets        a pod whose budget has allowed nothing for kPlanAge does not go while other pods
//                  that no budget protects could have gone for longer than that
//   gangs          of a gang that was to go nobody stays below its minimum for kBindWindow
//   rests          at a fixpoint nobody waits where pods of lower priority hold enough room, and
//                  nobody who waits is nominated: nothing is being freed any more
//
// The second and the third are looked at where one pod alone is the only one that waits with a
// higher priority: then counting devices is exact.
//
// Thread: the simulation's.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "json/value.h"
#include "loop/sim_loop.h"
#include "simulation/counts.h"
#include "simulation/gang_oracle.h"

namespace muster::simulation {

class PreemptionOracle {
 public:
  PreemptionOracle(SimLoop& loop, Counts& counts,
                   std::function<void(const std::string&)> on_violation)
      : loop_(loop), counts_(counts), on_violation_(std::move(on_violation)) {}

  // As GangOracle.
  void OnPod(const PodState* before, const PodState* after);
  void OnGroup(const std::string& key, std::optional<int64_t> min_member);
  void OnNode(const std::string& name, std::optional<int64_t> devices);
  // Null: gone.
  void OnBudget(const std::string& key, const json::Value& budget);
  void Tick();
  void CheckFixpoint();

 private:
  // One that waits with the right to preempt, or did until `last`.
  struct Wait {
    int64_t priority = 0;
    bool may_preempt = false;
    bool alone = false;  // no gang
    Time since{}, last{};
    Time cramped{};     // the last moment at which no node had room for it, free or being freed
    Time protected_{};  // the last moment at which none had, even without whom no budget protects
  };
  struct Budget {
    std::string app;
    Time allowing{};  // the last moment at which it said that it allowed anything
    int64_t allowed = 0;
  };
  using Stays = std::function<bool(const PodState&)>;

  bool HasBudget(const PodState& pod) const;
  int64_t RoomOn(const std::string& node, const Stays& stays) const;
  bool HasRoom(int64_t devices, const Stays& stays) const;
  int64_t PlacesFor(int64_t devices, const Stays& stays) const;
  void Look();  // at all that wait, before and after each change
  void CheckEviction(const PodState& victim);
  int64_t StayOf(const std::string& group) const;  // members that are bound and do not leave
  void CheckAtRest(const PodState& pod);

  SimLoop& loop_;
  Counts& counts_;
  std::function<void(const std::string&)> on_violation_;
  std::map<std::string, PodState> pods_;    // by key
  std::map<std::string, int64_t> devices_;  // of usable nodes
  std::map<std::string, int64_t> minimum_;  // by "ns/group"
  std::map<std::string, Budget> budgets_;
  std::map<std::string, Wait> waits_;   // by key of the pod
  std::map<std::string, Time> broken_;  // gangs of which some stayed: since when
};

}  // namespace muster::simulation
