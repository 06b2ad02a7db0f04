// src/controllers/persistentvolume/protection_controllers.h
//
// Claims that pods use and volumes that are bound are not removed under their users: the finalizers
// kubernetes.io/pvc-protection and kubernetes.io/pv-protection keep them until nobody does. The API
// server sets them when it makes such an object; what is older gets them here.
// Source: k8s.io/kubernetes pkg/controller/volume/pvcprotection and pvprotection.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

// How long news of a pod that was bound before its claim was deleted may be on its way.
inline constexpr Duration kProtectionSettling = seconds(1);

// A pod uses a claim from its binding to a node until it is gone, also when it has finished. A
// generic ephemeral volume is used until the pod is shut down: its claim goes with the pod.
class ClaimProtectionController final : public client::Controller {
 public:
  std::string_view name() const override { return "persistentvolumeclaim-protection-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

class VolumeProtectionController final : public client::Controller {
 public:
  std::string_view name() const override { return "persistentvolume-protection-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
