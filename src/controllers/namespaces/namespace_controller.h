// src/controllers/namespaces/namespace_controller.h
//
// Empties a namespace that is being deleted (every kind that the server serves), then takes the
// finalizer "kubernetes" off, and the API server removes it.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: a namespace is finalized only after live lists of all kinds have come back empty: the
//             informers may lag behind.

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "client/reconcile.h"
#include "client/resource_discovery.h"

namespace muster::controllers {

class NamespaceController final : public client::Controller {
 public:
  // REQUIRES: `discovery` outlives the controller.
  explicit NamespaceController(client::ResourceDiscovery& discovery);
  std::string_view name() const override { return "namespace-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  void Attach(std::function<void(const client::ObjectKey&)> wake) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  client::ResourceDiscovery& discovery_;
  client::InformerSet* informers_ = nullptr;
  client::Lifetime lifetime_;
};

}  // namespace muster::controllers
