// src/scheduler/permissions.h
//
// What the scheduler asks of an API server, and nothing else: a ClusterRole, the Role for its
// leader election, their bindings and a ServiceAccount.
//
// Thread: any (pure).

#pragma once

#include <string>
#include <vector>

#include "json/value.h"

namespace muster::scheduler {

inline constexpr const char* kSchedulerName = "muster-scheduler";  // of all these, and of the Lease

// The rules of the ClusterRole: {apiGroups, resources, verbs}.
json::Value SchedulerRules();
// The objects in the order in which to create them; `ns` is where the ServiceAccount and the Lease
// are.
std::vector<json::Value> SchedulerRbac(const std::string& ns);

}  // namespace muster::scheduler
