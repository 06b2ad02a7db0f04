// src/controllers/garbage/garbage_controller.h
//
// The garbage collector: deletes what lost its last owner, and carries out the foreground and
// orphan policies of a deletion. Semantics: k8s.io/kubernetes pkg/controller/garbagecollector.
//
//   background  the owner goes at once; its dependents are found ownerless here
//   foreground  the owner keeps the finalizer foregroundDeletion until no dependent blocks it
//   orphan      the owner keeps the finalizer orphan until no dependent names it
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: nothing is deleted because an informer does not show its owner: a live GET must say
//             so (informers of two kinds run apart); an owner of a kind that is not served counts
//             as alive. Deletions carry the UID and resourceVersion that were looked at.

#pragma once

#include <functional>
#include <vector>

#include "client/reconcile.h"
#include "client/resource_discovery.h"
#include "controllers/garbage/dependents.h"

namespace muster::controllers {

class GarbageController final : public client::Controller {
 public:
  // REQUIRES: `discovery` outlives the controller.
  explicit GarbageController(client::ResourceDiscovery& discovery);
  std::string_view name() const override { return "garbage-collector"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  void Attach(std::function<void(const client::ObjectKey&)> wake) override;
  std::vector<client::ObjectKey> ExtraKeys() const override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  void OnChange(const ObjectRef& ref, const json::Value& before, const json::Value& after);
  void WakeAll(const std::vector<ObjectRef>& refs);

  client::ResourceDiscovery& discovery_;
  client::InformerSet* informers_ = nullptr;
  std::function<void(const client::ObjectKey&)> wake_;
  Dependents dependents_;
  client::Lifetime lifetime_;
};

}  // namespace muster::controllers
