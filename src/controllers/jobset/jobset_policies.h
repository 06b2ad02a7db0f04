// src/controllers/jobset/jobset_policies.h
//
// What ended Jobs mean for their JobSet. Source: kubernetes-sigs/jobset
// pkg/controllers/failure_policy.go and success_policy.go.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/value.h"

namespace muster::controllers {

enum class FailureAction : uint8_t {
  kFailWithoutPolicy,
  kFail,
  kRestart,
  kRestartUncounted,
};

struct FailureVerdict {
  FailureAction action = FailureAction::kFailWithoutPolicy;
  std::string job;  // which failed first, of those that the rule is for
};

// The first rule that a failed Job fits decides. REQUIRES: `failed` is not empty.
FailureVerdict JudgeFailedJobs(const json::Value& failure_policy,
                               const std::vector<json::Value>& failed);

// `spec` is that of the JobSet, `succeeded` its Jobs that did; at least one.
bool HasSucceededBy(const json::Value& spec, const std::vector<json::Value>& succeeded);

}  // namespace muster::controllers
