#include "scheduler/permissions.h"

#include <initializer_list>
#include <utility>

namespace muster::scheduler {
namespace {

using Words = std::initializer_list<const char*>;

json::Value ListOf(Words words) {
  json::Value list = json::List();
  for (const char* word : words) list = std::move(list).Append(word);
  return list;
}

json::Value Rule(const char* group, Words resources, Words verbs) {
  return json::Obj(
      {{"apiGroups", ListOf({group})}, {"resources", ListOf(resources)}, {"verbs", ListOf(verbs)}});
}

json::Value Object(const char* version, const char* kind, const std::string& ns) {
  json::Value metadata = json::Obj({{"name", kSchedulerName}});
  if (!ns.empty()) metadata = metadata.Set("namespace", ns);
  return json::Obj({{"apiVersion", version}, {"kind", kind}, {"metadata", std::move(metadata)}});
}

json::Value Binding(const char* kind, const char* role, const std::string& ns,
                    const std::string& account_ns) {
  constexpr const char* kGroup = "rbac.authorization.k8s.io";
  return Object("rbac.authorization.k8s.io/v1", kind, ns)
      .Set("roleRef", json::Obj({{"apiGroup", kGroup}, {"kind", role}, {"name", kSchedulerName}}))
      .Set(
          "subjects",
          json::List({json::Obj(
              {{"kind", "ServiceAccount"}, {"name", kSchedulerName}, {"namespace", account_ns}})}));
}

}  // namespace

json::Value SchedulerRules() {
  const Words read = {"get", "list", "watch"};
  return json::List({
      Rule("", {"namespaces", "nodes", "pods"}, read),
      Rule("scheduling.k8s.io", {"priorityclasses"}, read),
      Rule("scheduling.volcano.sh", {"podgroups"}, read),
      Rule("scheduling.x-k8s.io", {"podgroups"}, read),
      Rule("policy", {"poddisruptionbudgets"}, read),
      Rule("", {"persistentvolumeclaims", "persistentvolumes"}, {"get", "list", "watch", "patch"}),
      Rule("storage.k8s.io", {"storageclasses"}, read),
      Rule("", {"pods/binding"}, {"create"}),
      Rule("", {"pods"}, {"delete"}),
      Rule("", {"pods/status"}, {"patch"}),
      Rule("scheduling.volcano.sh", {"podgroups/status"}, {"patch"}),
      Rule("scheduling.x-k8s.io", {"podgroups/status"}, {"patch"}),
      Rule("", {"events"}, {"create", "patch"}),
  });
}

std::vector<json::Value> SchedulerRbac(const std::string& ns) {
  // A Lease can be created only by a rule that names none.
  json::Value renew = Rule("coordination.k8s.io", {"leases"}, {"get", "update"});
  renew = renew.Set("resourceNames", ListOf({kSchedulerName}));
  return {Object("v1", "ServiceAccount", ns),
          Object("rbac.authorization.k8s.io/v1", "ClusterRole", "").Set("rules", SchedulerRules()),
          Binding("ClusterRoleBinding", "ClusterRole", "", ns),
          Object("rbac.authorization.k8s.io/v1", "Role", ns)
              .Set("rules", json::List({Rule("coordination.k8s.io", {"leases"}, {"create"}),
                                        std::move(renew)})),
          Binding("RoleBinding", "Role", ns, ns)};
}

}  // namespace muster::scheduler
