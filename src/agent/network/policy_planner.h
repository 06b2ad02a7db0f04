// src/agent/network/policy_planner.h
//
// What the network policies of the cluster mean for the pods of a node.
//
// Thread: any (pure).

#pragma once

#include "json/value.h"

namespace muster::agent {

// Whether a networking.k8s.io/v1 NetworkPolicy is for this pod: those on the node's own network are
// not restricted.
bool PolicySelects(const json::Value& policy, const json::Value& pod);

}  // namespace muster::agent
