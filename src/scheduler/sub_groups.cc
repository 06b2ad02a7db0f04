#include "scheduler/sub_groups.h"

#include <optional>
#include <string_view>

namespace muster::scheduler {

namespace {

// The first policy that selects the pod; nothing if none does.
std::optional<size_t> PolicyOf(const std::vector<cluster::SubGroupPolicy>& policies,
                               const cluster::PodLabels& labels) {
  const auto find = [&](std::string_view key) { return cluster::FindLabel(labels, key); };
  for (size_t policy = 0; policy < policies.size(); ++policy) {
    if (policies[policy].selector.MatchesBy(find)) return policy;
  }
  return std::nullopt;
}

}  // namespace

SubGroups::SubGroups(const std::vector<cluster::SubGroupPolicy>& from) {
  for (const cluster::SubGroupPolicy& policy : from)
    policies.push_back({policy.name, policy.min_sub_groups});
}

size_t SubGroups::Of(const std::vector<cluster::SubGroupPolicy>& from,
                     const cluster::PodLabels& labels) {
  const std::optional<size_t> policy = PolicyOf(from, labels);
  if (!policy.has_value()) return kNoSubGroup;
  std::string name;
  for (const std::string& key : from[*policy].keys) {
    const std::optional<std::string_view> value = cluster::FindLabel(labels, key);
    if (value.value_or("").empty()) return kNoSubGroup;
    if (!name.empty()) name += '/';  // in no value of a label
    name += *value;
  }
  const auto [at, added] = by_name.try_emplace({*policy, name}, groups.size());
  if (added) {
    SubGroup& group = groups.emplace_back();
    group.name = name;
    group.policy = *policy;
    group.size = from[*policy].size;
  }
  return at->second;
}

bool SubGroups::Suffices(const std::vector<int64_t>& more) const {
  std::vector<int64_t> whole(policies.size(), 0);
  for (size_t i = 0; i < groups.size(); ++i) {
    const bool is_whole = more[i] >= groups[i].Needed();
    if (!is_whole && (more[i] > 0 || groups[i].is_required)) return false;
    if (is_whole) ++whole[groups[i].policy];
  }
  for (size_t policy = 0; policy < policies.size(); ++policy) {
    if (whole[policy] < policies[policy].min_sub_groups) return false;
  }
  return true;
}

bool SubGroups::AreMet() const { return Suffices(std::vector<int64_t>(groups.size(), 0)); }

bool SubGroups::CanBeMet() const {
  for (size_t policy = 0; policy < policies.size(); ++policy) {
    const auto exists = [](const SubGroup& group) { return group.Exists(); };
    if (CountOf(policy, exists) < policies[policy].min_sub_groups) return false;
  }
  return true;
}

bool SubGroups::AnyIsBegun() const {
  return std::any_of(groups.begin(), groups.end(),
                     [](const SubGroup& group) { return group.IsBegun(); });
}

int64_t SubGroups::Needed() const {
  int64_t of_policies = 0, of_required = 0;
  for (const SubGroup& group : groups) of_required += group.is_required ? group.Needed() : 0;
  for (size_t policy = 0; policy < policies.size(); ++policy) {
    int64_t missing = policies[policy].min_sub_groups;
    std::vector<int64_t> open;
    for (const SubGroup& group : groups) {
      if (group.policy != policy) continue;
      if (group.IsWhole()) --missing;
      if (!group.IsWhole() && group.Exists()) open.push_back(group.Needed());
    }
    std::sort(open.begin(), open.end());
    for (size_t i = 0; i < open.size() && static_cast<int64_t>(i) < missing; ++i)
      of_policies += open[i];
  }
  return std::max(of_policies, of_required);
}

}  // namespace muster::scheduler
