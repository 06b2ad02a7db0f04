// src/controllers/endpointslice/endpoints_controller.h
//
// Keeps the v1 Endpoints of every Service that has a selector, for clients that do not know
// EndpointSlices yet; nothing of ours reads them. Source: k8s.io/kubernetes
// pkg/controller/endpoint.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: an object holds at most kMaxEndpointsAddresses addresses, those that can take work
//             first; Endpoints that somebody else made are not deleted here.

#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

inline constexpr size_t kMaxEndpointsAddresses = 1000;  // as upstream; the rest is left out

class EndpointsController final : public client::Controller {
 public:
  std::string_view name() const override { return "endpoint-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;
};

// What `service` should have, given the pods that it selects. Pure.
json::Value MakeEndpoints(const json::Value& service, const std::vector<json::Value>& pods);

}  // namespace muster::controllers
