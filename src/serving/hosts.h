// src/serving/hosts.h
//
// By which hosts InferenceServices and InferenceGraphs are reached. NAME.NAMESPACE.example.com
// belongs to one only. NAME-NAMESPACE.example.com (KServe's) may be that of several: "a-b" of the
// namespace c and "a" of b-c. It leads to the oldest of them; the others say so (HostTaken).
//
// Thread: any (pure), but for the loop thread where there are informers.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/informer.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::serving {

inline constexpr std::string_view kIngressDomain = "example.com";  // as KServe's default

// "iris-ml.example.com", which others may have, too.
std::string SharedHostOf(std::string_view name, std::string_view ns);
// "iris.ml.example.com"
std::string OwnHostOf(std::string_view name, std::string_view ns);
// From pods: "http://iris.ml.svc.cluster.local".
std::string ClusterUrlOf(std::string_view name, std::string_view ns);

// "Iris.ML.svc:80" -> "iris.ml.svc"
std::string HostName(std::string_view host);
// "iris.ml" of "iris.ml.svc.cluster.local".
std::string_view WithoutClusterSuffix(std::string_view host);

// Which of two objects has a host that both could have: the older one; of the same second the one
// whose namespace, then name, comes first.
bool HasHostBefore(const json::Value& a, const json::Value& b);

// Of an InferenceService and an InferenceGraph of one name, the older has the name, and with it the
// Service: whether that is `other` (nullptr: there is none) and not `object`.
bool HasNameInstead(const json::Value* other, const json::Value& object);

inline constexpr char kByHost[] = "serving-host";
// Adds the index kByHost to an informer of InferenceServices or InferenceGraphs.
void IndexByHost(client::Informer& informer);
// Its shared host; "" if it is not reached at all (it goes, or is stopped).
std::string HostWanted(const json::Value& object);
// Of all that want the host of `object`, who has it, in words: "InferenceService c/a-b". "": it is
// `object`.
std::string HostOwner(const client::Informer& services, const client::Informer& graphs,
                      const json::Value& object);

// A change of one `resource` concerns those of `whom` that want the same host.
client::Trigger OnSharedHost(const client::Resource& resource, const client::Informer& whom);

// Why an InferenceGraph of `ns` would not reach this serviceUrl; "": it leads to an
// InferenceService. Nobody else is reached: a graph must not lead where the gateway's machine can
// go (its loopback, link-local addresses, API servers). `cluster_services`: with spec.clusterIP.
std::string UrlFault(std::string_view url, std::string_view ns, const client::Informer& services,
                     const client::Informer& cluster_services);

}  // namespace muster::serving
