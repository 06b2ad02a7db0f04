#include "cli/live_cluster.h"

#include <utility>
#include <vector>

namespace muster::cli {

Result<scheduler::ClusterLists> ReadCluster(Session& session) {
  std::vector<std::string> paths;
  for (const client::Resource& resource :
       {client::resources::kNodes, client::resources::kPods, client::resources::kNamespaces,
        client::resources::kPriorityClasses})
    paths.push_back(client::ApiClient::PathOf({resource, "", "", ""}));
  for (const client::Resource& resource : scheduler::kGroupResources)
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
  for (size_t api = 0; api < lists.pod_groups.size(); ++api) lists.pod_groups[api] = take(4 + api);
  return lists;
}

}  // namespace muster::cli
