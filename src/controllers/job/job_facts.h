// src/controllers/job/job_facts.h
//
// What a Job (batch/v1) asks for, and whether it is over.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "json/value.h"

namespace muster::controllers {

struct JobSpec {
  explicit JobSpec(const json::Value& job);
  int64_t parallelism = 1;
  std::optional<int64_t> completions;  // none: the first success is enough
  int64_t backoff_limit = 6;
  std::optional<int64_t> backoff_limit_per_index, max_failed_indexes;
  std::optional<Duration> active_deadline;
  bool indexed = false;
  bool suspended = false;
  // A pod that ends is replaced when it has ended, not before.
  bool replaces_only_failed = false;
  json::Value failure_policy, success_policy;  // null: none
};

// Its condition Complete or Failed that holds; null if it is not over.
const json::Value& FinishedCondition(const json::Value& job);
inline bool IsFinished(const json::Value& job) { return !FinishedCondition(job).IsNull(); }

// spec.managedBy names somebody else, who does all of it.
bool IsManagedElsewhere(const json::Value& job);

// When it is to be deleted (spec.ttlSecondsAfterFinished); nullopt: never, or not yet known.
std::optional<Time> ExpiresAt(const json::Value& job);

}  // namespace muster::controllers
