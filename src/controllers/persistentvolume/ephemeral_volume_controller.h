// src/controllers/persistentvolume/ephemeral_volume_controller.h
//
// Makes the claims of pods' generic ephemeral volumes: "<pod>-<volume>", which belongs to the pod
// and goes with it.
// Source: k8s.io/kubernetes pkg/controller/volume/ephemeral.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class EphemeralVolumeController final : public client::Controller {
 public:
  std::string_view name() const override { return "ephemeral-volume-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
