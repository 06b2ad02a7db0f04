#include "apiserver/identity/rbac_authorizer.h"

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace muster::apiserver {

Decision RbacAuthorizer::Decide(const User& user, const RequestInfo& info) const {
  if (user.InGroup(kMastersGroup) || IsPublic(info)) return {true};
  Decision decision;
  std::set<std::string> missing;
  index_.ForEachGrant(
      user, info.is_resource ? info.ns : "",
      [&](const Grant& grant, const std::vector<PolicyRule>* rules) {
        if (rules == nullptr) {
          missing.insert(fmt::format("{}.rbac.authorization.k8s.io \"{}\" not found",
                                     grant.of_cluster_role ? "clusterrole" : "role", grant.role));
          return true;
        }
        decision.allowed =
            std::ranges::any_of(*rules, [&](const PolicyRule& rule) { return Allows(rule, info); });
        if (decision.allowed) decision.reason = "RBAC: allowed by " + grant.Describe();
        return !decision.allowed;
      });
  if (!decision.allowed && !missing.empty()) {
    const std::string all = Join({missing.begin(), missing.end()}, ", ");
    decision.reason = missing.size() == 1 ? "RBAC: " + all : "RBAC: [" + all + "]";
  }
  return decision;
}

}  // namespace muster::apiserver
