// src/agent/node/node_limitation.h
//
// NodeLimitation: what this node does not keep that pods may count on. The Node shows it as a
// condition that is True while it holds, there is an event, and `muster up` prints it.
//
// Thread: any (a value).

#pragma once

#include <string>

namespace muster::agent {

struct NodeLimitation {
  std::string condition;  // "LimitsNotEnforced"
  std::string reason;     // "NoDelegatedCgroup"
  std::string message;    // what, why, and what would change it
};

}  // namespace muster::agent
