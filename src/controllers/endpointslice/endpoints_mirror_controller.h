// src/controllers/endpointslice/endpoints_mirror_controller.h
//
// Copies the Endpoints that a user wrote for a Service without a selector into EndpointSlices, by
// which traffic and names go, and deletes them with their Service. Source: k8s.io/kubernetes
// pkg/controller/endpointslicemirroring; the deletion is the API server's there.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: one slice for each subset and family of addresses, whose name depends on these and
//             on the UID of the Endpoints alone.

#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

// Addresses; as upstream, the rest is left out.
inline constexpr size_t kMaxMirroredPerSubset = 1000;

class EndpointsMirrorController final : public client::Controller {
 public:
  std::string_view name() const override { return "endpointslicemirroring-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

// Pure. None for Endpoints that say that they are not to be mirrored.
std::vector<json::Value> MirrorEndpoints(const json::Value& endpoints);

}  // namespace muster::controllers
