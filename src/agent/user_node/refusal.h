// src/agent/user_node/refusal.h
//
// Why this machine gives an ordinary user no namespaces, and what its administrator would change.
//
// Thread: any; GatherRefusalFacts() reads a few small files; ExplainRefusal() is pure.

#pragma once

#include <optional>
#include <string>

namespace muster::agent {

// What the kernel says; nullopt: it has no such setting.
struct RefusalFacts {
  std::optional<std::string> max_user_namespaces;  // user.max_user_namespaces
  std::optional<std::string> unprivileged_clone;   // kernel.unprivileged_userns_clone (Debian)
  std::optional<std::string> apparmor_restricts;   // ..._restrict_unprivileged_userns (Ubuntu)
  std::string error;                               // of the attempt itself
};

// `sysctls` is where the kernel shows them: another folder in tests.
RefusalFacts GatherRefusalFacts(std::string error, const std::string& sysctls = "/proc/sys");

struct Refusal {
  std::string why;     // "user namespaces are switched off (user.max_user_namespaces is 0)"
  std::string remedy;  // "sudo sysctl -w user.max_user_namespaces=16384"
};
Refusal ExplainRefusal(const RefusalFacts& facts);

}  // namespace muster::agent
