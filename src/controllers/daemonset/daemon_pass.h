// src/controllers/daemonset/daemon_pass.h
//
// One pass over a DaemonSet: a pod on each node that suits it, replaced node by node when the
// template changes, and its status. Source: k8s.io/kubernetes pkg/controller/daemon.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

struct DaemonSetInput {
  json::Value daemon_set;
  std::vector<json::Value> nodes;
  std::vector<json::Value> pods;         // its own
  std::vector<json::Value> revisions;    // its own
  std::set<std::string> revision_names;  // of all ControllerRevisions that could be in the way
  std::function<bool(const std::string& name)> is_taken;  // a pod has the name
  uint64_t seed = 0;
};

// Adds to `out`.
void ReconcileDaemonSet(const DaemonSetInput& input, Time now, client::Reconciled& out);

}  // namespace muster::controllers
