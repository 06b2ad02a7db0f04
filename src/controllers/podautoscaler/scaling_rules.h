// src/controllers/podautoscaler/scaling_rules.h
//
// What becomes of the number that the metrics ask for: how fast it may be followed, for how long
// former wishes count (spec.behavior), and what minReplicas and maxReplicas leave of it. Rules,
// reasons and messages: k8s.io/kubernetes pkg/controller/podautoscaler/horizontal.go.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "controllers/podautoscaler/replica_calculator.h"
#include "json/value.h"

namespace muster::controllers {

inline constexpr Duration kDefaultDownscaleWindow = minutes(5);

// What has to be remembered of the past of one autoscaler; what is too old to count is forgotten.
struct ScalingHistory {
  struct Recommendation {
    int64_t replicas = 0;
    Time at{};
  };
  struct Change {
    int64_t replicas = 0;  // how many more, or fewer
    Time at{};
  };
  std::vector<Recommendation> recommendations;
  std::vector<Change> ups, downs;
};

struct Wish {
  int64_t current = 0;
  int64_t wanted = 0;  // by the metrics
  int64_t least = 1;   // minReplicas
  int64_t most = 1;    // maxReplicas
};

// Reason and message of a condition.
struct Finding {
  bool holds = false;
  std::string reason, message;
};

struct Decision {
  int64_t replicas = 0;
  Finding able_to_scale;
  Finding limited;
};

// `behavior`: spec.behavior with its defaults, or null. Remembers the wish in `history`.
// REQUIRES: least <= current <= most.
Decision Decide(const json::Value& behavior, const Wish& wish, ScalingHistory& history, Time now);

// The number of replicas was changed.
void RememberChange(const json::Value& behavior, int64_t from, int64_t to, Time now,
                    ScalingHistory& history);

// Of spec.behavior.
Tolerance ToleranceOf(const json::Value& behavior);

}  // namespace muster::controllers
