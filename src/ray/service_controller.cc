#include "ray/service_controller.h"

#include "ray/cluster.h"
#include "ray/cluster_pass.h"
#include "ray/service_pass.h"

namespace muster::ray {

namespace core = client::resources;

std::vector<client::Trigger> ServiceController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kRayServices, json::Fields::Whole());
  client::IndexByController(informers.Get(resources::kRayClusters, json::Fields::Whole()));
  client::IndexByController(informers.Get(core::kPods, ClusterPodFields()));
  informers.Get(core::kServices, json::Fields::Whole());
  return {client::OnSelf(resources::kRayServices),
          client::OnControlledBy(resources::kRayClusters, "RayService", std::string(kGroup)),
          client::OnControlledBy(core::kServices, "RayService", std::string(kGroup))};
}

client::Reconciled ServiceController::Reconcile(const client::View& view,
                                                const client::Observations& observations,
                                                const client::ObjectKey& key, Time now,
                                                uint64_t seed) {
  const json::Value* service = view.Of(resources::kRayServices).Find(key);
  if (service == nullptr || (*service)["metadata"].Has("deletionTimestamp") ||
      IsManagedElsewhere(*service))
    return {};
  ServiceChildren children;
  const client::Informer& clusters = view.Of(resources::kRayClusters);
  const client::Informer& pods = view.Of(core::kPods);
  for (const client::ObjectKey& child :
       client::ControlledBy(clusters, (*service)["metadata"]["uid"].AsString())) {
    if (child.ns != key.ns) continue;
    children.clusters.push_back(*clusters.Find(child));
    const std::string uid = children.clusters.back()["metadata"]["uid"].Str();
    for (const client::ObjectKey& pod : client::ControlledBy(pods, uid))
      children.pods.push_back(*pods.Find(pod));
  }
  const client::Informer& services = view.Of(core::kServices);
  if (const json::Value* head = services.Find({key.ns, HeadServiceOf(*service)}))
    children.head_service = *head;
  if (const json::Value* serve = services.Find({key.ns, ServeServiceOf(*service)}))
    children.serve_service = *serve;
  return ReconcileService(*service, children, observations, now, seed);
}

}  // namespace muster::ray
