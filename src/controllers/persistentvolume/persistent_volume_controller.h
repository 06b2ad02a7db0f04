// src/controllers/persistentvolume/persistent_volume_controller.h
//
// Binds claims and volumes to each other, makes volumes of the class local-path, and says what
// becomes of a volume whose claim is gone. Claims of classes with WaitForFirstConsumer wait for the
// scheduler, which chooses a volume or the node for one (scheduler/volume_binder.h).
// Source: k8s.io/kubernetes pkg/controller/volume/persistentvolume.
//
// Keys: "ns/name" of a claim; the name of a volume.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: a volume is written only as it was seen (resourceVersion), so of two claims that
//             choose one volume one gets it. Nothing is called lost or released before the API
//             server, asked past the cache, has said that the other side is not there.

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class PersistentVolumeController final : public client::Controller {
 public:
  std::string_view name() const override { return "persistentvolume-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
