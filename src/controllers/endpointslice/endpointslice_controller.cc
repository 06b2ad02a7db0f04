#include "controllers/endpointslice/endpointslice_controller.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/rng.h"
#include "controllers/endpointslice/service_pods.h"
#include "controllers/endpointslice/slice_writes.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/pods_by_node.h"
#include "json/write.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr int kNameSuffixLength = 5;

std::string ZoneOfNode(const json::Value& node) {
  return node["metadata"]["labels"]["topology.kubernetes.io/zone"].Str();
}

json::Value NameList(const json::Value& name) { return json::List({json::Obj({{"name", name}})}); }

// For whom an endpoint that is ready had better be there: its own zone, and, where that is asked
// for, its own node. Null: for everybody.
json::Value HintsFor(const json::Value& service, const json::Value& node, const std::string& zone) {
  const std::string_view wanted = service["spec"]["trafficDistribution"].AsString();
  const bool same_node = wanted == "PreferSameNode";
  if (!same_node && wanted != "PreferSameZone" && wanted != "PreferClose") return {};
  json::Object hints;
  if (!zone.empty()) hints.emplace_back("forZones", NameList(zone));
  if (same_node && !node.IsNull()) hints.emplace_back("forNodes", NameList(node));
  return hints.empty() ? json::Value() : json::Value(std::move(hints));
}

json::Value EndpointOf(const json::Value& service, const json::Value& pod, const ZoneOf& zone_of) {
  const bool terminating = pod["metadata"].Has("deletionTimestamp");
  const bool serving = IsReady(pod);
  const bool publish = service["spec"]["publishNotReadyAddresses"].AsBool();
  const bool ready = publish || (serving && !terminating);
  json::Object endpoint{
      {"addresses", json::List({pod["status"]["podIP"]})},
      {"conditions",
       json::Obj({{"ready", ready}, {"serving", serving}, {"terminating", terminating}})}};
  const std::string hostname = HostnameFor(service, pod);
  if (!hostname.empty()) endpoint.emplace_back("hostname", hostname);
  if (pod["spec"].Has("nodeName")) endpoint.emplace_back("nodeName", pod["spec"]["nodeName"]);
  endpoint.emplace_back("targetRef", ReferenceTo(pod));
  const std::string zone = zone_of ? zone_of(pod["spec"]["nodeName"].Str()) : "";
  if (!zone.empty()) endpoint.emplace_back("zone", zone);
  const json::Value hints = HintsFor(service, pod["spec"]["nodeName"], zone);
  if (ready && !hints.IsNull()) endpoint.emplace_back("hints", hints);
  return json::Value(std::move(endpoint));
}

json::Value SliceOf(const json::Value& service, size_t number, json::Array endpoints,
                    json::Value ports) {
  const json::Value& metadata = service["metadata"];
  const std::string name = metadata["name"].Str();
  Rng suffix(client::SeedOf(metadata["uid"].AsString(), fmt::format("endpointslice {}", number)));
  json::Value labels =
      metadata["labels"]
          .Set("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io")
          .Set(kServiceNameLabel, name);
  if (service["spec"]["clusterIP"].AsString() == "None") {
    labels = labels.Set("service.kubernetes.io/headless", "");
  }
  const json::Value owner = json::Obj({{"apiVersion", "v1"},
                                       {"kind", "Service"},
                                       {"name", name},
                                       {"uid", metadata["uid"]},
                                       {"controller", true},
                                       {"blockOwnerDeletion", true}});
  return json::Obj(
      {{"apiVersion", "discovery.k8s.io/v1"},
       {"kind", "EndpointSlice"},
       {"metadata",
        json::Obj({{"name", fmt::format("{}-{}", name, suffix.NameSuffix(kNameSuffixLength))},
                   {"generateName", name + "-"},
                   {"namespace", metadata["namespace"]},
                   {"labels", labels},
                   {"ownerReferences", json::List({owner})}})},
       {"addressType", "IPv4"},
       {"endpoints", json::Value(std::move(endpoints))},
       {"ports", std::move(ports)}});
}

