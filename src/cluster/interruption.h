// src/cluster/interruption.h
//
// A node that is taken back: what the notice looks like on its Node (schema/preemptible_nodes.h
// knows which nodes are of the cheap kind that may be).
//
// The notice is one annotation, the deadline; who writes it (`muster node interrupt`, a handler of
// a cloud's notices) needs to know nothing else. The interruption controller
// (controllers/interruption) does the rest, and undoes it when the annotation goes.
//
// Thread: any (pure function).

#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"
#include "json/value.h"

namespace muster::cluster {

// RFC 3339: when the node is gone.
inline constexpr std::string_view kInterruptionDeadline = "muster.dev/interruption-deadline";
// "true": the node was cordoned because of it, and not before by somebody.
inline constexpr std::string_view kInterruptionCordoned = "muster.dev/interruption-cordoned";
inline constexpr std::string_view kInterruptedTaint = "muster.dev/interrupted";  // NoSchedule
inline constexpr std::string_view kInterruptedCondition = "Interrupted";
inline constexpr std::string_view kSimulatedNodeLabel = "muster.dev/simulated";

// nullopt: none, or one that cannot be read.
std::optional<Time> InterruptionDeadline(const json::Value& node);

}  // namespace muster::cluster
