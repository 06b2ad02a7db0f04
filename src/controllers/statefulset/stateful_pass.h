// src/controllers/statefulset/stateful_pass.h
//
// One pass over a StatefulSet: its pods in the order of their numbers, their claims, updates from
// the highest number to the lowest, and its status. Source: k8s.io/kubernetes
// pkg/controller/statefulset/stateful_set_control.go.
//
// Thread: any (pure functions).

#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

struct StatefulSetInput {
  json::Value set;
  std::vector<json::Value> pods;         // its own
  std::vector<json::Value> revisions;    // its own
  std::set<std::string> revision_names;  // of all ControllerRevisions whose name starts as its own
  // The claim of that name in its namespace; null if there is none.
  std::function<json::Value(const std::string& name)> find_claim;
};

// Adds to `out`.
void ReconcileStatefulSet(const StatefulSetInput& input, Time now, client::Reconciled& out);

}  // namespace muster::controllers