// A node's zone concerns the services of its pods.
client::Trigger OnZoneOfNode(const client::Informer& pods, const client::Informer& services) {
  return {resources::kNodes,
          [&pods, &services](const client::ObjectKey& node, const json::Value& before,
                             const json::Value& after) {
            std::set<client::ObjectKey> keys;
            if (ZoneOfNode(before) == ZoneOfNode(after)) return std::vector<client::ObjectKey>();
            for (const client::ObjectKey& pod : PodsOn(pods, node.name)) {
              const std::vector<client::ObjectKey> of_pod =
                  ServicesOf(services, pod.ns, *pods.Find(pod));
              keys.insert(of_pod.begin(), of_pod.end());
            }
            return std::vector<client::ObjectKey>(keys.begin(), keys.end());
          }};
}

}  // namespace

std::vector<json::Value> MakeEndpointSlices(const json::Value& service,
                                            const std::vector<json::Value>& pods,
                                            const ZoneOf& zone_of) {
  // Pods whose named ports have other numbers need a slice of their own.
  std::map<std::string, std::pair<json::Value, json::Array>> by_ports;
  for (const json::Value& pod : pods) {
    if (!HasEndpoint(pod)) continue;
    json::Value ports = PortsOf(service, pod);
    auto& [slice_ports, endpoints] = by_ports[json::Write(ports)];
    slice_ports = std::move(ports);
    endpoints.push_back(EndpointOf(service, pod, zone_of));
  }
  std::vector<json::Value> slices;
  for (auto& [text, group] : by_ports) {
    auto& [ports, endpoints] = group;
    for (size_t first = 0; first < endpoints.size(); first += kMaxEndpointsPerSlice) {
      const size_t end = std::min(first + kMaxEndpointsPerSlice, endpoints.size());
      slices.push_back(SliceOf(service, slices.size(),
                               json::Array(endpoints.begin() + static_cast<ptrdiff_t>(first),
                                           endpoints.begin() + static_cast<ptrdiff_t>(end)),
                               ports));
    }
  }
  // A service without pods has one empty slice: a watcher learns that it exists.
  if (slices.empty()) slices.push_back(SliceOf(service, 0, {}, json::Value(json::Array())));
  return slices;
}

std::vector<client::Trigger> EndpointSliceController::Setup(client::InformerSet& informers) {
  const client::Informer& services = FollowServicesAndPods(informers);
  informers.Get(resources::kNodes, {{"metadata", "labels"}});
  client::Informer& pods = informers.Get(resources::kPods);
  IndexByNode(pods);
  client::IndexByController(informers.Get(resources::kEndpointSlices, json::Fields::Whole()));
  return {client::OnSelf(resources::kServices), OnSelectedPod(services),
          OnZoneOfNode(pods, services),
          client::OnControlledBy(resources::kEndpointSlices, "Service", "")};
}

client::Reconciled EndpointSliceController::Reconcile(const client::View& view,
                                                      const client::Observations&,
                                                      const client::ObjectKey& key, Time,
                                                      uint64_t) {
  client::Reconciled out;
  const json::Value* service = view.Of(resources::kServices).Find(key);
  if (service == nullptr || (*service)["metadata"].Has("deletionTimestamp")) return out;
  if (!SelectsPods(*service)) return out;
  const client::Informer& slices = view.Of(resources::kEndpointSlices);
  const client::Informer& nodes = view.Of(resources::kNodes);
  const ZoneOf zone_of = [&](const std::string& name) {
    const json::Value* node = nodes.Find({"", name});
    return node == nullptr ? "" : ZoneOfNode(*node);
  };
  WriteSlices(
      slices, MakeEndpointSlices(*service, PodsOf(view.Of(resources::kPods), *service), zone_of),
      client::ControlledBy(slices, (*service)["metadata"]["uid"].AsString()), MergeEndpoints, out);
  return out;
}

}  // namespace muster::controllers
