// src/agent/network/policy_planner.h
//
// What the network policies of the cluster mean for the pods of a node: a pure function from API
// objects to a PolicyTable, by the rules of networking.k8s.io/v1.
//
// A pod that policies select in a direction may have what one of their rules allows, and nothing
// else. Rules name pods by labels, of themselves and of their namespace: these become sets of
// addresses, one for each selector, so that a pod that comes or goes changes these sets alone.
// Ports by name are those of the pod that is connected to. Pods on a node's own network are neither
// restricted nor meant by labels. Where several pods share an address (a gang's sandbox), what
// comes or goes there must be allowed to each of those that are restricted.
//
// Thread:     any (pure).
// Invariants: the same objects give the same table; what cannot be read allows nothing.

#pragma once

#include <vector>

#include "agent/network/policy_table.h"
#include "json/value.h"

namespace muster::agent {

// Whether a networking.k8s.io/v1 NetworkPolicy is for this pod: those on the node's own network are
// not restricted.
bool PolicySelects(const json::Value& policy, const json::Value& pod);

struct PolicyInput {
  std::vector<json::Value> policies, namespaces;
  std::vector<json::Value> local_pods;  // of this node, with the addresses that it gave them
  std::vector<json::Value> other_pods;  // of other nodes
};

PolicyTable PlanPolicies(const PolicyInput& input);

}  // namespace muster::agent
