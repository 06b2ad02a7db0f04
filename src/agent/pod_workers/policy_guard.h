// src/agent/pod_workers/policy_guard.h
//
// PolicyGuard: whether the network policies that select a pod are in force on this node. A pod's
// worker asks before it makes the sandbox, so that nothing of the pod runs a moment without them.
//
// Thread: the loop thread.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "json/value.h"

namespace muster::agent {

// The reason of events and of pods that are refused.
inline constexpr std::string_view kPolicyNotEnforced = "NetworkPolicyNotEnforced";

class PolicyGuard {
 public:
  struct Answer {
    // kNotYet: PodManager::PoliciesChanged() tells when to ask again; kFailed: so it does when they
    // could not be programmed, which is tried again. kRefused: this node cannot enforce what
    // selects the pod.
    enum class Is : uint8_t { kInForce, kNotYet, kFailed, kRefused };
    Is is = Is::kInForce;
    std::string message = {};
  };

  virtual ~PolicyGuard() = default;
  // `address`: that the node has given to the pod.
  virtual Answer Look(const json::Value& pod, const std::string& address) = 0;
};

}  // namespace muster::agent
