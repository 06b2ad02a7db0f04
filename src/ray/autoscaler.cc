#include "ray/autoscaler.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "controllers/pods/ownership.h"

namespace muster::ray {
namespace {

constexpr std::string_view kLogsPath = "/tmp/ray";

json::Value FromField(std::string_view name, std::string_view path) {
  return json::Obj(
      {{"name", name}, {"valueFrom", json::Obj({{"fieldRef", json::Obj({{"fieldPath", path}})}})}});
}

json::Value ContainerOf(const Cluster& cluster, const json::Value& head) {
  const json::Value& options = cluster.object["spec"]["autoscalerOptions"];
  json::Array env = {FromField("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
                     FromField("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
                     FromField("RAY_HEAD_POD_NAME", "metadata.name"),
                     json::Obj({{"name", "KUBERAY_CRD_VER"}, {"value", "v1"}})};
  if (IsAutoscalerV2(cluster))
    env.push_back(json::Obj({{"name", "RAY_enable_autoscaler_v2"}, {"value", "1"}}));
  for (const json::Value& entry : options["env"].items()) env.push_back(entry);
  const json::Value amounts = json::Obj({{"cpu", "500m"}, {"memory", "512Mi"}});
  json::Value container = json::Obj(
      {{"name", "autoscaler"},
       {"image", options["image"].Str(head["image"].AsString())},
       {"command", json::Strings({"/bin/bash", "-c", "--"})},
       {"args", json::Strings({"ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) "
                               "--cluster-namespace $(RAY_CLUSTER_NAMESPACE)"})},
       {"env", json::Value(std::move(env))},
       {"resources", json::Obj({{"requests", amounts}, {"limits", amounts}})}});
  if (head.Has("imagePullPolicy"))
    container = std::move(container).Set("imagePullPolicy", head["imagePullPolicy"]);
  for (const char* member :
       {"resources", "imagePullPolicy", "securityContext", "envFrom", "volumeMounts"}) {
    if (!options[member].IsNull()) container = std::move(container).Set(member, options[member]);
  }
  return container;
}

// The name of the volume that the head has its logs in, which it gets if it has none.
std::string ShareLogs(json::Value& spec, json::Value& head) {
  for (const json::Value& mount : head["volumeMounts"].items()) {
    if (mount["mountPath"].AsString() == kLogsPath) return mount["name"].Str();
  }
  const std::string name = "ray-logs";
  const auto& volumes = spec["volumes"].items();
  const bool there =
      std::any_of(volumes.begin(), volumes.end(),
                  [&name](const json::Value& volume) { return volume["name"].AsString() == name; });
  if (!there) {
    spec = spec.Set("volumes",
                    spec["volumes"].Append(json::Obj({{"name", name}, {"emptyDir", json::Obj()}})));
  }
  head =
      head.Set("volumeMounts",
               head["volumeMounts"].Append(json::Obj({{"name", name}, {"mountPath", kLogsPath}})));
  return name;
}

}  // namespace

bool IsAutoscalerV2(const Cluster& cluster) {
  return cluster.autoscaling &&
         cluster.object["spec"]["autoscalerOptions"]["version"].AsString() == "v2";
}

json::Value WithAutoscaler(const Cluster& cluster, json::Value head_spec) {
  json::Value head = head_spec["containers"].At(0);
  const std::string logs = ShareLogs(head_spec, head);
  json::Value container = ContainerOf(cluster, head);
  const json::Value mount = json::Obj({{"name", logs}, {"mountPath", kLogsPath}});
  container = container.Set("volumeMounts", container["volumeMounts"].Append(mount));
  head_spec = head_spec.Set("containers",
                            head_spec["containers"].SetAt(0, head).Append(std::move(container)));
  return std::move(head_spec).Set("serviceAccountName", cluster.ServiceAccountName());
}

std::vector<AccountObject> AutoscalerAccount(const Cluster& cluster) {
  const json::Value labels = json::Obj({{std::string(kClusterLabel), cluster.name},
                                        {"app.kubernetes.io/name", "kuberay"},
                                        {"app.kubernetes.io/created-by", "kuberay-operator"}});
  const json::Value metadata =
      json::Obj({{"name", cluster.name},
                 {"namespace", cluster.ns},
                 {"labels", labels},
                 {"ownerReferences", controllers::ControlledByOnly(cluster.object)}});
  std::vector<AccountObject> objects;
  if (!cluster.head["template"]["spec"].Has("serviceAccountName")) {
    objects.push_back(
        {client::resources::kServiceAccounts,
         json::Obj({{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", metadata}})});
  }
  const auto rule = [](const char* group, const char* resource, std::vector<std::string> verbs) {
    return json::Obj({{"apiGroups", json::Strings({group})},
                      {"resources", json::Strings({resource})},
                      {"verbs", json::Strings(verbs)}});
  };
  objects.push_back(
      {resources::kRoles,
       json::Obj({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                  {"kind", "Role"},
                  {"metadata", metadata},
                  {"rules", json::List({rule("", "pods", {"get", "list", "watch", "patch"}),
                                        rule("", "pods/resize", {"patch"}),
                                        rule("ray.io", "rayclusters", {"get", "patch"})})}})});
  objects.push_back(
      {resources::kRoleBindings,
       json::Obj({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                  {"kind", "RoleBinding"},
                  {"metadata", metadata},
                  {"subjects", json::List({json::Obj({{"kind", "ServiceAccount"},
                                                      {"name", cluster.ServiceAccountName()},
                                                      {"namespace", cluster.ns}})})},
                  {"roleRef", json::Obj({{"apiGroup", "rbac.authorization.k8s.io"},
                                         {"kind", "Role"},
                                         {"name", cluster.name}})}})});
  return objects;
}

}  // namespace muster::ray
