#include "serving/graph_controller.h"

#include "schema/conditions.h"
#include "serving/graph_pass.h"
#include "serving/hosts.h"
#include "serving/inference_service.h"

namespace muster::serving {

using client::ObjectKey;
using json::Value;
namespace resources = client::resources;

std::vector<client::Trigger> GraphController::Setup(client::InformerSet& informers) {
  client::Informer& graphs = informers.Get(kInferenceGraphs, json::Fields::Whole());
  IndexByHost(graphs);
  IndexByHost(informers.Get(kInferenceServices, json::Fields::Whole()));
  informers.Get(resources::kServices, {{"spec", "clusterIP"}});
  informers.Get(resources::kEndpointSlices, {{"endpoints"}, {"ports"}});
  std::vector<client::Trigger> triggers = {client::OnSelf(kInferenceGraphs),
                                           OnSharedHost(kInferenceServices, graphs),
                                           OnSharedHost(kInferenceGraphs, graphs)};
  for (const client::Resource& child : {resources::kServices, resources::kEndpointSlices}) {
    triggers.push_back(client::OnControlledBy(child, "InferenceGraph", "serving.kserve.io"));
    // One that is somebody else's comes or goes.
    triggers.push_back(
        {child, [this](const ObjectKey& key, const Value& before, const Value& after) {
           std::vector<ObjectKey> owners;
           if (!before.IsNull() && !after.IsNull()) return owners;
           for (const ObjectKey& one : OwnersByName(key))
             if (known_.contains(one)) owners.push_back(one);
           return owners;
         }});
  }
  triggers.push_back({kInferenceServices, [this](const ObjectKey& key, const Value&, const Value&) {
                        std::vector<ObjectKey> keys;
                        for (const ObjectKey& graph : known_) {
                          if (graph.ns == key.ns || by_url_.contains(graph)) keys.push_back(graph);
                        }
                        return keys;
                      }});
  return triggers;
}

client::Reconciled GraphController::Reconcile(const client::View& view, const client::Observations&,
                                              const ObjectKey& key, Time now, uint64_t) {
  const Value* graph = view.Of(kInferenceGraphs).Find(key);
  if (graph == nullptr || (*graph)["metadata"].Has("deletionTimestamp")) {
    known_.erase(key);
    by_url_.erase(key);
    return {};
  }
  known_.insert(key);
  GraphChildren children;
  if (const Value* service = view.Of(resources::kServices).Find(key)) children.service = *service;
  const ObjectKey slice{key.ns, GatewaySliceName(key.name)};
  if (const Value* found = view.Of(resources::kEndpointSlices).Find(slice))
    children.gateway_slice = *found;
  const client::Informer& services = view.Of(kInferenceServices);
  children.named_as_a_service = HasNameInstead(services.Find(key), *graph);
  for (const std::string& name : ServicesOf(*graph)) {
    const Value* service = services.Find({key.ns, name});
    if (service == nullptr) {
      children.missing.push_back(name);
    } else if (!schema::ConditionHolds((*service)["status"]["conditions"], "Ready")) {
      children.not_ready.push_back(name);
    }
  }
  const std::set<std::string> urls = UrlsOf(*graph);
  if (urls.empty()) {
    by_url_.erase(key);
  } else {
    by_url_.insert(key);
  }
  for (const std::string& url : urls) {
    if (children.url_fault.empty())
      children.url_fault = UrlFault(url, key.ns, services, view.Of(resources::kServices));
  }
  children.host_owner = HostOwner(services, view.Of(kInferenceGraphs), *graph);
  return ReconcileGraph(*graph, children, gateway_, now);
}

}  // namespace muster::serving
