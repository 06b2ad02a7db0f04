// src/controllers/endpointslice/endpointslice_controller.h
//
// Keeps the EndpointSlices of every Service that has a selector: where its pods are, whether they
// are ready, and, as spec.trafficDistribution asks, hints for whom they are. Rules:
// k8s.io/endpointslice. A node that comes into another zone takes its endpoints along.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: slice names depend on the service's UID alone, so a repeated pass writes nothing new;
//             a slice holds at most kMaxEndpointsPerSlice endpoints, sorted by pod name.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

inline constexpr size_t kMaxEndpointsPerSlice = 100;  // as upstream's default
inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

class EndpointSliceController final : public client::Controller {
 public:
  std::string_view name() const override { return "endpointslice-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

// The zone of a node by its name, "" if it has none.
using ZoneOf = std::function<std::string(const std::string& node)>;

// The slices that `service` should have, given the pods that it selects. Pure.
std::vector<json::Value> MakeEndpointSlices(const json::Value& service,
                                            const std::vector<json::Value>& pods,
                                            const ZoneOf& zone_of = {});

}  // namespace muster::controllers
