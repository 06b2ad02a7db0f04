// src/controllers/podautoscaler/metric_wish.h
//
// What one entry of spec.metrics asks for, with the words that upstream has for it. Source:
// k8s.io/kubernetes pkg/controller/podautoscaler/horizontal.go.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string>

#include "controllers/podautoscaler/metric_answers.h"
#include "controllers/podautoscaler/replica_calculator.h"
#include "json/value.h"

namespace muster::controllers {

struct MetricWish {
  bool valid = false;
  // Valid: the wish, the metric's name in reasons, and its entry of status.currentMetrics.
  int64_t replicas = 0;
  std::string name;
  json::Value status;
  // Not valid: the condition's reason, what is wrong, and the same with all its context.
  std::string reason, problem, error;
};

MetricWish WishOf(const json::Value& metric, const Fleet& fleet, const MetricScope& scope);

}  // namespace muster::controllers
