// src/controllers/queues/cluster_queue_pass.h
//
// One pass over one ClusterQueue: who of those that wait in it gets quota now, in the order of
// priority and age, and why the others do not. Its status counts what is used. A queue that is
// deleted admits nobody, and stays until nobody has quota of it.
//
// Thread:     any (pure).
// Invariants: what is reserved never exceeds the nominal quota by what this pass reserves. That
//             needs a current view of the queue's Workloads: the runtime runs no key again before
//             it has seen that key's writes, and nobody else reserves.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "cluster/queues/quota_pool.h"
#include "json/value.h"

namespace muster::controllers {

struct ClusterQueueInput {
  json::Value cluster_queue;
  cluster::Flavors flavors;  // all that there are
  // Workloads of the queue's LocalQueues, and those that have reserved in it; none that are
  // finished.
  std::vector<json::Value> workloads;
  // The LocalQueue of the workload; null if there is none (then it is not ours to judge).
  std::function<const json::Value*(const json::Value& workload)> local_queue;
  // Labels of the namespace; null if there is none.
  std::function<json::Value(const std::string& ns)> namespace_labels;
};

client::Reconciled ReconcileClusterQueue(const ClusterQueueInput& input, Time now);

// status.flavorsReservation of a queue: every flavor and resource of the pool, with what is used.
// `borrowed`: with that field, which is 0.
json::Value FlavorUsages(const cluster::QuotaPool& pool, const cluster::QuotaUsage& usage,
                         bool borrowed);

// Reason and message of the condition Active that is False; "" if it is active.
std::pair<std::string, std::string> WhyInactive(const json::Value& cluster_queue,
                                                const cluster::Flavors& flavors);

}  // namespace muster::controllers
