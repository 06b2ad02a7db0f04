#include "simulation/gang_oracle.h"

#include <algorithm>

#include "base/status.h"

namespace muster::simulation {
namespace {

std::string GroupOf(const PodState& pod) { return pod.ns + "/" + pod.group; }

bool IsMember(const PodState& pod) { return !pod.failed && (!pod.deleting || pod.succeeded); }

}  // namespace

void GangOracle::Count(const PodState& pod, int64_t times) {
  if (!pod.node.empty() && !pod.IsFinished())
    nodes_[pod.node].used += times * static_cast<int64_t>(pod.devices.size());
  if (pod.group.empty()) return;
  const auto at = gangs_.try_emplace({GroupOf(pod), pod.epoch}).first;
  Gang& gang = at->second;
  gang.pods += times;
  if (!pod.node.empty()) gang.bound += times;
  if (!pod.owner_uid.empty()) gang.owned += times;
  if (IsMember(pod)) {
    gang.members += times;
    if (pod.succeeded || !pod.node.empty()) {
      gang.occupied += times;
    } else if ((gang.waiting[pod.wanted_devices] += times) == 0) {
      gang.waiting.erase(pod.wanted_devices);
    }
  }
}

int64_t GangOracle::MinimumOf(const GangKey& key) const {
  const auto found = minimum_.find(key.first);
  return found == minimum_.end() ? 0 : found->second;
}

int64_t GangOracle::LeastMinimumOf(const GangKey& key) const {
  int64_t least = MinimumOf(key);
  const auto found = former_minima_.find(key.first);
  if (found == former_minima_.end()) return least;
  for (const auto& [minimum, until] : found->second) {
    if (loop_.Steady() - until <= kPlanAge) least = std::min(least, minimum);
  }
  return least;
}

// How many pods that want so many devices.
int64_t GangOracle::RoomFor(int64_t devices) const {
  int64_t room = 0;
  for (const auto& [name, node] : nodes_) {
    const bool changed = loop_.Steady() - node.changed_at <= kPlanAge;
    const int64_t had = changed ? std::max(node.devices, node.before) : node.devices;
    if (had == 0) continue;
    room += devices == 0 ? INT32_MAX : std::max<int64_t>(had - node.used, 0) / devices;
  }
  return room;
}

// How many members would have a place if all that have room were bound.
int64_t GangOracle::Reach(const Gang& gang) const {
  if (gang.waiting.empty()) return gang.occupied;
  const int64_t waiting = gang.members - gang.occupied;
  return gang.occupied + std::min(waiting, RoomFor(gang.waiting.begin()->first));
}

bool GangOracle::IsPlaceable(const GangKey& key, const Gang& gang) const {
  const int64_t minimum = MinimumOf(key);
  return minimum != 0 && gang.occupied < minimum && Reach(gang) >= minimum;
}

bool GangOracle::IsHalf(const GangKey& key, const Gang& gang) const {
  return gang.occupied > 0 && !gang.whole && IsPlaceable(key, gang);
}

void GangOracle::BeforeChange() {
  for (auto& [key, gang] : gangs_) {
    if (IsPlaceable(key, gang)) gang.placeable_at = loop_.Steady();
    gang.reached_at[Reach(gang)] = loop_.Steady();
  }
}

// `bound`: the pod that was just given a place, if one was.
void GangOracle::AfterChange(const PodState* bound) {
  const Time now = loop_.Steady();
  for (auto& [key, gang] : gangs_) {
    if (const int64_t minimum = MinimumOf(key); minimum > 0 && gang.occupied >= minimum)
      gang.whole = true;
    if (IsHalf(key, gang)) {
      if (!gang.half_since) gang.half_since = now;
      continue;
    }
    const bool others = bound != nullptr && GangKey(GroupOf(*bound), bound->epoch) != key;
    const bool lost_room = gang.half_since && others && !gang.whole && gang.occupied > 0 &&
                           gang.occupied < LeastMinimumOf(key) && gang.members >= MinimumOf(key);
    if (lost_room && now - nodes_changed_ > kPlanAge) {
      on_violation_(
          fmt::format("{} was given room that gang {}, half bound, needs", bound->key, key.first));
    }
    gang.half_since.reset();
  }
}

void GangOracle::CheckBinding(const PodState& pod) {
  const GangKey key(GroupOf(pod), pod.epoch);
  const Gang& gang = gangs_.at(key);
  const int64_t minimum = MinimumOf(key);
  if (minimum == 0) counts_.Add("branch: bound after its PodGroup went");
  if (minimum != 0 && gang.occupied >= minimum) return;  // runs already
  if (gang.occupied == 0) counts_.Add("branch: gang began to be bound");
  if (gang.occupied > 0) counts_.Add("branch: gang went on being bound");
  const Time now = loop_.Steady();
  if (gang.placeable_at && now - *gang.placeable_at <= kPlanAge) return;
  const int64_t least = LeastMinimumOf(key);
  const bool changed = least != minimum;
  if (changed && gang.occupied >= least) return;
  for (auto at = gang.reached_at.lower_bound(least); at != gang.reached_at.end(); ++at) {
    if (now - at->second > kPlanAge) continue;
    return counts_.Add(changed ? "branch: gang bound by a minMember that had changed"
                               : "branch: gang bound as its pods were before its PodGroup came");
  }
  on_violation_(fmt::format(
      "{} was bound though its gang of {} could not be: {} members, {} bound, room for {} more",
      pod.key, minimum, gang.members, gang.occupied, RoomFor(pod.wanted_devices)));
}

void GangOracle::OnPod(const PodState* before, const PodState* after) {
  BeforeChange();
  const bool binds =
      after != nullptr && !after->node.empty() && (before == nullptr || before->node.empty());
  if (binds && !after->group.empty() && before != nullptr) CheckBinding(*after);
  if (before != nullptr) Count(*before, -1);
  if (after != nullptr) Count(*after, +1);
  std::erase_if(gangs_, [](const auto& entry) { return entry.second.pods == 0; });
  AfterChange(binds ? after : nullptr);
}

void GangOracle::OnGroup(const std::string& key, std::optional<int64_t> min_member) {
  BeforeChange();
  const auto known = minimum_.find(key);
  if (known != minimum_.end() && known->second != min_member.value_or(0))
    former_minima_[key][known->second] = loop_.Steady();
  if (min_member) {
    minimum_[key] = *min_member;
  } else {
    minimum_.erase(key);
  }
  AfterChange(nullptr);
}

void GangOracle::OnNode(const std::string& name, std::optional<int64_t> devices) {
  Node& node = nodes_[name];
  if (node.devices == devices.value_or(0)) return;
  BeforeChange();
  node.before = node.devices;
  node.devices = devices.value_or(0);
  node.changed_at = nodes_changed_ = loop_.Steady();
  AfterChange(nullptr);
}

void GangOracle::Tick() {
  for (auto& [key, gang] : gangs_) {
    if (!gang.half_since || loop_.Steady() - *gang.half_since <= kBindWindow) continue;
    if (std::exchange(gang.told, true)) continue;
    on_violation_(fmt::format("gang {} of {} stays half bound: {} of {} members", key.first,
                              MinimumOf(key), gang.occupied, gang.members));
  }
}

void GangOracle::CheckFixpoint() {
  for (const auto& [key, gang] : gangs_) {
    const int64_t minimum = MinimumOf(key);
    if (minimum == 0) continue;
    const bool could_be_whole = gang.owned > 0 || gang.members >= minimum;
    if (gang.bound > 0 && gang.bound < minimum && could_be_whole) {
      on_violation_(
          fmt::format("gang {} of {} rests with {} bound", key.first, minimum, gang.bound));
    }
    if (IsPlaceable(key, gang)) {
      on_violation_(fmt::format("gang {} of {} waits though it fits", key.first, minimum));
    }
    if (gang.bound == 0) counts_.Add("branch: gang waits whole");
  }
}

}  // namespace muster::simulation
