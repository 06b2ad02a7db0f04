// src/apiserver/identity/policy_rule.h
//
// PolicyRule: one rule of a Role or ClusterRole. What it allows, and whether some rules allow all
// that others do (upstream: pkg/registry/rbac/validation).
//
// Thread: any (values and pure functions).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/request_info.h"
#include "json/value.h"

namespace muster::apiserver {

struct PolicyRule {
  std::vector<std::string> verbs, groups, resources, names, urls;
  bool operator==(const PolicyRule&) const = default;
};

std::vector<PolicyRule> ReadRules(const json::Value& rules);

bool Allows(const PolicyRule& rule, const RequestInfo& info);

// What of `wanted` no rule of `held` allows, gathered into few rules; empty if nothing is missing.
std::vector<PolicyRule> Missing(const std::vector<PolicyRule>& held,
                                const std::vector<PolicyRule>& wanted);

// {APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}
std::string Describe(const PolicyRule& rule);

}  // namespace muster::apiserver
