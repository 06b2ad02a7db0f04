// src/cluster/taints.h
//
// Taints of nodes and tolerations of pods. Source: k8s.io/component-helpers scheduling/corev1.
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/value.h"

namespace muster::cluster {

enum class TaintEffect : uint8_t { kNoSchedule, kPreferNoSchedule, kNoExecute };

struct Taint {
  std::string key, value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  bool operator==(const Taint&) const = default;
};

struct Toleration {
  std::string key;  // "" with `exists`: every key
  std::string value;
  bool exists = false;  // operator Exists; otherwise Equal
  bool any_effect = true;
  TaintEffect effect = TaintEffect::kNoSchedule;  // if !any_effect
  bool operator==(const Toleration&) const = default;
};

Taint ToTaint(const json::Value& taint);
Toleration ToToleration(const json::Value& toleration);
std::vector<Taint> ToTaints(const json::Value& taints);
std::vector<Toleration> ToTolerations(const json::Value& tolerations);

bool Tolerates(const Toleration& toleration, const Taint& taint);
bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);
// The first taint, in the node's order, that keeps the pod away (NoSchedule and NoExecute do);
// nullptr if none does.
const Taint* FirstUntolerated(const std::vector<Taint>& taints,
                              const std::vector<Toleration>& tolerations);

// Taints that ask the pod to keep away if it can (PreferNoSchedule).
int64_t CountUnwelcome(const std::vector<Taint>& taints,
                       const std::vector<Toleration>& tolerations);

inline constexpr const char* kUnschedulableTaint = "node.kubernetes.io/unschedulable";

}  // namespace muster::cluster
