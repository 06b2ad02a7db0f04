// src/controllers/job/job_policies.h
//
// What the end of a pod means for its Job beyond plain counting: spec.podFailurePolicy and
// spec.successPolicy, whose first fitting rule decides; and how long replacements wait.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "controllers/job/index_set.h"
#include "controllers/job/job_facts.h"
#include "json/value.h"

namespace muster::controllers {

// Upstream's DefaultJobPodFailureBackOff and MaxJobPodFailureBackOff.
inline constexpr Duration kMinPodFailureBackoff = seconds(10);
inline constexpr Duration kMaxPodFailureBackoff = minutes(10);

struct PodFailureVerdict {
  bool counts = true;        // towards the limits of failures
  bool fails_index = false;  // at once
  std::string fails_job;     // at once, and why; "": it does not
};
// `policy`: spec.podFailurePolicy, null without one. `pod` has failed.
PodFailureVerdict JudgeFailure(const json::Value& policy, const json::Value& pod);

// "Matched rules at index 1"; nullopt: no rule of spec.successPolicy is met.
std::optional<std::string> MetSuccessRule(const json::Value& policy, int64_t completions,
                                          const IndexSet& succeeded);

// From when on a pod may be made after `failures` in a row, the last of them at `last_failure`. One
// that lies further ahead than one has to wait was before the clock was set back: no more waiting.
Time BackoffEnds(int64_t failures, Time last_failure, Time now);
// The same for a Job by what its pods tell: failures since the last success. Pods that are gone
// tell nothing.
Time BackoffEnds(const std::vector<json::Value>& pods, const JobSpec& spec, Time now);

}  // namespace muster::controllers
