// src/controllers/pods/disruption_target.h
//
// The condition DisruptionTarget: a pod goes because of its surroundings, not by its own fault.
// Source: KEP-3329.
//
// Thread: any (pure functions).

#pragma once

#include <string_view>

#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

// A strategic merge patch of the pod's status that sets conditions or the phase; it applies to no
// other pod of the name.
json::Value StatusPatchOf(const json::Value& pod, json::Object status);

// The condition with this reason, for StatusPatchOf.
json::Value DisruptionTarget(const json::Value& pod, std::string_view reason,
                             std::string_view message, Time now);

client::Target StatusTargetOf(const json::Value& pod);

}  // namespace muster::controllers
