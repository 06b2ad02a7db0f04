// src/scheduler/sub_groups.h
//
// The sub-groups of a gang (PodGroup.spec.subGroupPolicy): pods that get their places together.
//
// A pod belongs to the first policy that selects it, and there to the sub-group of its values of
// the policy's matchLabelKeys; one that lacks any of them belongs to none. As many pods as the
// policy's subGroupSize have a place, or none; what a sub-group has beyond that is elastic. A gang
// starts when minSubGroups of each policy can be whole at once, beside its other minima.
//
// Thread: any (values and pure functions).

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cluster/pod_info.h"

namespace muster::scheduler {

inline constexpr size_t kNoSubGroup = ~size_t{0};

// `members` and `occupied` as in Unit.
struct SubGroup {
  std::string name;   // the values of its labels
  size_t policy = 0;  // position in SubGroups::policies
  int64_t size = 1;
  int64_t members = 0;
  int64_t occupied = 0;
  bool is_required = false;  // a minimum of the gang
  bool Exists() const { return members >= size; }
  bool IsWhole() const { return occupied >= size; }
  // A part of it is bound, and the rest exists.
  bool IsBegun() const { return occupied > 0 && Exists() && !IsWhole(); }
  int64_t Needed() const { return std::max<int64_t>(size - occupied, 0); }
};

struct SubGroupMinimum {
  std::string policy;
  int64_t min_sub_groups = 0;
};

struct SubGroups {
  std::vector<SubGroupMinimum> policies;
  std::vector<SubGroup> groups;
  std::map<std::pair<size_t, std::string>, size_t> by_name;  // policy and name: position in groups

  SubGroups() = default;
  explicit SubGroups(const std::vector<cluster::SubGroupPolicy>& from);

  bool empty() const { return groups.empty() && policies.empty(); }
  // The sub-group of a pod with these labels, added if it is new; kNoSubGroup if it is of none.
  size_t Of(const std::vector<cluster::SubGroupPolicy>& from, const cluster::PodLabels& labels);
  // Whole ones, with so many more pods of each: `more` by position.
  bool Suffices(const std::vector<int64_t>& more) const;
  // The minima are met by what is occupied, or could be by the members.
  bool AreMet() const;
  bool CanBeMet() const;
  bool AnyIsBegun() const;
  // Pods that the minima want at least.
  int64_t Needed() const;
  // Counts what `is_so` holds for.
  template <class IsSo>
  int64_t CountOf(size_t policy, IsSo is_so) const {
    return std::count_if(groups.begin(), groups.end(), [&](const SubGroup& group) {
      return group.policy == policy && is_so(group);
    });
  }
};

}  // namespace muster::scheduler
