// src/scheduler/group_status.h
//
// The status of a PodGroup, in the words of who defined it.
//
// Volcano (scheduling.volcano.sh/v1beta1): phase, conditions, counts.
//
//   Pending    fewer than minMember pods exist
//   Inqueue    they exist and wait for room
//   Running    minMember of them are bound (or have succeeded)
//   Unknown    some run, and those that are missing to minMember do not
//   Completed  minMember have succeeded and none is left
//
// The minima of tasks and of sub-groups count as minMember does.
//
// scheduler-plugins (scheduling.x-k8s.io/v1alpha1): phase, counts, owners of the pods.
//
//   Pending     fewer than minMember pods exist
//   Scheduling  they exist, and fewer run or have succeeded
//   Running     minMember of them run or have succeeded
//   Failed      one has failed, and so many have ended or run
//   Finished    minMember have succeeded
//
// Thread: any (pure).

#pragma once

#include <string>

#include "base/time.h"
#include "json/value.h"
#include "scheduler/pending.h"

namespace muster::scheduler {

struct GangVerdict {
  bool waits = false;  // the gang does not fit, or lacks members
  bool lacks_members = false;
  bool lacks_sub_group = false;
  bool lacks_task = false;  // it lacks members of a task with a minimum
  std::string message;
};

// `object` is the PodGroup as it is; the result is its whole status, equal to the present one if
// nothing changed.
json::Value NextGroupStatus(const json::Value& object, const GangCount& count,
                            const GangVerdict& verdict, Time now);

// The same for scheduler-plugins; `owners` is status.occupiedBy.
json::Value NextPluginsStatus(const json::Value& object, const GangCount& count,
                              const std::string& owners, Time now);

}  // namespace muster::scheduler
