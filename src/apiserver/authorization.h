// src/apiserver/authorization.h
//
// Authorizer: may this user do this? One question per request, and of whoever asks beforehand
// (SubjectAccessReview). RBAC answers it (identity/rbac_authorizer.h).
//
// Thread: the loop thread.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/authentication.h"
#include "apiserver/request_info.h"
#include "base/status.h"

namespace muster::apiserver {

struct Decision {
  bool allowed = false;
  std::string reason = {};  // in upstream's words; often ""
};

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  virtual Decision Decide(const User& user, const RequestInfo& info) const = 0;

  // Ok, or Forbidden with the reason in upstream's words.
  Status Authorize(const User& user, const RequestInfo& info) const;
};

// The one object that a list or watch asks for by fieldSelector=metadata.name=x: rules with
// resourceNames allow that, as upstream's do.
std::optional<std::string> SelectedName(const RequestInfo& info);

// Health and version, which everybody may read.
bool IsPublic(const RequestInfo& info);

// The refusal, as upstream words it.
Status AuthorizationError(const User& user, const RequestInfo& info, std::string_view reason);

}  // namespace muster::apiserver
