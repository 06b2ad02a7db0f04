// src/schema/preemptible_nodes.h
//
// Nodes that are cheap because they may be taken back at any moment (spot, preemptible), as the
// labels of clouds and of Karpenter say it; and pods that ask for such nodes.
//
// Thread: any (pure functions).

#pragma once

#include <string>

#include "json/value.h"

namespace muster::schema {

// The label ("key=value") that says so; "" if none does. `labels` is an object.
std::string PreemptibleLabel(const json::Value& labels);

// That by which a pod asks for such nodes and takes no others; "" if it does not.
std::string PreemptibleDemand(const json::Value& pod_spec);

}  // namespace muster::schema
