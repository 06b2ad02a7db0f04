#include "apiserver/identity/rbac_strategy.h"

#include <set>

#include "apiserver/errors.h"
#include "base/strings.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

const schema::Kind& KindOf(std::string_view plural) {
  return *schema::Registry::BuiltIn().Find(kGroup, "v1", plural);
}

bool IsRole(const schema::Kind& kind) { return kind.kind.ends_with("Role"); }

// Whoever may gather any rule holds them all.
std::vector<PolicyRule> Everything() {
  return {{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}};
}

std::string Quoted(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += fmt::format("{}\"{}\"", out.empty() ? "" : " ", word);
  return out;
}

}  // namespace

Status RbacStrategy::PrepareCreate(WriteContext& context, json::Value& object) {
  return CheckGrant(context, object);
}

Status RbacStrategy::PrepareUpdate(WriteContext& context, const json::Value& before,
                                   json::Value& after) {
  // Whoever changes only the metadata grants nothing.
  if (before.Remove("metadata") == after.Remove("metadata")) return Status::Ok();
  return CheckGrant(context, after);
}

Status RbacStrategy::CheckGrant(const WriteContext& context, const json::Value& object) const {
  const User* user = context.user;
  if (user == nullptr || user->InGroup(kMastersGroup)) return Status::Ok();
  return IsRole(context.kind) ? CheckRole(context, object) : CheckBinding(context, object);
}

Status RbacStrategy::CheckRole(const WriteContext& context, const json::Value& role) const {
  if (Allowed(context, "escalate", context.kind.plural, context.name)) return Status::Ok();
  RETURN_IF_ERROR(CheckHeld(context, ReadRules(role["rules"])));
  if (!role["aggregationRule"].IsObject() || CheckHeld(context, Everything()).ok())
    return Status::Ok();
  return ForbiddenError(context.kind, context.name,
                        "must have cluster-admin privileges to use an aggregationRule");
}

Status RbacStrategy::CheckBinding(const WriteContext& context, const json::Value& binding) const {
  const bool of_cluster_role = binding["roleRef"]["kind"].AsString() == "ClusterRole";
  const std::string name = binding["roleRef"]["name"].Str();
  const std::string_view plural = of_cluster_role ? "clusterroles" : "roles";
  if (Allowed(context, "bind", plural, name)) return Status::Ok();
  const std::vector<PolicyRule>* rules =
      authorizer_.index().Role(of_cluster_role ? "" : context.ns, name);
  if (rules == nullptr) return NotFoundError(KindOf(plural), name);
  return CheckHeld(context, *rules);
}

Status RbacStrategy::CheckHeld(const WriteContext& context,
                               const std::vector<PolicyRule>& rules) const {
  const User& user = *context.user;
  const std::vector<PolicyRule> missing =
      Missing(authorizer_.index().RulesOf(user, context.ns), rules);
  if (missing.empty()) return Status::Ok();
  std::set<std::string> texts;
  for (const PolicyRule& rule : missing) texts.insert(Describe(rule));
  return ForbiddenError(
      context.kind, context.name,
      fmt::format("user \"{}\" (groups=[{}]) is attempting to grant RBAC permissions not currently "
                  "held:\n{}",
                  user.name, Quoted(user.groups), Join({texts.begin(), texts.end()}, "\n")));
}

bool RbacStrategy::Allowed(const WriteContext& context, std::string_view verb,
                           std::string_view resource, const std::string& name) const {
  RequestInfo info;
  info.is_resource = true;
  info.verb = verb;
  info.group = kGroup;
  info.version = "v1";
  info.resource = resource;
  info.ns = context.ns;
  info.name = name;
  return authorizer_.Decide(*context.user, info).allowed;
}

}  // namespace muster::apiserver
