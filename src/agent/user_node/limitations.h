// src/agent/user_node/limitations.h
//
// What the node of an ordinary user may lack, in words: what, why, and what would change it.
//
// Thread: any (pure).

#pragma once

#include <optional>
#include <string>

#include "agent/cgroups/delegated_group.h"
#include "agent/node/node_limitation.h"

namespace muster::agent {

// `why` with what would change it.
NodeLimitation NoNamespaces(const std::string& why);

// What a program that joins the node's network with the outside needs.
struct OutsideMeans {
  bool program = false;      // pasta or slirp4netns
  bool device = false;       // /dev/net/tun
  std::string failure = {};  // of the start
};

// nullopt: memory and CPU can be limited.
std::optional<NodeLimitation> MissingLimits(const DelegatedGroup& group);
NodeLimitation NoWayOut(const OutsideMeans& means);

}  // namespace muster::agent
