// src/controllers/jobset/jobset_controller.h
//
// Runs JobSets: finds a set's Jobs in the informers and hands them to jobset_pass.h.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

class JobSetController final : public client::Controller {
 public:
  std::string_view name() const override { return "jobset-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::controllers
