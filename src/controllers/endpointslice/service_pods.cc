#include "controllers/endpointslice/service_pods.h"

#include <optional>
#include <set>

#include "controllers/pods/selected_objects.h"
#include "schema/label_selector.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

schema::LabelSelector SelectorOfService(const json::Value& service) {
  return schema::LabelSelector::FromMap(service["spec"]["selector"]);
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

}  // namespace

bool SelectsPods(const json::Value& service) {
  const json::Value& spec = service["spec"];
  return !spec["selector"].empty() && spec["type"].AsString() != "ExternalName";
}

bool HasEndpoint(const json::Value& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return !pod["status"]["podIP"].AsString().empty() && !schema::IsFinalPhase(phase);
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

json::Value ReferenceTo(const json::Value& pod) {
  const json::Value& metadata = pod["metadata"];
  return json::Obj({{"kind", "Pod"},
                    {"namespace", metadata["namespace"]},
                    {"name", metadata["name"]},
                    {"uid", metadata["uid"]}});
}

std::string HostnameFor(const json::Value& service, const json::Value& pod) {
  const bool named = pod["spec"]["subdomain"] == service["metadata"]["name"];
  return named ? pod["spec"]["hostname"].Str() : "";
}

const client::Informer& FollowServicesAndPods(client::InformerSet& informers) {
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
  return services;
}

std::vector<json::Value> PodsOf(const client::Informer& pods, const json::Value& service) {
  std::vector<json::Value> selected;
  for (const client::ObjectKey& key :
       Select(pods, service["metadata"]["namespace"].Str(), SelectorOfService(service)))
    selected.push_back(*pods.Find(key));
  return selected;
}

std::vector<client::ObjectKey> ServicesOf(const client::Informer& services, const std::string& ns,
                                          const json::Value& pod) {
  return SelectedBy(services, SelectorOfService, ns, pod["metadata"]["labels"]);
}

client::Trigger OnSelectedPod(const client::Informer& services) {
  return {resources::kPods, [&services](const client::ObjectKey& pod, const json::Value& before,
                                        const json::Value& after) {
            std::set<client::ObjectKey> keys;
            for (const json::Value* state : {&before, &after}) {
              if (state->IsNull()) continue;
              for (const client::ObjectKey& key : ServicesOf(services, pod.ns, *state))
                keys.insert(key);
            }
            return std::vector<client::ObjectKey>(keys.begin(), keys.end());
          }};
}

}  // namespace muster::controllers
