// src/schema/pod_phase.h
//
// What the phase of a pod (status.phase) means.

#pragma once

#include <string_view>

namespace muster::schema {

// The pod is over: nothing of it runs any more, and nothing will.
inline bool IsFinalPhase(std::string_view phase) {
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace muster::schema
