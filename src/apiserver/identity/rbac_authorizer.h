// src/apiserver/identity/rbac_authorizer.h
//
// RbacAuthorizer: members of system:masters may do everything, everybody may read health and
// version, and otherwise roles and bindings say who may do what.
//
// Life cycle: a member of the server.
// Thread:     the loop thread.

#pragma once

#include "apiserver/authorization.h"
#include "apiserver/identity/rbac_index.h"

namespace muster::apiserver {

class RbacAuthorizer : public Authorizer {
 public:
  // REQUIRES: `index` outlives it.
  explicit RbacAuthorizer(const RbacIndex& index) : index_(index) {}

  Decision Decide(const User& user, const RequestInfo& info) const override;

  const RbacIndex& index() const { return index_; }

 private:
  const RbacIndex& index_;
};

}  // namespace muster::apiserver
