// src/apiserver/authorization.h
//
// Authorizer: may this user do this? One question per request; RBAC becomes another implementation.
//
// Thread: the loop thread.

#pragma once

#include "apiserver/authentication.h"
#include "apiserver/request_info.h"
#include "base/status.h"

namespace muster::apiserver {

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  // Ok, or Forbidden with the reason in upstream's words.
  virtual Status Authorize(const User& user, const RequestInfo& info) const = 0;
};

// system:masters may do everything; everybody may read health and version; nobody else may do
// anything.
class PrivilegedGroupAuthorizer : public Authorizer {
 public:
  Status Authorize(const User& user, const RequestInfo& info) const override;
};

// The refusal, as upstream words it.
Status AuthorizationError(const User& user, const RequestInfo& info);

}  // namespace muster::apiserver
