// src/serving/builtin_runtime_controller.h
//
// Keeps the ClusterServingRuntime of builtin_runtime.h: made where it is missing, and left alone
// once it is there, so that whoever changes or disables it keeps that.
//
// Thread: the loop thread (see client/reconcile.h).

#pragma once

#include "client/reconcile.h"

namespace muster::serving {

class BuiltinRuntimeController final : public client::Controller {
 public:
  std::string_view name() const override { return "servingruntime-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

}  // namespace muster::serving
