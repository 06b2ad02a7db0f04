// src/scheduler/queue.h
//
// What waits to be placed: units. A unit is a pod on its own, or the pending pods of one gang.
//
// Order: gangs of which a part is bound already (a crash or a lost node interrupted them; they hold
//        resources and can use them only when complete), then priority from high to low, then
//        creation from old to new, then name.
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/cluster_cache.h"
#include "cluster/snapshot.h"

namespace muster::scheduler {

struct QueuedPod {
  cluster::PodKey key;
  cluster::ShapeIndex shape = cluster::kNoIndex;
  cluster::HolderIndex holder = cluster::kNoIndex;
  cluster::IdentityIndex identity = cluster::kNoIndex;
  Time created{};
};

struct Unit {
  std::string ns;
  std::string name;  // of the gang's PodGroup, or of the pod
  bool is_gang = false;
  bool group_missing = false;  // the pods name a PodGroup that does not exist
  int64_t min_member = 1;      // PodGroup.spec.minMember
  int64_t members = 1;   // pods of the gang that exist and have not failed, pending ones included
  int64_t occupied = 0;  // of these, bound, assumed or succeeded
  int64_t priority = 0;
  Time created{};
  std::vector<QueuedPod>
      // pending ones, in the order in which they are placed (creation, length of the name, name)
      pods;

  // How many of `pods` must be placed for any of them to be.
  int64_t Needed() const;
  bool IsCompleting() const { return is_gang && occupied > 0 && occupied < min_member; }
  std::string KeyText() const { return ns + "/" + name; }
};

using Queue = std::vector<Unit>;

bool GoesBefore(const Unit& a, const Unit& b);

}  // namespace muster::scheduler
