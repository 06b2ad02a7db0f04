// src/controllers/pods/int_or_percent.h
//
// Fields that are a number or a percentage ("25%").
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <string_view>

#include "json/value.h"

namespace muster::controllers {

inline bool IsPercentage(const json::Value& int_or_percent) {
  return int_or_percent.AsString().ends_with('%');
}

// The number, or the percentage of `whole` rounded up or down. Source: k8s.io/apimachinery
// pkg/util/intstr GetScaledValueFromIntOrPercent.
int64_t ScaledValue(const json::Value& int_or_percent, int64_t whole, bool round_up);

}  // namespace muster::controllers
