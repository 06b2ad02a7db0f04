// src/agent/pod_workers/expansion.h
//
// $(VAR) in commands, arguments, environment values and subPathExpr, exactly as Kubernetes expands
// it: an unknown name stays as written, $$ is a dollar sign.
//
// Thread: any (pure).
// Source: k8s.io/kubernetes third_party/forked/golang/expansion.

#pragma once

#include <map>
#include <string>
#include <string_view>

namespace muster::agent {

using EnvironmentMap = std::map<std::string, std::string>;

std::string Expand(std::string_view text, const EnvironmentMap& variables);

}  // namespace muster::agent
