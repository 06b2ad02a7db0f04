#include "serving/children.h"

#include <fmt/core.h>

namespace muster::serving {
namespace {

using json::Value;

constexpr int64_t kDefaultUtilization = 80;  // percent, as KServe's

Value PodTemplateOf(std::string_view deployment, const RevisionSpec& revision) {
  return revision.pod_template.SetPath({"metadata", "labels", "app"}, AppLabel(deployment));
}

Value Annotations(const RevisionSpec& revision) {
  return json::Obj({{std::string(kRevisionAnnotation), revision.revision},
                    {std::string(kHashAnnotation), revision.hash}});
}

// While pods are replaced there is always as much as before, and something new before something
// old goes.
Value StrategyOf(const RevisionSpec& revision) {
  if (!revision.strategy.IsNull()) return revision.strategy;
  return json::Obj({{"type", "RollingUpdate"},
                    {"rollingUpdate", json::Obj({{"maxUnavailable", 0}, {"maxSurge", "25%"}})}});
}

constexpr std::string_view kGatewaySuffix = "-gateway";

}  // namespace

std::vector<client::ObjectKey> OwnersByName(const client::ObjectKey& child) {
  std::vector<client::ObjectKey> owners = {child};
  for (const std::string& suffix :
       {PredictorName(""), CanaryName(""), std::string(kGatewaySuffix)}) {
    if (child.name.size() > suffix.size() && child.name.ends_with(suffix))
      owners.push_back({child.ns, child.name.substr(0, child.name.size() - suffix.size())});
  }
  return owners;
}

Value MakeChild(std::string_view api_version, std::string_view kind, std::string_view name,
                const Value& owner) {
  const Value labels = json::Obj({{std::string(kServiceLabel), owner["metadata"]["name"]}});
  Value metadata = json::Obj({{"name", name},
                              {"namespace", owner["metadata"]["namespace"]},
                              {"ownerReferences", OwnerReferencesTo(owner)}});
  if (owner["kind"].AsString() == "InferenceService") metadata = metadata.Set("labels", labels);
  return json::Obj({{"apiVersion", api_version}, {"kind", kind}, {"metadata", metadata}});
}

Value MakeDeployment(const InferenceService& service, std::string_view name,
                     const RevisionSpec& revision, int64_t replicas) {
  return MakeChild("apps/v1", "Deployment", name, service.object)
      .SetPath({"metadata", "annotations"}, Annotations(revision))
      .SetPath({"metadata", "labels", "app"}, AppLabel(name))
      .Set("spec", json::Obj({{"replicas", replicas},
                              {"selector",
                               json::Obj({{"matchLabels", json::Obj({{"app", AppLabel(name)}})}})},
                              {"strategy", StrategyOf(revision)},
                              {"template", PodTemplateOf(name, revision)}}));
}

Value DeploymentPatch(std::string_view name, const RevisionSpec& revision) {
  const auto replace = [](std::string_view path, Value value) {
    return json::Obj({{"op", "add"}, {"path", path}, {"value", std::move(value)}});
  };
  return json::List({replace("/metadata/annotations/muster.dev~1revision", revision.revision),
                     replace("/metadata/annotations/muster.dev~1spec-hash", revision.hash),
                     replace("/spec/strategy", StrategyOf(revision)),
                     replace("/spec/template", PodTemplateOf(name, revision))});
}

Value MakePodService(const InferenceService& service, std::string_view name, int port) {
  const Value ports = json::List(
      {json::Obj({{"name", "http"}, {"port", 80}, {"targetPort", port}, {"protocol", "TCP"}})});
  return MakeChild("v1", "Service", name, service.object)
      .Set("spec",
           json::Obj({{"selector", json::Obj({{"app", AppLabel(name)}})}, {"ports", ports}}));
}

Value AutoscalerSpec(const InferenceService& service) {
  const ScalePolicy& scale = service.scale;
  const Value target =
      json::Obj({{"type", "Utilization"},
                 {"averageUtilization", scale.target.value_or(kDefaultUtilization)}});
  const Value metric = json::Obj(
      {{"type", "Resource"},
       {"resource", json::Obj({{"name", scale.metric == ScaleMetric::kMemory ? "memory" : "cpu"},
                               {"target", target}})}});
  return json::Obj({{"scaleTargetRef", json::Obj({{"apiVersion", "apps/v1"},
                                                  {"kind", "Deployment"},
                                                  {"name", PredictorName(service.name)}})},
                    {"minReplicas", scale.least},
                    {"maxReplicas", scale.most},
                    {"metrics", json::List({metric})}});
}

std::string GatewaySliceName(std::string_view service) {
  return fmt::format("{}{}", service, kGatewaySuffix);
}

Value MakeGatewayService(const Value& owner) {
  const Value ports =
      json::List({json::Obj({{"name", "http"}, {"port", 80}, {"protocol", "TCP"}})});
  return MakeChild("v1", "Service", owner["metadata"]["name"].AsString(), owner)
      .Set("spec", json::Obj({{"ports", ports}}));
}

Value MakeGatewaySlice(const Value& owner, const GatewayAddress& gateway) {
  const std::string name = owner["metadata"]["name"].Str();
  const Value endpoint = json::Obj(
      {{"addresses", json::List({gateway.address})}, {"conditions", json::Obj({{"ready", true}})}});
  const Value port = json::Obj({{"name", "http"}, {"port", gateway.port}, {"protocol", "TCP"}});
  Value slice =
      MakeChild("discovery.k8s.io/v1", "EndpointSlice", GatewaySliceName(name), owner)
          .SetPath({"metadata", "labels", "kubernetes.io/service-name"}, name)
          .SetPath({"metadata", "labels", "endpointslice.kubernetes.io/managed-by"}, kSliceManager);
  return slice.Set("addressType", "IPv4")
      .Set("endpoints", json::List({endpoint}))
      .Set("ports", json::List({port}));
}

}  // namespace muster::serving
