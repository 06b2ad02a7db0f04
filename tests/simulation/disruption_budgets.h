// tests/simulation/disruption_budgets.h
//
// What a story about preemption needs and the API server does not bring: priority classes, and
// PodDisruptionBudgets, with what their controller does: it says how many pods of an app may go.
// They are a custom kind in a group of their own, since one without a dot cannot be made; who asks
// for group policy gets it (control_plane.h).
//
// Thread: the simulation's.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "client/api_client.h"

namespace muster::simulation {

class World;

inline const client::Resource kBudgets{"policy.simulation.test", "v1", "poddisruptionbudgets"};
inline constexpr std::string_view kBudgetPrefix =
    "/registry/policy.simulation.test/poddisruptionbudgets/";

// low (10), middle (100), high (1000), and polite (2000), which preempts nobody.
void MakePriorities(World& world);

// From now on, until the world ends.
void ServeBudgets(World& world);
// So many pods with label app=APP are to run, at least.
void MakeBudget(World& world, const std::string& app, int64_t min_available);

}  // namespace muster::simulation
