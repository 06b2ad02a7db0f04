// src/scheduler/group_status.h
//
// The status of a PodGroup, in Volcano's words (scheduling.volcano.sh/v1beta1): phase, conditions,
// counts.
//
//   Pending    fewer than minMember pods exist
//   Inqueue    they exist and wait for room
//   Running    minMember of them are bound (or have succeeded)
//   Unknown    some run, and those that are missing to minMember do not
//   Completed  minMember have succeeded and none is left
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
  std::string message;
};

// `object` is the PodGroup as it is; the result is its whole status, equal to the present one if
// nothing changed.
json::Value NextGroupStatus(const json::Value& object, const GangCount& count,
                            const GangVerdict& verdict, Time now);

}  // namespace muster::scheduler
