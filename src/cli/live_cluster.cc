#include "cli/live_cluster.h"

#include <utility>
#include <vector>

#include "client/storage_resources.h"

namespace muster::cli {

Result<scheduler::ClusterLists> ReadCluster(Session& session) {
  std::vector<std::string> paths;
  for (const client::Resource& resource :
       {client::resources::kNodes, client::resources::kPods, client::resources::kNamespaces,
        client::resources::kPriorityClasses, client::resources::kPodDisruptionBudgets})
    paths.push_back(client::ApiClient::PathOf({resource, "", "", ""}));
  for (const client::Resource& resource : scheduler::kGroupResources)
    paths.push_back(client::ApiClient::PathOf({resource, "", "", ""}));
  for (const client::Resource& resource :
       {client::resources::kPersistentVolumeClaims, client::resources::kPersistentVolumes,
        client::resources::kStorageClasses})
    paths.push_back(client::ApiClient::PathOf({resource, "", "", ""}));
  std::vector<Result<json::Value>> answers = session.GetJsons(paths);
  for (size_t i = 0; i < 2; ++i) {
    if (!answers[i]) return Error(answers[i].error());
  }
  const auto take = [&](size_t i) { return answers[i] ? std::move(*answers[i]) : json::Value(); };
  scheduler::ClusterLists lists;
  lists.nodes = take(0);
  lists.pods = take(1);
  lists.namespaces = take(2);
  lists.priority_classes = take(3);
  lists.disruption_budgets = take(4);
  size_t next = 5;
  for (json::Value& groups : lists.pod_groups) groups = take(next++);
  lists.claims = take(next++);
  lists.volumes = take(next++);
  lists.storage_classes = take(next++);
  return lists;
}

}  // namespace muster::cli
