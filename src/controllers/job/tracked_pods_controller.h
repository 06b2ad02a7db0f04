// src/controllers/job/tracked_pods_controller.h
//
// Takes the finalizer of Jobs away from pods that no Job will count any more: those whose Job is
// gone, or that nobody controls. Without it such a pod could never vanish.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: that a Job is gone is asked of the server, past the cache, before anything is done.

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class TrackedPodsController final : public client::Controller {
 public:
  std::string_view name() const override { return "job-tracked-pods-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
