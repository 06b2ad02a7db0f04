// src/controllers/endpointslice/service_pods.h
//
// What the controllers of EndpointSlices and of Endpoints share: the pods that a Service selects,
// and the ports that they have for it.
//
// Thread: the loop thread.

#pragma once

#include <string>
#include <vector>

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

inline const client::Resource kOldEndpoints{"", "v1", "endpoints"};

// Somebody else writes the endpoints of those without a selector, and ExternalName has none.
bool SelectsPods(const json::Value& service);
// It has an address and is not over.
bool HasEndpoint(const json::Value& pod);
// name, port, protocol and appProtocol of every port of the service that the pod has: its
// targetPort, which may name a port of the pod, else the port itself.
json::Value PortsOf(const json::Value& service, const json::Value& pod);
// kind, namespace, name and uid of a pod.
json::Value ReferenceTo(const json::Value& pod);
// <hostname>.<subdomain>: the pod has a name of its own under the service that it names; else "".
std::string HostnameFor(const json::Value& service, const json::Value& pod);

// Call in Setup(): the Services, with the indexes that the rest needs.
const client::Informer& FollowServicesAndPods(client::InformerSet& informers);
// The services that select `pod`. REQUIRES: FollowServicesAndPods().
std::vector<client::ObjectKey> ServicesOf(const client::Informer& services, const std::string& ns,
                                          const json::Value& pod);
// A pod's change concerns the services that select its old or its new labels.
client::Trigger OnSelectedPod(const client::Informer& services);
// By name. REQUIRES: FollowServicesAndPods().
std::vector<json::Value> PodsOf(const client::Informer& pods, const json::Value& service);

}  // namespace muster::controllers
