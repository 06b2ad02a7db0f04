// src/apiserver/identity/rbac_strategy.h
//
// RbacStrategy: nobody grants what he does not hold himself. Whoever writes a role must hold its
// rules, or the verb "escalate" on it; whoever writes a binding must hold the rules of its role, or
// the verb "bind" on that.
//
// Life cycle: made with the ResourceRegistry.
// Thread:     the loop thread.

#pragma once

#include "apiserver/identity/rbac_authorizer.h"
#include "apiserver/strategy.h"

namespace muster::apiserver {

class RbacStrategy : public Strategy {
 public:
  // REQUIRES: `authorizer` outlives it.
  explicit RbacStrategy(const RbacAuthorizer& authorizer) : authorizer_(authorizer) {}

  Status PrepareCreate(WriteContext& context, json::Value& object) override;
  Status PrepareUpdate(WriteContext& context, const json::Value& before,
                       json::Value& after) override;

 private:
  Status CheckGrant(const WriteContext& context, const json::Value& object) const;
  Status CheckRole(const WriteContext& context, const json::Value& role) const;
  Status CheckBinding(const WriteContext& context, const json::Value& binding) const;
  // Ok if the writer holds the rules.
  Status CheckHeld(const WriteContext& context, const std::vector<PolicyRule>& rules) const;
  bool Allowed(const WriteContext& context, std::string_view verb, std::string_view resource,
               const std::string& name) const;

  const RbacAuthorizer& authorizer_;
};

}  // namespace muster::apiserver
