// src/controllers/cronjob/cronjob_controller.h
//
// Starts the Jobs of every CronJob when they are due (cronjob_pass.h).
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class CronJobController final : public client::Controller {
 public:
  std::string_view name() const override { return "cronjob-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
