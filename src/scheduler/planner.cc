#include "scheduler/planner.h"

#include <algorithm>
#include <numeric>

#include "scheduler/diagnosis.h"
#include "scheduler/gang_planner.h"
#include "scheduler/node_finder.h"

namespace muster::scheduler {

namespace {

UnitPlan PlanUnit(const Unit& unit, size_t position, NodeFinder& finder, SearchBudget& budget,
                  bool& complete) {
  UnitPlan plan;
  plan.unit = position;
  complete = false;
  if (!HasItsMembers(unit)) return plan;
  const GangAttempt attempt = PlaceGang(unit, finder, budget);
  const cluster::ClusterSnapshot& snapshot = finder.snapshot();
  plan.assignments.reserve(attempt.placed.size());
  for (const PlacedPod& placed : attempt.placed) {
    const cluster::Placement& placement = snapshot.At(placed.placement);
    plan.assignments.push_back({placed.pod, snapshot.Node(placement.node).name, placement.devices});
  }
  complete = plan.assignments.size() == unit.pods.size();
  return plan;
}

// The pods of the unit that were not placed, as a unit of its own.
Unit Rest(const Unit& unit, const UnitPlan& plan) {
  if (plan.assignments.empty()) return unit;
  Unit rest = unit;
  rest.pods.clear();
  rest.occupied += static_cast<int64_t>(plan.assignments.size());
  rest.min_resources.clear();
  size_t next = 0;
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    if (next < plan.assignments.size() && plan.assignments[next].pod == position) {
      if (unit.pods[position].task != kNoTask) ++rest.tasks[unit.pods[position].task].occupied;
      ++next;
    } else {
      rest.pods.push_back(unit.pods[position]);
    }
  }
  return rest;
}

// Units that look at other pods may fit now, beside those that were placed after they were refused.
void PlaceAfterOthers(const Queue& queue, NodeFinder& finder, SearchBudget& budget,
                      PlanResult& result, std::vector<size_t>& refused) {
  bool progress = refused.size() < result.units.size();
  while (progress) {
    progress = false;
    std::erase_if(refused, [&](size_t position) {
      UnitPlan& plan = result.units[position];
      const Unit& unit = queue[plan.unit];
      if (!plan.assignments.empty() || !LooksAtPods(unit, finder)) return false;
      bool complete = false;
      plan = PlanUnit(unit, plan.unit, finder, budget, complete);
      progress |= !plan.assignments.empty();
      return complete;
    });
  }
}

}  // namespace

PlanResult Plan(cluster::ClusterSnapshot snapshot, const Queue& queue, const PlannerConfig& config,
                Time) {
  std::vector<size_t> order(queue.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return GoesBefore(queue[a], queue[b]); });

  PlanResult result;
  result.packing = Learn(snapshot, queue, config.packing);
  NodeFinder finder(snapshot, result.packing);
  SearchBudget budget;
  result.units.reserve(queue.size());
  std::vector<size_t> refused;  // positions in result.units
  for (const size_t position : order) {
    bool complete = false;
    result.units.push_back(PlanUnit(queue[position], position, finder, budget, complete));
    if (!complete) refused.push_back(result.units.size() - 1);
  }
  PlaceAfterOthers(queue, finder, budget, result, refused);
  // Explained at the end, so that what a unit reads about free room is still true when it reads it.
  if (!config.explain) return result;
  Diagnosis diagnosis(finder, config.max_unblock_work, config.detail);
  for (const size_t position : refused) {
    UnitPlan& plan = result.units[position];
    if (config.explain_only.value_or(plan.unit) != plan.unit) continue;
    plan.infeasible = diagnosis.Explain(Rest(queue[plan.unit], plan));
  }
  return result;
}

}  // namespace muster::scheduler
