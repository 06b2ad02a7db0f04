#include "simulation/trouble.h"

#include <string>
#include <utility>

namespace muster::simulation {

void Trouble::Sometimes(int64_t least, int64_t most, std::function<void()> step) {
  for (int64_t i = rng_.Between(least, most); i > 0; --i) world_.At(Anytime(), step);
}

void Trouble::Perhaps(double probability, std::function<void()> step) {
  if (rng_.Chance(probability)) world_.At(Anytime(), std::move(step));
}

void Trouble::PlanCrashes() {
  Sometimes(0, 3, [this] { world_.CrashControllers(UpTo(20'000)); });
  Sometimes(0, 3, [this] { world_.CrashScheduler(UpTo(20'000)); });
  Sometimes(0, 2, [this] { world_.StopServer(rng_.Chance(0.5), UpTo(5'000)); });
  Sometimes(0, 4, [this] { HurtANode(); });
}

void Trouble::PlanDeaths() {
  for (const std::string& part : world_.Parts()) {
    if (rng_.Chance(0.15)) DieAtAWrite(world_.CrashPointOf(part), part == "store" ? 800 : 60);
  }
}

void Trouble::DieAtAWrite(CrashPoint& crash, int64_t latest) {
  counts_.Add("fault: death at a write");
  crash.when = rng_.Chance(0.5) ? CrashPoint::When::kBefore : CrashPoint::When::kAfter;
  crash.at = crash.seen + rng_.Between(1, latest);
}

void Trouble::HurtANode() {
  const size_t node = rng_.Below(world_.nodes());
  if (!world_.agent_up(node)) return;
  // Some stay away long enough to be evicted.
  const Duration away = rng_.Chance(0.2) ? seconds(400) : UpTo(60'000);
  if (rng_.Chance(0.5)) return world_.CrashAgent(node, away);
  world_.PowerCut(node, away);
  if (rng_.Chance(0.5)) return;
  counts_.Add("fault: node removed");
  world_.At(UpTo(5'000), [this, name = world_.node_name(node)] {
    world_.user().Delete({client::resources::kNodes, "", name, ""}, {}, [](Result<json::Value>) {});
  });
}

}  // namespace muster::simulation
