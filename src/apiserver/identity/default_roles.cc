#include "apiserver/identity/default_roles.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/identity/policy_rule.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

constexpr const char* kRbac = "rbac.authorization.k8s.io";
constexpr const char* kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";
constexpr const char* kPaths = "paths";  // stands for a group: the resources are paths

constexpr const char* kRead = "get,list,watch";
constexpr const char* kWrite = "create,delete,deletecollection,patch,update";
constexpr const char* kReadAndWrite = "create,delete,deletecollection,get,list,patch,update,watch";

// All lists are separated by commas; "core" is the group without a name.
struct Row {
  const char *role, *verbs, *groups, *resources;
};

// The kinds of machine learning that users of a namespace make.
constexpr const char* kMlGroups =
    "jobset.x-k8s.io,kubeflow.org,kueue.x-k8s.io,ml.example.com,ray.io,registry.muster.dev,"
    "serving.kserve.io,scheduling.volcano.sh,scheduling.x-k8s.io";

constexpr Row kRules[] = {
    {"cluster-admin", "*", "*", "*"},
    {"cluster-admin", "*", kPaths, "*"},
    {"system:discovery", "get", kPaths,
     "/api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/"},
    {"system:basic-user", "create", "authorization.k8s.io",
     "selfsubjectaccessreviews,selfsubjectrulesreviews"},
    {"system:basic-user", "create", "authentication.k8s.io", "selfsubjectreviews"},
    {"system:public-info-viewer", "get", kPaths, "/healthz,/livez,/readyz,/version,/version/"},
    {"muster:dashboard-files", "get,head", kPaths, "/dashboard,/dashboard/*"},
    {"system:monitoring", "get", kPaths,
     "/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*"},
    {"system:service-account-issuer-discovery", "get", kPaths,
     "/.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,"
     "/openid/v1/jwks/"},
    {"system:auth-delegator", "create", "authentication.k8s.io", "tokenreviews"},
    {"system:auth-delegator", "create", "authorization.k8s.io", "subjectaccessreviews"},
    {"system:kubelet-api-admin", kRead, "core", "nodes"},
    {"system:kubelet-api-admin", "proxy", "core", "nodes"},
    {"system:kubelet-api-admin", "*", "core",
     "nodes/log,nodes/metrics,nodes/proxy,nodes/spec,nodes/stats"},

    {"system:aggregate-to-view", kRead, "core",
     "configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,"
     "replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/"
     "status"},
    {"system:aggregate-to-view", kRead, "core",
     "bindings,events,limitranges,namespaces/status,pods/log,pods/status,"
     "replicationcontrollers/status,resourcequotas,resourcequotas/status"},
    {"system:aggregate-to-view", kRead, "core", "namespaces"},
    {"system:aggregate-to-view", kRead, "discovery.k8s.io", "endpointslices"},
    {"system:aggregate-to-view", kRead, "apps",
     "controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,"
     "deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,"
     "statefulsets/scale,statefulsets/status"},
    {"system:aggregate-to-view", kRead, "autoscaling",
     "horizontalpodautoscalers,horizontalpodautoscalers/status"},
    {"system:aggregate-to-view", kRead, "batch", "cronjobs,cronjobs/status,jobs,jobs/status"},
    {"system:aggregate-to-view", kRead, "policy",
     "poddisruptionbudgets,poddisruptionbudgets/status"},
    {"system:aggregate-to-view", kRead, "networking.k8s.io",
     "ingresses,ingresses/status,networkpolicies"},

    {"system:aggregate-to-edit", kRead, "core",
     "pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy"},
    {"system:aggregate-to-edit", "impersonate", "core", "serviceaccounts"},
    {"system:aggregate-to-edit", kWrite, "core",
     "pods,pods/attach,pods/exec,pods/portforward,pods/proxy"},
    {"system:aggregate-to-edit", "create", "core", "pods/eviction"},
    {"system:aggregate-to-edit", kWrite, "core",
     "configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,"
     "secrets,serviceaccounts,services,services/proxy"},
    {"system:aggregate-to-edit", "create", "core", "serviceaccounts/token"},
    {"system:aggregate-to-edit", kWrite, "apps",
     "daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,"
     "statefulsets,statefulsets/scale"},
    {"system:aggregate-to-edit", kWrite, "autoscaling", "horizontalpodautoscalers"},
    {"system:aggregate-to-edit", kWrite, "batch", "cronjobs,jobs"},
    {"system:aggregate-to-edit", kWrite, "policy", "poddisruptionbudgets"},
    {"system:aggregate-to-edit", kWrite, "networking.k8s.io", "ingresses,networkpolicies"},
    {"system:aggregate-to-edit", kReadAndWrite, "coordination.k8s.io", "leases"},

    {"system:aggregate-to-admin", "create", "authorization.k8s.io", "localsubjectaccessreviews"},
    {"system:aggregate-to-admin", kReadAndWrite, kRbac, "rolebindings,roles"},

    {"system:aggregated-metrics-reader", kRead, "metrics.k8s.io", "nodes,pods"},
    {"muster:view-ml", kRead, kMlGroups, "*"},
    {"muster:edit-ml", kWrite, kMlGroups, "*"},

    // What a node needs. Upstream limits each node to its own pods beside this.
    {"system:node", "create", "authentication.k8s.io", "tokenreviews"},
    {"system:node", "create", "authorization.k8s.io",
     "localsubjectaccessreviews,subjectaccessreviews"},
    {"system:node", kRead, "core", "services"},
    {"system:node", "create,get,list,watch", "core", "nodes"},
    {"system:node", "patch,update", "core", "nodes/status"},
    {"system:node", "create,patch,update", "core", "events"},
    {"system:node", "create,delete,get,list,watch", "core", "pods"},
    {"system:node", "patch,update", "core", "pods/status"},
    {"system:node", "create", "core", "pods/eviction,serviceaccounts/token"},
    {"system:node", kRead, "core", "configmaps,secrets"},
    {"system:node", "get", "core", "persistentvolumeclaims,persistentvolumes"},
    {"system:node", "create,delete,get,patch,update", "coordination.k8s.io", "leases"},

    {"system:node-proxier", "list,watch", "core", "endpoints,services"},
    {"system:node-proxier", kRead, "core", "nodes"},
    {"system:node-proxier", "create,patch,update", "core,events.k8s.io", "events"},
    {"system:node-proxier", "list,watch", "discovery.k8s.io", "endpointslices"},

    {"system:kube-scheduler", "create,patch,update", "core,events.k8s.io", "events"},
    {"system:kube-scheduler", "create,get,update", "coordination.k8s.io", "leases"},
    {"system:kube-scheduler", kRead, "core", "namespaces,nodes"},
    {"system:kube-scheduler", "delete,get,list,watch", "core", "pods"},
    {"system:kube-scheduler", "create", "core", "bindings,pods/binding"},
    {"system:kube-scheduler", "patch,update", "core", "pods/status"},
    {"system:kube-scheduler", kRead, "core", "replicationcontrollers,services"},
    {"system:kube-scheduler", kRead, "apps", "replicasets,statefulsets"},
    {"system:kube-scheduler", kRead, "policy", "poddisruptionbudgets"},
    {"system:kube-scheduler", kRead, "scheduling.k8s.io", "priorityclasses"},
    {"system:kube-scheduler", kRead, "storage.k8s.io",
     "csidrivers,csinodes,csistoragecapacities,storageclasses"},
    {"system:kube-scheduler", "get,list,patch,update,watch", "core",
     "persistentvolumeclaims,persistentvolumes"},

    {"system:persistent-volume-provisioner", "create,delete,get,list,watch", "core",
     "persistentvolumes"},
    {"system:persistent-volume-provisioner", "get,list,update,watch", "core",
     "persistentvolumeclaims"},
    {"system:persistent-volume-provisioner", kRead, "storage.k8s.io", "storageclasses"},
    {"system:persistent-volume-provisioner", "create,get,list,patch,update,watch", "core",
     "events"},
};

