// src/serving/serving_pass.h
//
// One pass over one InferenceService: from it and its children to the writes that bring it nearer
// to what it says. Pure.
//
//   NAME-predictor         Deployment, Service (and HorizontalPodAutoscaler) of what has, or had,
//                          all traffic
//   NAME-predictor-canary  the same of a newer spec while canaryTrafficPercent is set: the older
//                          one stays as it is until the newer one is promoted, so going back needs
//                          no new pod
//   NAME                   Service through the gateway (src/gateway), which knows the weights,
//                          holds requests while there is no pod, and counts
//
// A revision is a spec that pods were made of; a Deployment's annotations say which one it has.
// Traffic goes to a canary only once it is ready; a promoted one serves until the Deployment that
// takes over is rolled out.
//
// Thread:     any.
// Invariants: the Deployment that serves is never changed while a canary is asked for; a canary is
//             deleted only after the status, which the gateway reads, has stopped naming it.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/reconcile.h"
#include "serving/inference_service.h"
#include "serving/runtime_selection.h"

namespace muster::serving {

inline constexpr std::string_view kRevisionAnnotation = "muster.dev/revision";
inline constexpr std::string_view kHashAnnotation = "muster.dev/spec-hash";
inline constexpr std::string_view kSliceManager = "serving.muster.dev";

// Where the gateway listens for pods; port 0: there is none, and NAME leads to the pods themselves.
struct GatewayAddress {
  std::string address;
  int port = 0;
  // Why it does not listen now; "" if it does, or nobody has needed it yet. The loop thread.
  std::shared_ptr<std::string> fault = nullptr;

  std::string Fault() const { return fault == nullptr ? "" : *fault; }
};
// While it does not listen, who needs it is looked at this often.
inline constexpr Duration kGatewayLookPeriod = seconds(2);

struct ServingChildren {
  json::Value stable, canary;  // Deployments; null if there is none
  json::Value service, predictor_service, canary_service;
  json::Value gateway_slice;
  json::Value autoscaler;
  std::vector<json::Value> pods;  // of all Deployments
  bool stable_reachable = false;  // an endpoint of the predictor's Service is ready
  std::string program;            // of the ConfigMap of the built-in runtime; "" if it is not there
  RuntimeChoice choice;           // of a predictor with a model
  // Names that are needed and somebody else's objects have: "services \"iris\"".
  std::vector<std::string> taken;
  bool named_as_a_graph = false;  // an older InferenceGraph has its name, and the Service
  json::Value refused_write;      // see client::kRefusedWrite
  std::string host_owner;         // who has its NAME-NAMESPACE.example.com; "": it does (hosts.h)
};

client::Reconciled ReconcileService(const InferenceService& service,
                                    const ServingChildren& children, const GatewayAddress& gateway,
                                    Time now);

// Whose child an object of this name could be: when somebody else's goes, they can have theirs.
std::vector<client::ObjectKey> OwnersByName(const client::ObjectKey& child);

// The Service and the EndpointSlice by which NAME leads to the gateway.
json::Value MakeGatewayService(const json::Value& owner);
json::Value MakeGatewaySlice(const json::Value& owner, const GatewayAddress& gateway);
std::string GatewaySliceName(std::string_view service);

}  // namespace muster::serving
