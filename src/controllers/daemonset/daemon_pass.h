// src/controllers/daemonset/daemon_pass.h
//
// One pass over a DaemonSet: a pod on each node that suits it, replaced node by node when the
// template changes, and its status. What each node wants is in its ledger (daemon_ledger.h), so a
// pass costs what changed and what is to be done. Source: k8s.io/kubernetes pkg/controller/daemon.
//
// Thread: the loop thread (the ledger is brought up to date).

#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "controllers/daemonset/daemon_ledger.h"
#include "json/value.h"

namespace muster::controllers {

struct DaemonSetInput {
  json::Value daemon_set;
  const client::Informer& nodes;
  std::vector<json::Value> revisions;    // its own
  std::set<std::string> revision_names;  // of all ControllerRevisions that could be in the way
  std::function<bool(const std::string& name)> is_taken;  // a pod has the name
  uint64_t seed = 0;
};

// Adds to `out`.
void ReconcileDaemonSet(const DaemonSetInput& input, DaemonLedger& ledger, Time now,
                        client::Reconciled& out);

}  // namespace muster::controllers