// Roles that are gathered from those with the label of their name; upstream chains them, so that
// admin has what edit has, and edit what view has.
struct Aggregate {
  const char *role, *includes_into;
};
constexpr Aggregate kAggregates[] = {{"admin", ""}, {"edit", "admin"}, {"view", "edit"}};

struct Labelled {
  const char *role, *into;
};
constexpr Labelled kLabelled[] = {{"system:aggregate-to-admin", "admin"},
                                  {"system:aggregate-to-edit", "edit"},
                                  {"system:aggregate-to-view", "view"},
                                  {"system:aggregated-metrics-reader", "admin"},
                                  {"system:aggregated-metrics-reader", "edit"},
                                  {"system:aggregated-metrics-reader", "view"},
                                  {"muster:edit-ml", "edit"},
                                  {"muster:view-ml", "view"}};

struct BindingRow {
  const char *role, *kind, *subjects;  // the binding is called like its role
};
constexpr BindingRow kBindings[] = {
    {"cluster-admin", "Group", "system:masters"},
    {"system:discovery", "Group", "system:authenticated"},
    {"system:basic-user", "Group", "system:authenticated"},
    {"system:public-info-viewer", "Group", "system:authenticated,system:unauthenticated"},
    {"muster:dashboard-files", "Group", "system:authenticated,system:unauthenticated"},
    {"system:monitoring", "Group", "system:monitoring"},
    {"system:service-account-issuer-discovery", "Group", "system:serviceaccounts"},
    {"system:node-proxier", "User", "system:kube-proxy"},
    {"system:kube-scheduler", "User", "system:kube-scheduler"},
};

json::Value Words(std::string_view list) {
  json::Array words;
  for (const std::string_view word : Split(list, ','))
    words.emplace_back(word == "core" ? "" : word);
  return json::Value(std::move(words));
}

std::string AggregationLabel(std::string_view role) {
  return fmt::format("rbac.authorization.k8s.io/aggregate-to-{}", role);
}

