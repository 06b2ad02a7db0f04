#include "cli/dashboard_identity.h"

#include <utility>
#include <vector>

#include "client/api_client.h"
#include "json/value.h"

namespace muster::cli {
namespace {

constexpr const char* kNamespace = "kube-system";
constexpr const char* kName = "muster-dashboard";
constexpr const char* kRbac = "rbac.authorization.k8s.io";

const client::Resource kRoles{kRbac, "v1", "clusterroles"};
const client::Resource kBindings{kRbac, "v1", "clusterrolebindings"};

json::Value Rule(std::string_view group, const std::vector<std::string>& resources) {
  return json::Obj({{"apiGroups", json::List({group})},
                    {"resources", json::Strings(resources)},
                    {"verbs", json::List({"get", "list", "watch"})}});
}

// Beside `view`: what belongs to no namespace, jobs on clusters whose `view` does not have them,
// and the figures of GPUs.
json::Value Role() {
  return json::Obj(
      {{"apiVersion", fmt::format("{}/v1", kRbac)},
       {"kind", "ClusterRole"},
       {"metadata", json::Obj({{"name", kName}})},
       {"rules", json::List({Rule("", {"nodes"}), Rule("metrics.k8s.io", {"nodes", "pods"}),
                             Rule("kubeflow.org", {"*"}), Rule("trainer.kubeflow.org", {"*"}),
                             Rule("jobset.x-k8s.io", {"*"}), Rule("ray.io", {"*"}),
                             Rule("serving.kserve.io", {"*"}), Rule("ml.example.com", {"*"}),
                             Rule("kueue.x-k8s.io", {"*"}), Rule("cost.muster.dev", {"*"}),
                             json::Obj({{"nonResourceURLs", json::List({"/metrics"})},
                                        {"verbs", json::List({"get"})}})})}});
}

json::Value Binding(const std::string& name, const char* role) {
  return json::Obj(
      {{"apiVersion", fmt::format("{}/v1", kRbac)},
       {"kind", "ClusterRoleBinding"},
       {"metadata", json::Obj({{"name", name}})},
       {"roleRef", json::Obj({{"apiGroup", kRbac}, {"kind", "ClusterRole"}, {"name", role}})},
       {"subjects",
        json::List({json::Obj(
            {{"kind", "ServiceAccount"}, {"name", kName}, {"namespace", kNamespace}})})}});
}

json::Value Account() {
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "ServiceAccount"},
                    {"metadata", json::Obj({{"name", kName}, {"namespace", kNamespace}})}});
}

Status Ensure(Session& session, const client::Target& target, const json::Value& object) {
  const Result<json::Value> there = session.Get(target);
  if (there) return Status::Ok();
  if (there.error().reason() != Reason::kNotFound) return there.error();
  client::Target collection = target;
  collection.name.clear();
  const Result<json::Value> made = session.Create(collection, object);
  if (made || made.error().reason() == Reason::kAlreadyExists) return Status::Ok();
  return made.error();
}

}  // namespace

Status EnsureDashboardAccount(Session& session) {
  const std::string view = fmt::format("{}-view", kName);
  RETURN_IF_ERROR(
      Ensure(session, {client::resources::kServiceAccounts, kNamespace, kName, ""}, Account()));
  RETURN_IF_ERROR(Ensure(session, {kRoles, "", kName, ""}, Role()));
  RETURN_IF_ERROR(Ensure(session, {kBindings, "", kName, ""}, Binding(kName, kName)));
  return Ensure(session, {kBindings, "", view, ""}, Binding(view, "view"));
}

Result<DashboardToken> RequestDashboardToken(Session& session, std::string_view account,
                                             Duration life) {
  const size_t slash = account.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == account.size()) {
    return Error(Reason::kInvalid, "service account {:?}: expected NAMESPACE/NAME", account);
  }
  const client::Target target{client::resources::kServiceAccounts,
                              std::string(account.substr(0, slash)),
                              std::string(account.substr(slash + 1)), "token"};
  const auto life_seconds = std::chrono::duration_cast<seconds>(life).count();
  ASSIGN_OR_RETURN(
      const json::Value answer,
      session.Create(target,
                     json::Obj({{"apiVersion", "authentication.k8s.io/v1"},
                                {"kind", "TokenRequest"},
                                {"spec", json::Obj({{"expirationSeconds", life_seconds}})}})));
  const json::Value& status = answer["status"];
  if (status["token"].AsString().empty())
    return Error(Reason::kInternalError, "the server answered the request for a token without one");
  return DashboardToken{status["token"].Str(), status["expirationTimestamp"].Str()};
}

}  // namespace muster::cli
