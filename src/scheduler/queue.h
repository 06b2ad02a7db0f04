// src/scheduler/queue.h
//
// What waits to be placed: units. A unit is a pod on its own, or the pending pods of one gang.
//
// A gang may have tasks with minima of their own (a parameter server and four workers): it starts
// when all of them and the gang's own minimum can be met at once. What there is above the minima
// is elastic: placed one by one, as room comes. With sub-groups (sub_groups.h) what comes then is a
// whole sub-group, or a pod that is of none or of one that is whole.
//
// Order: gangs of which a part is bound already (a crash or a lost node interrupted them; they hold
//        resources and can use them only when complete), then priority from high to low, then
//        creation from old to new, then name. What an interrupted gang has beyond its minima takes
//        its turn without that advantage (RanksBefore).
// Thread: any (values and pure functions).

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/cluster_cache.h"
#include "cluster/snapshot.h"
#include "scheduler/sub_groups.h"

namespace muster::scheduler {

inline constexpr size_t kNoTask = ~size_t{0};

// A task with a minimum. `members` and `occupied` as in Unit.
struct TaskCount {
  std::string name;
  int64_t min_member = 0;
  int64_t members = 0;
  int64_t occupied = 0;
  int64_t Needed() const { return std::max<int64_t>(min_member - occupied, 0); }
};

struct QueuedPod {
  cluster::PodKey key;
  cluster::ShapeIndex shape = cluster::kNoIndex;
  cluster::HolderIndex holder = cluster::kNoIndex;
  cluster::IdentityIndex identity = cluster::kNoIndex;
  Time created{};
  size_t task = kNoTask;           // position in Unit::tasks
  size_t sub_group = kNoSubGroup;  // position in Unit::sub_groups.groups
  // Where room is being made for it; it goes there if it fits.
  cluster::NodeIndex nominated = cluster::kNoIndex;
};

struct Unit {
  std::string ns;
  std::string name;  // of the gang's PodGroup, or of the pod
  bool is_gang = false;
  bool group_missing = false;  // the pods name a PodGroup that does not exist
  int64_t min_member = 1;      // PodGroup.spec.minMember
  // Pods of the gang that have a place or could get one from us; those that exist beside them are
  // held back, by scheduling gates or because they are another scheduler's.
  int64_t members = 1;
  int64_t held = 0;
  int64_t occupied = 0;                 // of these, bound, assumed or succeeded
  std::vector<TaskCount> tasks;         // PodGroup.spec.minTaskMember
  SubGroups sub_groups;                 // PodGroup.spec.subGroupPolicy
  cluster::ResourceList min_resources;  // PodGroup.spec.minResources, while nothing is occupied
  int64_t priority = 0;
  bool may_preempt = true;  // no pod's preemptionPolicy is Never
  // Not to be placed now: it is here for the room that was made for it (QueuedPod::nominated).
  bool rests = false;
  Time created{};
  std::vector<QueuedPod>
      // pending ones, in the order in which they are placed (creation, length of the name, name)
      pods;

  // How many of `pods` must be placed, at least, for any of them to be.
  int64_t Needed() const;
  // So many of `pods` at these positions are enough.
  bool Suffices(const std::vector<size_t>& positions) const;
  // The minima are met by what is occupied: the rest comes one by one.
  bool IsMet() const;
  bool IsCompleting() const {
    return is_gang && occupied > 0 && (!IsMet() || sub_groups.AnyIsBegun());
  }
  // Its sub-group, if it is of one, is whole already.
  bool ComesAlone(const QueuedPod& pod) const {
    return pod.sub_group == kNoSubGroup || sub_groups.groups[pod.sub_group].IsWhole();
  }
  // Members that its sub-group needs exist.
  bool MayBePlaced(const QueuedPod& pod) const {
    return pod.sub_group == kNoSubGroup || sub_groups.groups[pod.sub_group].Exists();
  }
  std::string KeyText() const { return ns + "/" + name; }
};

using Queue = std::vector<Unit>;

// `chosen` and as few more of `available`, in their order, as suffice; positions of Unit::pods.
// Nothing if all of them do not, or if this simple choice finds none.
std::optional<std::vector<bool>> ChooseEnough(const Unit& unit, std::vector<bool> chosen,
                                              const std::vector<bool>& available);

// Which of its pods a unit still needs, asked one by one.
class Lack {
 public:
  // REQUIRES: the unit outlives it.
  explicit Lack(const Unit& unit);
  // With sub-groups the choice is made at once: `placed` and as few as will do of `available`, by
  // position in Unit::pods. It is never filled if they do not suffice.
  Lack(const Unit& unit, std::vector<bool> placed, const std::vector<bool>& available);
  bool CanBeFilled() const { return others_ < kNever; }
  bool IsFilled() const { return tasks_ <= 0 && others_ <= 0; }
  // With the pod at this position of Unit::pods; false if it is no use.
  bool Fill(size_t position);

 private:
  static constexpr int64_t kNever = INT64_MAX;

  const Unit& unit_;
  std::vector<int64_t> of_task_;
  int64_t tasks_ = 0;
  int64_t others_;
  std::vector<bool> wanted_;  // with sub-groups; `others_` of them are left
};

bool GoesBefore(const Unit& a, const Unit& b);
// The same, but for gangs that were interrupted.
bool RanksBefore(const Unit& a, const Unit& b);

}  // namespace muster::scheduler
