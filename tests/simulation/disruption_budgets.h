// tests/simulation/disruption_budgets.h
//
// What a story about preemption begins with: priority classes and PodDisruptionBudgets.
//
// Thread: the simulation's.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::simulation {

class World;

inline constexpr std::string_view kBudgetPrefix = "/registry/policy/poddisruptionbudgets/";

// low (10), middle (100), high (1000), and polite (2000), which preempts nobody.
void MakePriorities(World& world);

// So many pods with label app=APP are to run, at least.
void MakeBudget(World& world, const std::string& app, int64_t min_available);

}  // namespace muster::simulation