json::Value Object(const char* kind, std::string_view name, json::Object labels = {}) {
  labels.emplace_back("kubernetes.io/bootstrapping", "rbac-defaults");
  return json::Obj(
      {{"apiVersion", "rbac.authorization.k8s.io/v1"},
       {"kind", kind},
       {"metadata", json::Obj({{"name", name},
                               {"labels", json::Value(std::move(labels))},
                               {"annotations", json::Obj({{kAutoUpdate, "true"}})}})}});
}

json::Value Rule(const Row& row) {
  if (row.groups == kPaths)
    return json::Obj({{"verbs", Words(row.verbs)}, {"nonResourceURLs", Words(row.resources)}});
  return json::Obj({{"apiGroups", Words(row.groups)},
                    {"resources", Words(row.resources)},
                    {"verbs", Words(row.verbs)}});
}

json::Object LabelsOf(std::string_view role) {
  json::Object labels;
  for (const Labelled& one : kLabelled)
    if (role == one.role) labels.emplace_back(AggregationLabel(one.into), "true");
  return labels;
}

json::Value AggregateRole(const Aggregate& one) {
  json::Object labels;
  if (*one.includes_into != '\0') labels.emplace_back(AggregationLabel(one.includes_into), "true");
  const json::Value selector =
      json::Obj({{"matchLabels", json::Obj({{AggregationLabel(one.role), "true"}})}});
  return Object("ClusterRole", one.role, std::move(labels))
      .Set("aggregationRule", json::Obj({{"clusterRoleSelectors", json::List({selector})}}));
}

json::Value Binding(const BindingRow& row) {
  json::Array subjects;
  for (const std::string_view name : Split(row.subjects, ',')) {
    subjects.push_back(json::Obj({{"apiGroup", kRbac}, {"kind", row.kind}, {"name", name}}));
  }
  return Object("ClusterRoleBinding", row.role)
      .Set("roleRef", json::Obj({{"apiGroup", kRbac}, {"kind", "ClusterRole"}, {"name", row.role}}))
      .Set("subjects", json::Value(std::move(subjects)));
}

json::Value RuleToJson(const PolicyRule& rule) {
  if (!rule.urls.empty()) {
    return json::Obj(
        {{"verbs", json::Strings(rule.verbs)}, {"nonResourceURLs", json::Strings(rule.urls)}});
  }
  json::Value out = json::Obj({{"apiGroups", json::Strings(rule.groups)},
                               {"resources", json::Strings(rule.resources)},
                               {"verbs", json::Strings(rule.verbs)}});
  return rule.names.empty() ? out : out.Set("resourceNames", json::Strings(rule.names));
}

// What a server behind an APIService is bound to, so that it can read whom to believe.
json::Value ExtensionReader() {
  const json::Value rule =
      json::Obj({{"apiGroups", Words("core")},
                 {"resources", Words("configmaps")},
                 {"resourceNames", Words("extension-apiserver-authentication")},
                 {"verbs", Words(kRead)}});
  return Object("Role", "extension-apiserver-authentication-reader")
      .SetPath({"metadata", "namespace"}, "kube-system")
      .Set("rules", json::List({rule}));
}

}  // namespace

std::vector<json::Value> DefaultRbac() {
  std::vector<json::Value> objects;
  std::map<std::string_view, size_t> places;
  for (const Row& row : kRules) {
    const auto [place, added] = places.try_emplace(row.role, objects.size());
    if (added) objects.push_back(Object("ClusterRole", row.role, LabelsOf(row.role)));
    json::Value& role = objects[place->second];
    role = role.Set("rules", role["rules"].Append(Rule(row)));
  }
  objects.push_back(ExtensionReader());
  for (const Aggregate& one : kAggregates) objects.push_back(AggregateRole(one));
  for (const BindingRow& row : kBindings) objects.push_back(Binding(row));
  return objects;
}

json::Value ReconcileRbac(const json::Value& there, const json::Value& wanted) {
  if (there["metadata"]["annotations"][kAutoUpdate].AsString() == "false") return there;
  json::Value after = there;
  for (const char* map : {"labels", "annotations"}) {
    for (const auto& [key, value] : wanted["metadata"][map].members()) {
      if (!there["metadata"][map].Has(key)) after = after.SetPath({"metadata", map, key}, value);
    }
  }
  for (const PolicyRule& rule : Missing(ReadRules(there["rules"]), ReadRules(wanted["rules"])))
    after = after.Set("rules", after["rules"].Append(RuleToJson(rule)));
  if (wanted.Has("aggregationRule") && !there["aggregationRule"].IsObject())
    after = after.Set("aggregationRule", wanted["aggregationRule"]);
  for (const json::Value& subject : wanted["subjects"].items()) {
    const json::Array& present = there["subjects"].items();
    if (std::ranges::find(present, subject) == present.end())
      after = after.Set("subjects", after["subjects"].Append(subject));
  }
  return after;
}

}  // namespace muster::apiserver
