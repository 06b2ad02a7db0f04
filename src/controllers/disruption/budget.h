// src/controllers/disruption/budget.h
//
// What is left of a PodDisruptionBudget. Source: k8s.io/kubernetes pkg/controller/disruption.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

// A pod whose eviction was granted and that is still there after this time counts again.
inline constexpr Duration kEvictionGracePeriod = minutes(2);

// How many pods somebody wants there to be.
struct WantedScale {
  std::string uid;  // whose wish it is; "": the pod has no controller
  int64_t replicas = 0;
  std::string error;        // it cannot be told
  bool is_pending = false;  // it is being asked for
};

struct BudgetInput {
  json::Value budget;
  std::vector<json::Value> pods;  // that it selects
  std::function<WantedScale(const json::Value& pod)> scale_of;
};

// Adds to `out`; nothing while a scale is being asked for.
void ReconcileBudget(const BudgetInput& input, Time now, client::Reconciled& out);

}  // namespace muster::controllers
