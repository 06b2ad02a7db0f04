// src/apiserver/core.h
//
// Core: what all handlers share. Not a public header.
//
// Life cycle: one per ApiServer, a member of it.
// Thread:     the loop thread.

#pragma once

#include <memory>

#include "apiserver/identity/rbac_authorizer.h"
#include "apiserver/identity/rbac_index.h"
#include "apiserver/identity/token_authenticator.h"
#include "apiserver/kinds/quota_ledger.h"
#include "apiserver/metrics.h"
#include "apiserver/recent_trees.h"
#include "apiserver/resource_registry.h"
#include "apiserver/server.h"
#include "apiserver/watch/event_hub.h"
#include "base/rng.h"
#include "loop/loop.h"
#include "store/store.h"

namespace muster::apiserver {

class Admission;
class Aggregator;
class CrdLifecycle;
class NodeStats;

// LISTs of revisions that only the disk has, at the same time.
inline constexpr size_t kMaxPastReads = 16;
// POSTs that wait for what a controller puts into a new namespace, at the same time.
inline constexpr size_t kMaxWaitingCreates = 256;

struct Core {
  Core(Loop& loop, store::Store& store, ServerOptions options);
  ~Core();

  Loop& loop;
  store::Store& store;
  ServerOptions options;
  Rng rng;
  Metrics metrics;
  TokenAuthenticator tokens;
  RbacIndex rbac;
  RbacAuthorizer authorizer;
  ResourceRegistry registry;
  std::shared_ptr<QuotaLedger> quotas;  // writes under way hold it as well
  RecentTrees trees;
  EventHubs hubs;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<CrdLifecycle> crds;
  std::unique_ptr<NodeStats> node_stats;
  std::unique_ptr<Aggregator> aggregator;
  bool shutting_down = false;
  size_t past_reads = 0;  // under way on the pool
  size_t waiting_creates = 0;
  // Callbacks that may outlive the server (store, loop) hold this weakly.
  std::shared_ptr<int> alive = std::make_shared<int>(0);

  // A task that does nothing once the server is gone.
  Task Guarded(Task task) {
    return [weak = std::weak_ptr<int>(alive), task = std::move(task)]() mutable {
      if (weak.lock()) task();
    };
  }
};

}  // namespace muster::apiserver
