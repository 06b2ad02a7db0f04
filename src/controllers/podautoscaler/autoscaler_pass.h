// src/controllers/podautoscaler/autoscaler_pass.h
//
// One pass over a HorizontalPodAutoscaler. A pass without answers asks for the scale of the target,
// one that has it asks for the metrics, and one that has these decides and writes: the scale, and
// what it saw and did into the status. Source: k8s.io/kubernetes
// pkg/controller/podautoscaler/horizontal.go.
//
// Thread:     any (pure functions of their input and the memory).
// Invariants: a pass without answers writes nothing, unless a write of the last one was refused;
//             the number that is written is between minReplicas and maxReplicas; after a refusal
//             nothing is tried before the next tick.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "controllers/podautoscaler/metric_answers.h"
#include "controllers/podautoscaler/scaling_rules.h"
#include "json/value.h"
#include "schema/label_selector.h"

namespace muster::controllers {

// Between two looks at one autoscaler: kube-controller-manager's default of
// --horizontal-pod-autoscaler-sync-period.
inline constexpr Duration kAutoscalerPeriod = seconds(15);

// What is kept of an autoscaler from pass to pass. A process that starts anew begins with nothing:
// the first number that it sees counts as a recommendation, so that it does not scale down at once.
struct AutoscalerMemory {
  // A change that was asked for; the next pass learns whether it was refused.
  struct Attempt {
    int64_t from = 0, to = 0;
    std::string reason;
    Time at{};
  };
  std::string uid;
  ScalingHistory history;
  std::optional<Attempt> attempt;
  std::optional<Time> scaled_at;
  std::optional<schema::LabelSelector> selector;  // of the target
};
using AutoscalerMemories = std::map<client::ObjectKey, AutoscalerMemory>;

struct AutoscalerInput {
  json::Value autoscaler;
  const client::Observations& observations;
  KindFinder find_kind;
  bool kinds_known = true;  // a kind that is not found does not exist
  std::function<std::vector<json::Value>(const schema::LabelSelector&)> pods_of;
  const AutoscalerMemories& all;  // of this and the other autoscalers
  Duration period = kAutoscalerPeriod;
  uint64_t seed = 0;
};

// Each autoscaler has its own place in the period, so that not all ask at once.
// REQUIRES: period > 0.
Time NextTick(Time now, Duration period, uint64_t seed);

void ReconcileAutoscaler(const AutoscalerInput& input, AutoscalerMemory& memory, Time now,
                         client::Reconciled& out);

}  // namespace muster::controllers
