// src/cli/waiting.h
//
// Why pods and jobs do not run yet, from what their status says: the scheduler's sentence, or the
// node's.
//
// Thread: any (pure functions).

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "json/value.h"

namespace muster::cli {

// "" if the pod runs or is over.
std::string WhyPodWaits(const json::Value& pod);
// The same, but "" also for what passes by itself in a moment: worth a line where nobody watches.
std::string WhyPodIsStuck(const json::Value& pod);
// A container of it runs, and none waits.
bool PodRuns(const json::Value& pod);
// The most telling reason among the pods of a job: unschedulable before slow to start; "" if none
// waits.
std::string WhyPodsWait(const std::map<std::string, json::Value>& pods);

// "exit code 128 (StartError: exec: "/x": No such file or directory)", of a container's state.
std::string HowContainerEnded(const json::Value& terminated);

// True if the condition is there and "True".
bool ConditionHolds(const json::Value& object, std::string_view type);
const json::Value& FindCondition(const json::Value& object,
                                 std::string_view type);  // null if absent

// A job of any kind that carries conditions: over, one way or the other.
bool JobFinished(const json::Value& job);
bool JobSucceeded(const json::Value& job);

}  // namespace muster::cli
