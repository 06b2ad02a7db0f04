#include "controllers/endpointslice/endpointslice_controller.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/rng.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/pods/selected_objects.h"
#include "json/write.h"
#include "schema/conditions.h"
#include "schema/label_selector.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr int kNameSuffixLength = 5;

schema::LabelSelector SelectorOfService(const json::Value& service) {
  return schema::LabelSelector::FromMap(service["spec"]["selector"]);
}

bool HasEndpoint(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return !pod["status"]["podIP"].AsString().empty() && !schema::IsFinalPhase(phase);
}

json::Value EndpointOf(const json::Value& service, const json::Value& pod, const ZoneOf& zone_of) {
  const json::Value& metadata = pod["metadata"];
  const bool terminating = metadata.Has("deletionTimestamp");
  const bool serving = IsReady(pod);
  const bool publish = service["spec"]["publishNotReadyAddresses"].AsBool();
  json::Object endpoint{{"addresses", json::List({pod["status"]["podIP"]})},
                        {"conditions", json::Obj({{"ready", publish || (serving && !terminating)},
                                                  {"serving", serving},
                                                  {"terminating", terminating}})}};
  // <hostname>.<subdomain>: the pod has a name of its own under the service that it names.
  const std::string_view hostname = pod["spec"]["hostname"].AsString();
  if (!hostname.empty() && pod["spec"]["subdomain"] == service["metadata"]["name"]) {
    endpoint.emplace_back("hostname", hostname);
  }
  if (pod["spec"].Has("nodeName")) endpoint.emplace_back("nodeName", pod["spec"]["nodeName"]);
  endpoint.emplace_back("targetRef", json::Obj({{"kind", "Pod"},
                                                {"namespace", metadata["namespace"]},
                                                {"name", metadata["name"]},
                                                {"uid", metadata["uid"]}}));
  const std::string zone = zone_of ? zone_of(pod["spec"]["nodeName"].Str()) : "";
  if (!zone.empty()) endpoint.emplace_back("zone", zone);
  return json::Value(std::move(endpoint));
}

// The number behind a service port: its targetPort, which may name a port of the pod, else the port
// itself.
std::optional<int64_t> TargetPortOf(const json::Value& port, const json::Value& pod) {
  const json::Value& target = port["targetPort"];
  if (target.IsNumber() && target.AsInt() != 0) return target.AsInt();
  if (!target.IsString()) return port["port"].AsInt();
  for (const json::Value& container : pod["spec"]["containers"].items()) {
    for (const json::Value& candidate : container["ports"].items()) {
      if (candidate["name"] == target &&
          candidate["protocol"].AsString("TCP") == port["protocol"].AsString("TCP")) {
        return candidate["containerPort"].AsInt();
      }
    }
  }
  return std::nullopt;
}

json::Value PortsOf(const json::Value& service, const json::Value& pod) {
  json::Array ports;
  for (const json::Value& port : service["spec"]["ports"].items()) {
    const std::optional<int64_t> number = TargetPortOf(port, pod);
    if (!number) continue;
    json::Object entry{{"name", port["name"].AsString()},
                       {"port", *number},
                       {"protocol", port["protocol"].AsString("TCP")}};
    if (port.Has("appProtocol")) entry.emplace_back("appProtocol", port["appProtocol"]);
    ports.push_back(json::Value(std::move(entry)));
  }
  return json::Value(std::move(ports));
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

std::vector<json::Value> PodsOf(const client::Informer& pods, const json::Value& service) {
  std::vector<json::Value> selected;
  for (const client::ObjectKey& key :
       Select(pods, service["metadata"]["namespace"].Str(), SelectorOfService(service)))
    selected.push_back(*pods.Find(key));
  return selected;
}

// A pod's change concerns the services that select its old or its new labels.
client::Trigger OnSelectedPod(const client::Informer& services) {
  return {resources::kPods, [&services](const client::ObjectKey& pod, const json::Value& before,
                                        const json::Value& after) {
            std::set<client::ObjectKey> keys;
            for (const json::Value* state : {&before, &after}) {
              if (state->IsNull()) continue;
              const json::Value& labels = (*state)["metadata"]["labels"];
              for (const client::ObjectKey& key :
                   SelectedBy(services, SelectorOfService, pod.ns, labels))
                keys.insert(key);
            }
            return std::vector<client::ObjectKey>(keys.begin(), keys.end());
          }};
}

bool SameSlice(const json::Value& have, const json::Value& want) {
  return have["endpoints"] == want["endpoints"] && have["ports"] == want["ports"] &&
         have["metadata"]["labels"] == want["metadata"]["labels"];
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
  client::Informer& services = informers.Get(resources::kServices, json::Fields::Whole());
  IndexBySelector(services, SelectorOfService);
  const json::Fields of_pods{{"metadata", "labels"},
                             {"spec", "hostname"},
                             {"spec", "subdomain"},
                             {"spec", "nodeName"},
                             {"spec", "containers", "ports"},
                             {"status", "phase"},
                             {"status", "podIP"},
                             {"status", "conditions"}};
  IndexByLabels(informers.Get(resources::kPods, of_pods));
  informers.Get(resources::kNodes, {{"metadata", "labels"}});
  client::IndexByController(informers.Get(resources::kEndpointSlices, json::Fields::Whole()));
  return {client::OnSelf(resources::kServices), OnSelectedPod(services),
          client::OnControlledBy(resources::kEndpointSlices, "Service", "")};
}

client::Reconciled EndpointSliceController::Reconcile(const client::View& view,
                                                      const client::Observations&,
                                                      const client::ObjectKey& key, Time,
                                                      uint64_t) {
  client::Reconciled out;
  const json::Value* service = view.Of(resources::kServices).Find(key);
  if (service == nullptr || (*service)["metadata"].Has("deletionTimestamp")) return out;
  if ((*service)["spec"]["selector"].empty() ||
      (*service)["spec"]["type"].AsString() == "ExternalName") {
    return out;
  }
  const client::Informer& slices = view.Of(resources::kEndpointSlices);
  std::set<client::ObjectKey> wanted;
  // A node's zone does not change while it has pods, so nodes start no pass.
  const client::Informer& nodes = view.Of(resources::kNodes);
  const ZoneOf zone_of = [&](const std::string& name) {
    const json::Value* node = nodes.Find({"", name});
    return node == nullptr ? ""
                           : (*node)["metadata"]["labels"]["topology.kubernetes.io/zone"].Str();
  };
  for (json::Value& slice :
       MakeEndpointSlices(*service, PodsOf(view.Of(resources::kPods), *service), zone_of)) {
    const client::ObjectKey slice_key = client::KeyOf(slice);
    const client::Target target{resources::kEndpointSlices, slice_key.ns, slice_key.name, ""};
    wanted.insert(slice_key);
    const json::Value* have = slices.Find(slice_key);
    if (have == nullptr) {
      out.Create(target, std::move(slice));
    } else if (!SameSlice(*have, slice) && !(*have)["metadata"].Has("deletionTimestamp")) {
      out.Update(target, have->Set("endpoints", slice["endpoints"])
                             .Set("ports", slice["ports"])
                             .SetPath({"metadata", "labels"}, slice["metadata"]["labels"]));
    }
  }
  for (const client::ObjectKey& owned :
       client::ControlledBy(slices, (*service)["metadata"]["uid"].AsString())) {
    if (wanted.contains(owned) || (*slices.Find(owned))["metadata"].Has("deletionTimestamp")) {
      continue;
    }
    out.Delete({resources::kEndpointSlices, owned.ns, owned.name, ""});
  }
  return out;
}

}  // namespace muster::controllers
