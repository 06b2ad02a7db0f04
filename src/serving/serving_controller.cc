#include "serving/serving_controller.h"

#include <fmt/core.h>

#include "schema/conditions.h"
#include "serving/builtin_runtime.h"
#include "serving/hosts.h"

namespace muster::serving {
namespace {

using client::ObjectKey;
using json::Value;
namespace resources = client::resources;

constexpr char kByService[] = "inferenceservice";
constexpr std::string_view kSliceService = "kubernetes.io/service-name";

// Of a pod, the InferenceService that it belongs to.
std::vector<std::string> ServiceOfPod(const Value& pod) {
  const Value& name = pod["metadata"]["labels"][kServiceLabel];
  if (name.IsNull()) return {};
  return {fmt::format("{}/{}", pod["metadata"]["namespace"].AsString(), name.AsString())};
}

// An EndpointSlice of NAME-predictor concerns NAME.
std::vector<ObjectKey> ServiceOfSlice(const ObjectKey& key, const Value& before,
                                      const Value& after) {
  constexpr std::string_view kSuffix = "-predictor";
  const Value& slice = after.IsNull() ? before : after;
  std::string_view service = slice["metadata"]["labels"][kSliceService].AsString();
  if (!service.ends_with(kSuffix)) return {};
  service.remove_suffix(kSuffix.size());
  return {ObjectKey{key.ns, std::string(service)}};
}

const Value& Find(const client::View& view, const client::Resource& resource,
                  const ObjectKey& key) {
  static const Value kNone;
  const Value* found = view.Of(resource).Find(key);
  return found != nullptr ? *found : kNone;
}

bool HasReadyEndpoint(const client::Informer& slices, const ObjectKey& service) {
  for (const ObjectKey& key :
       slices.Lookup(kByService, fmt::format("{}/{}", service.ns, service.name))) {
    for (const Value& endpoint : (*slices.Find(key))["endpoints"].items()) {
      if (endpoint["conditions"]["ready"].AsBool(true)) return true;
    }
  }
  return false;
}

RuntimeChoice Choose(const client::View& view, const InferenceService& service) {
  if (service.model().IsNull()) return {};
  std::vector<Value> of_namespace, of_cluster;
  for (const auto& [key, runtime] : view.Of(kServingRuntimes).objects()) {
    if (key.ns == service.ns) of_namespace.push_back(runtime);
  }
  for (const auto& [key, runtime] : view.Of(kClusterServingRuntimes).objects())
    of_cluster.push_back(runtime);
  return ChooseRuntime(service.model(), of_namespace, of_cluster);
}

ServingChildren FindChildren(const client::View& view, const InferenceService& service) {
  ServingChildren children;
  const auto find = [&](const client::Resource& resource, const std::string& name) -> Value {
    const Value& object = Find(view, resource, {service.ns, name});
    if (!object.IsNull() && client::ControllerOf(object)["uid"].AsString() != service.uid)
      children.taken.push_back(fmt::format("{} \"{}\"", resource.plural, name));
    return object;
  };
  const std::string predictor = PredictorName(service.name);
  const std::string canary = CanaryName(service.name);
  children.stable = find(resources::kDeployments, predictor);
  children.canary = find(resources::kDeployments, canary);
  children.service = find(resources::kServices, service.name);
  children.predictor_service = find(resources::kServices, predictor);
  children.canary_service = find(resources::kServices, canary);
  children.gateway_slice = find(resources::kEndpointSlices, GatewaySliceName(service.name));
  children.autoscaler = find(resources::kHorizontalPodAutoscalers, predictor);
  const client::Informer& pods = view.Of(resources::kPods);
  for (const ObjectKey& key :
       pods.Lookup(kByService, fmt::format("{}/{}", service.ns, service.name)))
    children.pods.push_back(*pods.Find(key));
  children.stable_reachable =
      HasReadyEndpoint(view.Of(resources::kEndpointSlices), {service.ns, predictor});
  children.program =
      Find(view, resources::kConfigMaps, {service.ns, kSklearnConfigMap})["data"][kSklearnProgram]
          .Str();
  children.choice = Choose(view, service);
  const Value* graph = view.Of(kInferenceGraphs).Find({service.ns, service.name});
  children.named_as_a_graph = HasNameInstead(graph, service.object);
  children.host_owner =
      HostOwner(view.Of(kInferenceServices), view.Of(kInferenceGraphs), service.object);
  return children;
}

std::vector<std::string> SliceService(const Value& slice) {
  return {fmt::format("{}/{}", slice["metadata"]["namespace"].AsString(),
                      slice["metadata"]["labels"][kSliceService].AsString())};
}

json::Fields PodFields() {
  return {{"metadata", "labels"},
          {"status", "conditions"},
          {"status", "containerStatuses", "name"},
          {"status", "containerStatuses", "ready"},
          {"status", "containerStatuses", "state", "waiting"},
          {"status", "containerStatuses", "state", "terminated"},
          {"status", "containerStatuses", "lastState", "terminated"}};
}

}  // namespace

std::vector<ObjectKey> ServingController::Known(std::string_view ns) const {
  std::vector<ObjectKey> keys;
  for (const ObjectKey& key : known_) {
    if (ns.empty() || key.ns == ns) keys.push_back(key);
  }
  return keys;
}

// One that is somebody else's comes or goes.
client::Trigger ServingController::OnNamed(const client::Resource& child) const {
  return {child, [this](const ObjectKey& key, const Value& before, const Value& after) {
            if (!before.IsNull() && !after.IsNull()) return std::vector<ObjectKey>();
            std::vector<ObjectKey> owners = OwnersByName(key);
            std::erase_if(owners, [this](const ObjectKey& one) { return !known_.contains(one); });
            return owners;
          }};
}

std::vector<client::Trigger> ServingController::Setup(client::InformerSet& informers) {
  client::Informer& services = informers.Get(kInferenceServices, json::Fields::Whole());
  IndexByHost(services);
  IndexByHost(informers.Get(kInferenceGraphs, json::Fields::Whole()));
  informers.Get(kServingRuntimes, json::Fields::Whole());
  informers.Get(kClusterServingRuntimes, json::Fields::Whole());
  informers.Get(resources::kDeployments, {{"metadata", "annotations", kRevisionAnnotation},
                                          {"metadata", "annotations", kHashAnnotation},
                                          {"metadata", "generation"},
                                          {"spec", "replicas"},
                                          {"status"}});
  informers.Get(resources::kServices, {{"spec", "ports"}, {"spec", "selector"}});
  informers.Get(resources::kHorizontalPodAutoscalers, {{"spec"}});
  informers.Get(resources::kConfigMaps, {{"data", kSklearnProgram}});
  informers.Get(resources::kEndpointSlices, {{"metadata", "labels"}, {"endpoints"}, {"ports"}})
      .AddIndex(kByService, SliceService);
  informers.Get(resources::kPods, PodFields()).AddIndex(kByService, ServiceOfPod);

  std::vector<client::Trigger> triggers = {client::OnSelf(kInferenceServices),
                                           OnSharedHost(kInferenceServices, services),
                                           OnSharedHost(kInferenceGraphs, services)};
  for (const client::Resource& child :
       {resources::kDeployments, resources::kServices, resources::kEndpointSlices,
        resources::kHorizontalPodAutoscalers}) {
    triggers.push_back(client::OnControlledBy(child, "InferenceService", "serving.kserve.io"));
    triggers.push_back(OnNamed(child));
  }
  triggers.push_back({resources::kEndpointSlices, ServiceOfSlice});
  triggers.push_back(
      {resources::kPods, [](const ObjectKey& key, const Value& before, const Value& after) {
         const Value& pod = after.IsNull() ? before : after;
         const Value& name = pod["metadata"]["labels"][kServiceLabel];
         return name.IsNull() ? std::vector<ObjectKey>{}
                              : std::vector{ObjectKey{key.ns, name.Str()}};
       }});
  for (const client::Resource& runtimes : {kServingRuntimes, kClusterServingRuntimes}) {
    triggers.push_back({runtimes, [this](const ObjectKey& key, const Value&, const Value&) {
                          return Known(key.ns);
                        }});
  }
  return triggers;
}

client::Reconciled ServingController::Reconcile(const client::View& view,
                                                const client::Observations& observations,
                                                const ObjectKey& key, Time now, uint64_t) {
  const Value* object = view.Of(kInferenceServices).Find(key);
  if (object == nullptr || (*object)["metadata"].Has("deletionTimestamp")) {
    known_.erase(key);
    return {};
  }
  known_.insert(key);
  const InferenceService service = ParseInferenceService(*object);
  ServingChildren children = FindChildren(view, service);
  if (const auto refused = observations.find(client::kRefusedWrite); refused != observations.end())
    children.refused_write = refused->second;
  return ReconcileService(service, children, gateway_, now);
}

}  // namespace muster::serving
