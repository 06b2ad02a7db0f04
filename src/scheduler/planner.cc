#include "scheduler/planner.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

#include "scheduler/diagnosis.h"
#include "scheduler/gang_completion.h"
#include "scheduler/gang_planner.h"
#include "scheduler/node_finder.h"
#include "scheduler/reservations.h"

namespace muster::scheduler {

namespace {

// The positions in Unit::pods of those that were not placed.
std::vector<size_t> NotPlaced(const Unit& unit, const UnitPlan& plan) {
  std::vector<size_t> positions;
  size_t next = 0;
  for (size_t position = 0; position < unit.pods.size(); ++position) {
    if (next < plan.assignments.size() && plan.assignments[next].pod == position) {
      ++next;
    } else {
      positions.push_back(position);
    }
  }
  return positions;
}

// They as a unit of its own.
Unit Rest(const Unit& unit, const UnitPlan& plan) {
  if (plan.assignments.empty()) return unit;
  Unit rest = unit;
  rest.pods.clear();
  rest.occupied += static_cast<int64_t>(plan.assignments.size());
  rest.min_resources.clear();
  for (const Assignment& assignment : plan.assignments) {
    const size_t task = unit.pods[assignment.pod].task;
    if (task != kNoTask) ++rest.tasks[task].occupied;
    const size_t sub_group = unit.pods[assignment.pod].sub_group;
    if (sub_group != kNoSubGroup) ++rest.sub_groups.groups[sub_group].occupied;
  }
  for (const size_t position : NotPlaced(unit, plan)) rest.pods.push_back(unit.pods[position]);
  return rest;
}

// One plan under way.
struct Planning {
  Planning(cluster::ClusterSnapshot& snapshot, const Queue& units, PlanResult& out)
      : queue(units), result(out), finder(snapshot, out.packing), reservations(units, finder) {}

  // The positions in the queue, in the order in which units are placed.
  std::vector<size_t> Order() const {
    std::vector<size_t> order;
    order.reserve(queue.size());
    for (size_t position = 0; position < queue.size(); ++position) {
      if (!queue[position].rests) order.push_back(position);
    }
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return GoesBefore(queue[a], queue[b]); });
    return order;
  }

  // True if all of the unit's pods got their places.
  bool PlanUnit(size_t position, UnitPlan& plan) {
    reservations.At(position);
    return TakeOver(position, PlaceGang(queue[position], finder, search), plan);
  }

  // The same for one of which a part is placed.
  bool PlanRest(size_t position, GangAttempt attempt, UnitPlan& plan) {
    reservations.At(position);
    PlaceMore(queue[position], finder, search, attempt);
    return TakeOver(position, std::move(attempt), plan);
  }

  bool TakeOver(size_t position, GangAttempt attempt, UnitPlan& plan) {
    plan = {};
    plan.unit = position;
    std::sort(attempt.placed.begin(), attempt.placed.end(),
              [](const PlacedPod& a, const PlacedPod& b) { return a.pod < b.pod; });
    const cluster::ClusterSnapshot& snapshot = finder.snapshot();
    plan.assignments.reserve(attempt.placed.size());
    for (const PlacedPod& placed : attempt.placed) {
      const cluster::Placement& placement = snapshot.At(placed.placement);
      plan.assignments.push_back(
          {placed.pod, snapshot.Node(placement.node).name, placement.devices,
           finder.pod_rules().volumes().ChoicesOf(placement.shape, placement.node)});
      room_was_freed |= reservations.Placed(placed.pod, placement.node);
    }
    return plan.assignments.size() == queue[position].pods.size();
  }

  // What gangs need of which a part is bound. They are the first in the order.
  std::vector<GangAttempt> CompleteUnits(const std::vector<size_t>& order) {
    std::vector<const Unit*> units;
    std::deque<Unit> with_sub_groups;  // that have to be whole, too
    for (const size_t position : order) {
      if (!queue[position].IsCompleting()) break;
      units.push_back(&queue[position]);
      if (!queue[position].sub_groups.AnyIsBegun()) continue;
      units.back() = &with_sub_groups.emplace_back(queue[position]);
      for (SubGroup& each : with_sub_groups.back().sub_groups.groups)
        each.is_required = each.IsBegun();
    }
    if (units.empty()) return {};
    if (units.size() == 1) reservations.At(order.front());
    std::vector<GangAttempt> attempts = CompleteGangs(units, finder, search);
    for (size_t i = 0; i < units.size(); ++i) {
      TakeBackElastic(*units[i], finder, attempts[i]);
      reservations.At(order[i]);
      TakeOver(order[i], attempts[i], result.units[i]);
    }
    return attempts;
  }

  void PlaceUnits() {
    const std::vector<size_t> order = Order();
    result.units.resize(order.size());
    std::vector<GangAttempt> begun = CompleteUnits(order);
    std::vector<size_t> turns(order.size());
    std::iota(turns.begin(), turns.end(), size_t{0});
    if (!begun.empty()) {
      std::sort(turns.begin(), turns.end(),
                [&](size_t a, size_t b) { return RanksBefore(queue[order[a]], queue[order[b]]); });
    }
    for (const size_t i : turns) {
      UnitPlan& plan = result.units[i];
      const bool has_begun = i < begun.size() && !begun[i].placed.empty();
      if (has_begun ? !PlanRest(order[i], std::move(begun[i]), plan) : !PlanUnit(order[i], plan))
        refused.push_back(i);
    }
    std::sort(refused.begin(), refused.end());
  }

