// src/serving/graph_controller.h
//
// The controller of InferenceGraphs: finds what one names in the informers and hands it to
// graph_pass.h.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include <set>

#include "client/reconcile.h"
#include "serving/serving_pass.h"

namespace muster::serving {

class GraphController final : public client::Controller {
 public:
  explicit GraphController(GatewayAddress gateway) : gateway_(std::move(gateway)) {}
  std::string_view name() const override { return "inferencegraph-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  const GatewayAddress gateway_;
  std::set<client::ObjectKey> known_;   // an InferenceService may concern each of its namespace
  std::set<client::ObjectKey> by_url_;  // ... and each of any that names one by its URL
};

}  // namespace muster::serving
