// src/schema/conditions.h
//
// Conditions: the list in an object's status that says, type by type, what holds: {type, status,
// reason, message, lastTransitionTime}. Source: k8s.io/apimachinery pkg/api/meta/conditions.go.
//
// Thread: any (pure functions).

#pragma once

#include <string_view>

#include "base/time.h"
#include "json/value.h"

namespace muster::schema {

// The entry of `type`; null if there is none. Lives as long as `conditions`.
const json::Value& FindCondition(const json::Value& conditions, std::string_view type);

// True if there is an entry of `type` and its status is "True".
bool ConditionHolds(const json::Value& conditions, std::string_view type);

// lastTransitionTime of the condition that takes the place of `before` (null: of none): a status
// that stays keeps its time.
json::Value TransitionTime(const json::Value& before, std::string_view status, Time now);

}  // namespace muster::schema