  // Units that look at other pods may fit now, beside those that were placed after they were
  // refused; any unit where a nominated pod went elsewhere.
  void PlaceAfterOthers() {
    bool progress = refused.size() < result.units.size();
    while (progress) {
      progress = false;
      const bool all = std::exchange(room_was_freed, false);
      std::erase_if(refused, [&](size_t position) {
        UnitPlan& plan = result.units[position];
        if (!plan.assignments.empty() || !(all || LooksAtPods(queue[plan.unit], finder)))
          return false;
        const bool complete = PlanUnit(plan.unit, plan);
        progress |= !plan.assignments.empty();
        return complete;
      });
    }
    reservations.Leave();
  }

  // Some unit might evict pods that this plan placed, once they are there.
  bool PlacedSomebodyWhoMayHaveToGo() const {
    int64_t lowest = INT64_MAX;
    for (const UnitPlan& plan : result.units) {
      if (!plan.assignments.empty()) lowest = std::min(lowest, queue[plan.unit].priority);
    }
    return std::any_of(refused.begin(), refused.end(), [&](size_t position) {
      const UnitPlan& plan = result.units[position];
      const Unit& unit = queue[plan.unit];
      return unit.may_preempt && unit.priority > lowest && HasItsMembers(unit) &&
             plan.room != PreemptionPlanner::Outcome::kRoom;
    });
  }

  void MakeRoom(const PreemptionFacts& facts, size_t max_work, Time now) {
    const int64_t lowest = LowestPriority(facts);
    std::optional<PreemptionPlanner> planner;  // reading all facts pays only if somebody asks
    Reservations others = reservations;
    for (const size_t position : refused) {
      UnitPlan& plan = result.units[position];
      const Unit& unit = queue[plan.unit];
      const bool may_evict = unit.may_preempt && unit.priority > lowest;
      const bool nominated =
          std::any_of(unit.pods.begin(), unit.pods.end(),
                      [](const QueuedPod& pod) { return pod.nominated != cluster::kNoIndex; });
      if (!(may_evict || nominated) || !HasItsMembers(unit)) {
        plan.room = PreemptionPlanner::Outcome::kNoRoom;
        result.plan_again |= nominated;
        continue;
      }
      if (!planner.has_value()) {
        planner.emplace(finder, facts, max_work, now);
        for (const UnitPlan& each : result.units) {
          if (queue[each.unit].is_gang && !each.assignments.empty())
            planner->Grows(queue[each.unit]);
        }
      }
      others.At(plan.unit);
      const Unit rest = Rest(unit, plan);
      plan.room = planner->MakeRoom(rest, may_evict, plan.preemption);
      if (may_evict) ++result.preemption_attempts;
      result.plan_again |= plan.room == PreemptionPlanner::Outcome::kUndecided;
      const std::vector<size_t> waiting = NotPlaced(unit, plan);
      for (Nomination& nomination : plan.preemption.nominations) {
        nomination.pod = waiting[nomination.pod];
        others.Placed(nomination.pod, cluster::kNoIndex);
      }
      // What this plan kept for it is everybody's from now on.
      result.plan_again |= nominated && plan.room == PreemptionPlanner::Outcome::kNoRoom;
    }
    others.Leave();
  }

  // At the end, so that what a unit reads about free room is still true when it reads it.
  void ExplainRefused(const PlannerConfig& config) {
    Diagnosis diagnosis(finder, config.max_unblock_work, config.detail);
    for (const size_t position : refused) {
      UnitPlan& plan = result.units[position];
      if (config.explain_only.value_or(plan.unit) != plan.unit) continue;
      reservations.At(plan.unit);
      plan.infeasible = diagnosis.Explain(Rest(queue[plan.unit], plan));
    }
  }

  const Queue& queue;
  PlanResult& result;
  NodeFinder finder;
  Reservations reservations;
  std::vector<size_t> refused;  // positions in result.units: some pod found no place
  bool room_was_freed = false;
  SearchBudget search;
};

}  // namespace

PlanResult Plan(cluster::ClusterSnapshot snapshot, const Queue& queue, const PlannerConfig& config,
                Time now, const PreemptionFacts& preemption) {
  PlanResult result;
  result.packing = Learn(snapshot, queue, config.packing);
  Planning planning(snapshot, queue, result);
  planning.PlaceUnits();
  planning.PlaceAfterOthers();
  result.search_looks = kMaxSearchLooks - planning.search.looks_left;
  if (!preemption.pods.empty()) planning.MakeRoom(preemption, config.max_preemption_work, now);
  result.plan_again |= planning.PlacedSomebodyWhoMayHaveToGo();
  if (config.explain) planning.ExplainRefused(config);
  return result;
}

}  // namespace muster::scheduler
