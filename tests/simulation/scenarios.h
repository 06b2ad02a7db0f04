// tests/simulation/scenarios.h
//
// Named scenarios on a perfect network, each told undisturbed once and then again with one part
// killed right before or right after its k-th write, for every k. However it dies, the world must
// come to the same end.
//
// Thread: one.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/counts.h"
#include "simulation/crash_point.h"
#include "simulation/story.h"

namespace muster::simulation {

// Who dies, and when. `part`: controllers, scheduler, agent-N; store (the API server with it);
// process (all but the agents).
struct Death {
  std::string scenario;
  std::string part;
  CrashPoint::When when = CrashPoint::When::kNever;
  int64_t at = 0;

  std::string ToString() const;  // "gang-start/controllers/before/3"
};
// nullopt: not of that form.
std::optional<Death> ParseDeath(std::string_view text);

std::vector<std::string> ScenarioNames();
// Every death there is in a scenario; makes the undisturbed run.
std::vector<Death> DeathsIn(const std::string& scenario);
Outcome RunScenario(const Death& death, Counts& counts, bool verbose);

}  // namespace muster::simulation
