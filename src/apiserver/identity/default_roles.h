// src/apiserver/identity/default_roles.h
//
// The ClusterRoles and ClusterRoleBindings that every cluster has: upstream's (plugin/pkg/auth/
// authorizer/rbac/bootstrappolicy), less those of parts that muster has not, and the roles that let
// `edit` and `view` include the ML kinds.
//
// Thread: any (pure functions).

#pragma once

#include <vector>

#include "json/value.h"

namespace muster::apiserver {

std::vector<json::Value> DefaultRbac();

// `there` with the rules, subjects, labels and annotations of `wanted` that it lacks, as upstream
// reconciles at start; `there` itself where nothing is missing, or where its annotation
// rbac.authorization.kubernetes.io/autoupdate is "false".
json::Value ReconcileRbac(const json::Value& there, const json::Value& wanted);

}  // namespace muster::apiserver
