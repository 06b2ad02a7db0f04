#include "gateway/route_builder.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "schema/conditions.h"
#include "schema/names.h"
#include "serving/hosts.h"
#include "serving/inference_service.h"

namespace muster::gateway {
namespace {

using client::ObjectKey;
using json::Value;
namespace resources = client::resources;

constexpr std::string_view kServiceName = "kubernetes.io/service-name";

const Value& Find(const client::Informer& informer, const ObjectKey& key) {
  static const Value kNone;
  const Value* found = informer.Find(key);
  return found != nullptr ? *found : kNone;
}

std::vector<Backend> ReadyBackends(const client::Informer& slices, const ObjectKey& service,
                                   std::string_view own_address) {
  std::set<Backend> ready;
  for (const ObjectKey& key : slices.Lookup(kSlicesByService, service.ToString())) {
    const Value& slice = *slices.Find(key);
    const int64_t port = slice["ports"].At(0)["port"].AsInt();
    for (const Value& endpoint : slice["endpoints"].items()) {
      if (!endpoint["conditions"]["ready"].AsBool(true)) continue;
      std::string address = endpoint["addresses"].At(0).Str();
      if (IsBackendAddress(address, own_address))
        ready.insert({std::move(address), static_cast<uint16_t>(port)});
    }
  }
  return {ready.begin(), ready.end()};
}

// Two entries are a canary and the Deployment beside it (serving_pass.h); one is the latter.
std::vector<std::pair<std::string, int64_t>> WeightsOf(const serving::InferenceService& service) {
  const Value& traffic = service.object["status"]["components"]["predictor"]["traffic"];
  const std::string stable = serving::PredictorName(service.name);
  if (traffic.size() < 2) return {{stable, 100}};
  return {{serving::CanaryName(service.name), traffic.At(0)["percent"].AsInt()},
          {stable, traffic.At(1)["percent"].AsInt()}};
}

Route RouteOf(const serving::InferenceService& service, const RouteSources& sources,
              CounterMap& counters, std::string_view own_address) {
  Route route;
  route.key = {service.ns, service.name};
  route.timeout = service.timeout;
  route.most_at_once = service.container_concurrency;
  route.v2 = service.model()["protocolVersion"].AsString() == "v2";
  const Value& predictor =
      schema::FindCondition(service.object["status"]["conditions"], "PredictorReady");
  if (predictor["status"].AsString() != "True") route.why_not = predictor["message"].Str();
  for (auto& [deployment, weight] : WeightsOf(service)) {
    const ObjectKey key{service.ns, deployment};
    std::shared_ptr<TrafficCounters>& counter = counters[key];
    if (counter == nullptr) counter = std::make_shared<TrafficCounters>();
    const Value& object = Find(sources.deployments, key);
    const bool asleep = !object.IsNull() && object["spec"]["replicas"].AsInt(1) == 0;
    route.groups.push_back({deployment, weight, asleep && service.scale.ByTraffic(),
                            ReadyBackends(sources.slices, key, own_address), counter});
  }
  return route;
}

std::string ClusterIp(const RouteSources& sources, const ObjectKey& key) {
  return Find(sources.cluster_services, key)["spec"]["clusterIP"].Str();
}

GraphRoute GraphRouteOf(const Value& graph) {
  return {client::KeyOf(graph), graph["spec"]["nodes"],
          serving::TimeoutOf(graph["spec"]["timeout"])};
}

// InferenceServices and InferenceGraphs: who may have a host first, first. Of one name the older
// has the Service.
std::vector<const Value*> InOrder(const RouteSources& sources) {
  std::vector<const Value*> list;
  for (const auto& [key, service] : sources.services.objects()) {
    if (!serving::HasNameInstead(sources.graphs.Find(key), service)) list.push_back(&service);
  }
  for (const auto& [key, graph] : sources.graphs.objects()) {
    if (!serving::HasNameInstead(sources.services.Find(key), graph)) list.push_back(&graph);
  }
  std::erase_if(list, [](const Value* one) { return serving::HostWanted(*one).empty(); });
  std::ranges::sort(list,
                    [](const Value* a, const Value* b) { return serving::HasHostBefore(*a, *b); });
  return list;
}

}  // namespace

RouteSources WatchRouteSources(client::InformerSet& informers) {
  client::Informer& slices =
      informers.Get(resources::kEndpointSlices, {{"metadata", "labels"}, {"endpoints"}, {"ports"}});
  slices.AddIndex(kSlicesByService, [](const Value& slice) -> std::vector<std::string> {
    const Value& service = slice["metadata"]["labels"][kServiceName];
    return {fmt::format("{}/{}", slice["metadata"]["namespace"].AsString(), service.AsString())};
  });
  return {informers.Get(serving::kInferenceServices, json::Fields::Whole()),
          informers.Get(serving::kInferenceGraphs, json::Fields::Whole()),
          informers.Get(resources::kDeployments, {{"spec", "replicas"}}),
          informers.Get(resources::kServices, {{"spec", "clusterIP"}}),
          slices,
          informers.Get(resources::kPods, {{"status", "podIP"}})};
}

bool IsBackendAddress(const std::string& address, std::string_view own_address) {
  schema::Problems problems;
  schema::CheckOrdinaryIp(address, problems);
  const std::string_view mapped = "::ffff:";
  const std::string_view plain =
      address.starts_with(mapped) ? std::string_view(address).substr(mapped.size()) : address;
  return problems.empty() && plain != own_address;
}

std::shared_ptr<const RouteTable> BuildRoutes(const RouteSources& sources, CounterMap& counters,
                                              std::string_view own_address) {
  auto table = std::make_shared<RouteTable>();
  for (const Value* object : InOrder(sources)) {
    const std::string cluster_ip = ClusterIp(sources, client::KeyOf(*object));
    if ((*object)["kind"].AsString() == "InferenceGraph") {
      table->Add(GraphRouteOf(*object), cluster_ip);
    } else {
      const serving::InferenceService service = serving::ParseInferenceService(*object);
      table->Add(RouteOf(service, sources, counters, own_address), cluster_ip);
    }
  }
  std::erase_if(counters, [](const auto& entry) { return entry.second.use_count() == 1; });
  if (table->HasAmbiguousNames()) {
    for (const auto& [key, pod] : sources.pods.objects()) {
      const std::string_view ip = pod["status"]["podIP"].AsString();
      if (!ip.empty()) table->AddPod(ip, key.ns);
    }
  }
  return table;
}

}  // namespace muster::gateway
