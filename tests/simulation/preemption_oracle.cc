#include "simulation/preemption_oracle.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"

namespace muster::simulation {
namespace {

bool Waits(const PodState& pod) { return pod.node.empty() && !pod.deleting && !pod.IsFinished(); }
bool HoldsRoom(const PodState& pod) { return !pod.node.empty() && !pod.IsFinished(); }
std::string GroupOf(const PodState& pod) { return pod.ns + "/" + pod.group; }

}  // namespace

bool PreemptionOracle::HasBudget(const PodState& pod) const {
  return std::any_of(budgets_.begin(), budgets_.end(),
                     [&](const auto& entry) { return entry.second.app == pod.app; });
}

// Devices of the node that are nobody's among those who stay; below zero where they lack.
int64_t PreemptionOracle::RoomOn(const std::string& node, const Stays& stays) const {
  const auto found = devices_.find(node);
  int64_t room = found == devices_.end() ? 0 : found->second;
  for (const auto& [key, pod] : pods_) {
    if (HoldsRoom(pod) && pod.node == node && stays(pod)) room -= pod.wanted_devices;
  }
  return room;
}

bool PreemptionOracle::HasRoom(int64_t devices, const Stays& stays) const {
  return PlacesFor(devices, stays) > 0;
}

// For how many pods that want so many devices.
int64_t PreemptionOracle::PlacesFor(int64_t devices, const Stays& stays) const {
  int64_t places = 0;
  for (const auto& [node, all] : devices_) {
    if (all > 0) places += std::max<int64_t>(RoomOn(node, stays), 0) / devices;
  }
  return places;
}

void PreemptionOracle::Look() {
  const Time now = loop_.Steady();
  for (const auto& [key, pod] : pods_) {
    if (!Waits(pod) || pod.wanted_devices == 0) continue;
    const auto [at, added] = waits_.try_emplace(key);
    Wait& wait = at->second;
    if (added) wait = {pod.priority, pod.may_preempt, pod.group.empty(), now, now, now, now};
    wait.last = now;
    if (!wait.alone) continue;
    const auto leaves_not = [](const PodState& other) { return !other.deleting; };
    if (!HasRoom(pod.wanted_devices, leaves_not)) wait.cramped = now;
    const auto is_protected = [&](const PodState& other) {
      const bool may_go = other.priority < pod.priority && other.group.empty();
      return !other.deleting && (!may_go || HasBudget(other));
    };
    if (!HasRoom(pod.wanted_devices, is_protected)) wait.protected_ = now;
  }
  std::erase_if(waits_, [&](const auto& entry) { return now - entry.second.last > kPlanAge; });
  for (auto& [key, budget] : budgets_) {
    if (budget.allowed > 0) budget.allowing = now;
  }
}

void PreemptionOracle::CheckEviction(const PodState& victim) {
  const Time now = loop_.Steady();
  counts_.Add("branch: pod preempted");
  if (!victim.group.empty() && !broken_.try_emplace(GroupOf(victim), now).second) {
    const auto minimum = minimum_.find(GroupOf(victim));
    if (minimum != minimum_.end() && StayOf(GroupOf(victim)) < minimum->second) return;
  }
  std::vector<const Wait*> higher;
  for (const auto& [key, wait] : waits_) {
    if (wait.may_preempt && wait.priority > victim.priority) higher.push_back(&wait);
  }
  if (higher.empty())
    return on_violation_(
        fmt::format("{} went, and nobody above {} waits", victim.key, victim.priority));
  const Wait& wait = *higher.front();
  // Whom the plan gave what looked free: also somebody who evicts nobody, or was deleted since.
  const bool room_is_given = std::any_of(waits_.begin(), waits_.end(), [&](const auto& entry) {
    return &entry.second != &wait && entry.second.priority >= wait.priority;
  });
  if (higher.size() > 1 || room_is_given || !wait.alone || wait.last != now) return;
  counts_.Add("oracle: eviction looked at for its need");
  if (now - wait.cramped > kPlanAge)
    on_violation_(fmt::format("{} went though the only one above it has room", victim.key));
  const auto is_spent = [&](const auto& entry) {
    return entry.second.app == victim.app && now - entry.second.allowing > kPlanAge;
  };
  if (!std::any_of(budgets_.begin(), budgets_.end(), is_spent)) return;
  counts_.Add("branch: budget violated, there was no other way");
  if (now - wait.protected_ > kPlanAge)
    on_violation_(fmt::format("{} went against its budget, and others could have", victim.key));
}

void PreemptionOracle::OnPod(const PodState* before, const PodState* after) {
  Look();
  const bool goes = before != nullptr && after != nullptr && !before->deleting && after->deleting;
  if (goes && after->preempted) CheckEviction(*after);
  if (before != nullptr && before->nominated.empty() && after != nullptr &&
      !after->nominated.empty()) {
    counts_.Add("branch: pod nominated");
    if (!after->may_preempt)
      on_violation_(fmt::format("{} preempts nobody and is nominated", after->key));
  }
  if (before != nullptr && after != nullptr && before->node.empty() && !after->node.empty() &&
      !before->nominated.empty()) {
    counts_.Add(before->nominated == after->node ? "branch: bound where it was nominated"
                                                 : "branch: bound elsewhere than nominated");
  }
  if (after != nullptr) {
    pods_[after->key] = *after;
  } else {
    pods_.erase(before->key);
  }
  Look();
}

void PreemptionOracle::OnGroup(const std::string& key, std::optional<int64_t> min_member) {
  if (min_member) {
    minimum_[key] = *min_member;
  } else {
    minimum_.erase(key);
  }
}

void PreemptionOracle::OnNode(const std::string& name, std::optional<int64_t> devices) {
  Look();
  if (devices.has_value()) {
    devices_[name] = *devices;
  } else {
    devices_.erase(name);
  }
  Look();
}

void PreemptionOracle::OnBudget(const std::string& key, const json::Value& budget) {
  Look();
  if (budget.IsNull()) {
    budgets_.erase(key);
  } else {
    Budget& known = budgets_[key];
    known.app = budget["spec"]["selector"]["matchLabels"]["app"].Str();
    known.allowed = budget["status"]["disruptionsAllowed"].AsInt();
  }
  Look();
}

int64_t PreemptionOracle::StayOf(const std::string& group) const {
  return std::count_if(pods_.begin(), pods_.end(), [&](const auto& each) {
    // Who was on a node that is no more is pod GC's.
    return HoldsRoom(each.second) && devices_.contains(each.second.node) &&
           !each.second.deleting && GroupOf(each.second) == group;
  });
}

// A gang that some had to leave: who is still bound, and does not leave?
void PreemptionOracle::Tick() {
  const Time now = loop_.Steady();
  std::erase_if(broken_, [&](const auto& entry) {
    const auto& [group, since] = entry;
    const auto minimum = minimum_.find(group);
    const int64_t stay = StayOf(group);
    if (minimum == minimum_.end() || stay == 0 || stay >= minimum->second) {
      counts_.Add(stay == 0 ? "branch: gang preempted whole" : "branch: gang preempted in part");
      return true;
    }
    if (now - since <= kBindWindow) return false;
    on_violation_(
        fmt::format("gang {} of {} was to go, and {} stay", group, minimum->second, stay));
    return true;
  });
}

void PreemptionOracle::CheckAtRest(const PodState& pod) {
  if (!Waits(pod)) return;
  if (!pod.nominated.empty())
    on_violation_(fmt::format("{} rests nominated on {}", pod.key, pod.nominated));
  if (!pod.may_preempt || pod.wanted_devices == 0) return;
  const auto stays = [&](const PodState& other) { return other.priority >= pod.priority; };
  int64_t needed = 1;
  if (!pod.group.empty()) {
    const auto minimum = minimum_.find(GroupOf(pod));
    if (minimum == minimum_.end()) return;
    int64_t members = 0, bound = 0;
    for (const auto& [key, other] : pods_) {
      if (GroupOf(other) != GroupOf(pod) || other.deleting || other.failed) continue;
      ++members;
      if (!other.node.empty()) ++bound;
    }
    if (members < minimum->second) return;
    needed = std::max<int64_t>(minimum->second - bound, 1);
  }
  counts_.Add("branch: waits though it may preempt");
  if (PlacesFor(pod.wanted_devices, stays) < needed) return;
  std::string holders;
  for (const auto& [key, other] : pods_) {
    if (!HoldsRoom(other) || stays(other)) continue;
    holders += fmt::format(" {} ({} on {})", other.name, other.priority, other.node);
  }
  on_violation_(fmt::format("{} ({}) rests waiting, and lower ones hold its room:{}", pod.key,
                            pod.priority, holders));
}

void PreemptionOracle::CheckFixpoint() {
  for (const auto& [key, pod] : pods_) CheckAtRest(pod);
}

}  // namespace muster::simulation
