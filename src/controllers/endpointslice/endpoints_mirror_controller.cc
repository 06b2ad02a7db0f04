#include "controllers/endpointslice/endpoints_mirror_controller.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/rng.h"
#include "controllers/endpointslice/endpointslice_controller.h"
#include "controllers/endpointslice/service_pods.h"
#include "controllers/endpointslice/slice_writes.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr int kNameSuffixLength = 5;
constexpr const char* kSkipMirror = "endpointslice.kubernetes.io/skip-mirror";
constexpr const char* kLeader = "control-plane.alpha.kubernetes.io/leader";
// What belongs to the Endpoints and not to their copy.
constexpr std::string_view kNotCopied[] = {"endpoints.kubernetes.io/last-change-trigger-time",
                                           "kubectl.kubernetes.io/last-applied-configuration"};

bool IsMirrored(const json::Value& endpoints) {
  const json::Value& metadata = endpoints["metadata"];
  return metadata["labels"][kSkipMirror].AsString() != "true" &&
         !metadata["annotations"].Has(kLeader);
}

bool IsIpv6(const json::Value& address) {
  return address["ip"].AsString().find(':') != std::string_view::npos;
}

json::Value EndpointOf(const json::Value& address, bool ready) {
  json::Object endpoint{{"addresses", json::List({address["ip"]})},
                        {"conditions", json::Obj({{"ready", ready}})}};
  for (const char* field : {"hostname", "nodeName", "targetRef"}) {
    const json::Value& value = address[field];
    if (!value.IsNull() && !(value.IsString() && value.AsString().empty()))
      endpoint.emplace_back(field, value);
  }
  return json::Value(std::move(endpoint));
}

json::Array EndpointsOf(const json::Value& subset, bool ipv6) {
  json::Array endpoints;
  size_t seen = 0;  // of both families
  for (const auto& [list, ready] :
       {std::pair("addresses", true), std::pair("notReadyAddresses", false)}) {
    for (const json::Value& address : subset[list].items()) {
      if (++seen > kMaxMirroredPerSubset) return endpoints;
      if (IsIpv6(address) == ipv6) endpoints.push_back(EndpointOf(address, ready));
    }
  }
  return endpoints;
}

json::Value PortsOf(const json::Value& subset) {
  json::Array ports;
  for (const json::Value& port : subset["ports"].items()) {
    json::Object entry{{"name", port["name"].AsString()},
                       {"port", port["port"]},
                       {"protocol", port["protocol"].AsString("TCP")}};
    if (port.Has("appProtocol")) entry.emplace_back("appProtocol", port["appProtocol"]);
    ports.push_back(json::Value(std::move(entry)));
  }
  return json::Value(std::move(ports));
}

json::Value MetadataOf(const json::Value& endpoints, size_t subset, const char* family) {
  const json::Value& metadata = endpoints["metadata"];
  const std::string name = metadata["name"].Str();
  Rng suffix(
      client::SeedOf(metadata["uid"].AsString(), fmt::format("mirror {} {}", subset, family)));
  const json::Value owner = json::Obj({{"apiVersion", "v1"},
                                       {"kind", "Endpoints"},
                                       {"name", name},
                                       {"uid", metadata["uid"]},
                                       {"controller", true},
                                       {"blockOwnerDeletion", true}});
  json::Value out =
      json::Obj({{"name", fmt::format("{}-{}", name, suffix.NameSuffix(kNameSuffixLength))},
                 {"generateName", name + "-"},
                 {"namespace", metadata["namespace"]},
                 {"labels", metadata["labels"]
                                .Set("endpointslice.kubernetes.io/managed-by",
                                     "endpointslicemirroring-controller.k8s.io")
                                .Set(kServiceNameLabel, name)},
                 {"ownerReferences", json::List({owner})}});
  json::Object annotations;
  for (const auto& [key, value] : metadata["annotations"].members()) {
    if (std::ranges::find(kNotCopied, key) == std::end(kNotCopied))
      annotations.emplace_back(key, value);
  }
  if (!annotations.empty())
    out = std::move(out).Set("annotations", json::Value(std::move(annotations)));
  return out;
}

json::Value Merge(const json::Value& have, const json::Value& want) {
  const json::Value& annotations = want["metadata"]["annotations"];
  json::Value out = MergeEndpoints(have, want);
  return annotations.IsNull() ? out.RemovePath({"metadata", "annotations"})
                              : out.SetPath({"metadata", "annotations"}, annotations);
}

}  // namespace

std::vector<json::Value> MirrorEndpoints(const json::Value& endpoints) {
  std::vector<json::Value> slices;
  if (!IsMirrored(endpoints)) return slices;
  for (size_t i = 0; i < endpoints["subsets"].size(); ++i) {
    const json::Value& subset = endpoints["subsets"].At(i);
    for (const char* family : {"IPv4", "IPv6"}) {
      json::Array list = EndpointsOf(subset, std::string_view(family) == "IPv6");
      if (list.empty()) continue;
      slices.push_back(json::Obj({{"apiVersion", "discovery.k8s.io/v1"},
                                  {"kind", "EndpointSlice"},
                                  {"metadata", MetadataOf(endpoints, i, family)},
                                  {"addressType", family},
                                  {"endpoints", json::Value(std::move(list))},
                                  {"ports", PortsOf(subset)}}));
    }
  }
  return slices;
}

std::vector<client::Trigger> EndpointsMirrorController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kServices, json::Fields::Whole());
  informers.Get(kOldEndpoints, json::Fields::Whole());
  client::IndexByController(informers.Get(resources::kEndpointSlices, json::Fields::Whole()));
  return {client::OnSelf(resources::kServices), client::OnSelf(kOldEndpoints),
          client::OnControlledBy(resources::kEndpointSlices, "Endpoints", "")};
}

client::Reconciled EndpointsMirrorController::Reconcile(const client::View& view,
                                                        const client::Observations&,
                                                        const client::ObjectKey& key, Time,
                                                        uint64_t) {
  client::Reconciled out;
  const json::Value* endpoints = view.Of(kOldEndpoints).Find(key);
  // Slices of Endpoints that went go by the garbage collector.
  if (endpoints == nullptr || (*endpoints)["metadata"].Has("deletionTimestamp")) return out;
  const json::Value* service = view.Of(resources::kServices).Find(key);
  const client::Informer& slices = view.Of(resources::kEndpointSlices);
  const std::string uid = (*endpoints)["metadata"]["uid"].Str();
  const std::vector<client::ObjectKey> mirrored = client::ControlledBy(slices, uid);
  // There was a Service, else there would be no slices: its Endpoints go with it.
  if (service == nullptr && !mirrored.empty()) {
    client::DeleteOptions options;
    options.precondition_uid = uid;
    out.Delete({kOldEndpoints, key.ns, key.name, ""}, options);
  }
  std::vector<json::Value> list;
  if (service != nullptr && (*service)["spec"]["selector"].empty())
    list = MirrorEndpoints(*endpoints);
  WriteSlices(slices, std::move(list), mirrored, Merge, out);
  return out;
}

}  // namespace muster::controllers
