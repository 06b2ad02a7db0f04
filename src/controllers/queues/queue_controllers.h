// src/controllers/queues/queue_controllers.h
//
// The controllers of ClusterQueues (cluster_queue_pass.h), of LocalQueues, which tell the workloads
// of a queue that leads nowhere, and count what is in it, and of ResourceFlavors, which keeps those
// that ClusterQueues name.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include "client/reconcile.h"

namespace muster::controllers {

class ClusterQueueController final : public client::Controller {
 public:
  std::string_view name() const override { return "clusterqueue-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

class LocalQueueController final : public client::Controller {
 public:
  std::string_view name() const override { return "localqueue-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

class ResourceFlavorController final : public client::Controller {
 public:
  std::string_view name() const override { return "resourceflavor-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
