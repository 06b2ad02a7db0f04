#include "ray/cluster_controller.h"

#include "ray/cluster.h"
#include "ray/cluster_pass.h"

namespace muster::ray {
namespace {

namespace core = client::resources;

constexpr char kKind[] = "RayCluster";

const json::Value& Find(const client::View& view, const client::Resource& resource,
                        const Cluster& cluster, std::string name) {
  static const json::Value kNone;
  const json::Value* object = view.Of(resource).Find({cluster.ns, std::move(name)});
  return object == nullptr ? kNone : *object;
}

}  // namespace

std::vector<client::Trigger> ClusterController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kRayClusters, json::Fields::Whole());
  client::IndexByController(informers.Get(core::kPods, ClusterPodFields()));
  informers.Get(core::kServices, {{"spec"}});
  informers.Get(core::kPodGroups, {{"spec"}});
  std::vector<client::Trigger> triggers = {client::OnSelf(resources::kRayClusters)};
  for (const client::Resource& child :
       {core::kPods, core::kServices, core::kPodGroups, core::kServiceAccounts, resources::kRoles,
        resources::kRoleBindings}) {
    informers.Get(child);
    triggers.push_back(client::OnControlledBy(child, kKind, std::string(kGroup)));
  }
  return triggers;
}

client::Reconciled ClusterController::Reconcile(const client::View& view,
                                                const client::Observations& observations,
                                                const client::ObjectKey& key, Time now,
                                                uint64_t seed) {
  const json::Value* object = view.Of(resources::kRayClusters).Find(key);
  if (object == nullptr || (*object)["metadata"].Has("deletionTimestamp") ||
      IsManagedElsewhere(*object))
    return {};
  const Cluster cluster = ParseCluster(*object);
  ClusterChildren children;
  const client::Informer& pods = view.Of(core::kPods);
  for (const client::ObjectKey& child : client::ControlledBy(pods, cluster.uid)) {
    if (child.ns == cluster.ns) children.pods.push_back(*pods.Find(child));
  }
  children.head_service = Find(view, core::kServices, cluster, cluster.HeadServiceName());
  children.pod_group = Find(view, core::kPodGroups, cluster, cluster.PodGroupName());
  for (const client::Resource& resource :
       {core::kServiceAccounts, resources::kRoles, resources::kRoleBindings}) {
    const json::Value& present = Find(view, resource, cluster, cluster.name);
    if (!present.IsNull()) children.account.emplace(resource.plural, present);
  }
  const auto refused = observations.find(client::kRefusedWrite);
  if (refused != observations.end()) children.refused = refused->second;
  return ReconcileCluster(cluster, children, now, seed);
}

}  // namespace muster::ray
