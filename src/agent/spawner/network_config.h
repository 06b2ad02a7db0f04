// src/agent/spawner/network_config.h
//
// NodeNetworkConfig as JSON, for the spawner's socket.
//
// Thread: any (pure).

#pragma once

#include "agent/network/host_network.h"
#include "json/value.h"

namespace muster::agent {

json::Value ToJson(const NodeNetworkConfig& config);
NodeNetworkConfig NetworkConfigFromJson(const json::Value& value);

}  // namespace muster::agent
