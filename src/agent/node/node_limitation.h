// src/agent/node/node_limitation.h
//
// NodeLimitation: what this node does not keep that pods may count on. The Node shows it as a
// condition that is True while it holds, there is an event, and `muster up` prints it.
//
// Thread: any (a value).

#pragma once

#include <string>

namespace muster::agent {

inline constexpr const char* kLimitsNotEnforced = "LimitsNotEnforced";
inline constexpr const char* kNoNamespaces = "NoNamespaces";
inline constexpr const char* kNoOutsideNetwork = "NoOutsideNetwork";

struct NodeLimitation {
  std::string condition;    // one of those above
  std::string reason;       // "NoDelegatedCgroup"
  std::string message;      // what, and why
  std::string remedy = {};  // what would change it, a command where possible

  std::string Text() const { return remedy.empty() ? message : message + "; fix: " + remedy; }
};

}  // namespace muster::agent
