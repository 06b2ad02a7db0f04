// src/serving/serving_controller.h
//
// The controller of InferenceServices: finds one's children and the runtimes in the informers and
// hands them to serving_pass.h.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/reconcile.h"
#include "serving/serving_pass.h"

namespace muster::serving {

class ServingController final : public client::Controller {
 public:
  explicit ServingController(GatewayAddress gateway) : gateway_(std::move(gateway)) {}
  std::string_view name() const override { return "inferenceservice-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  // Those that live: a runtime may concern each of them.
  std::vector<client::ObjectKey> Known(std::string_view ns) const;
  client::Trigger OnNamed(const client::Resource& child) const;

  const GatewayAddress gateway_;
  std::set<client::ObjectKey> known_;
};

}  // namespace muster::serving
