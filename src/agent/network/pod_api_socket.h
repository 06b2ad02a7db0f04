// src/agent/network/pod_api_socket.h
//
// The sockets at which pods reach the API server, wherever that listens otherwise, and the gateway
// of InferenceServices: on the address of the bridge, where only pods and the node come
// (host_network.h drops all else). They may be bound before there is a bridge.
//
// Thread: any; does not block.

#pragma once

#include <cstdint>

#include "agent/network/ipv4.h"
#include "agent/runtime/unique_fd.h"
#include "base/status.h"

namespace muster::agent {

inline constexpr uint16_t kPodApiPort = 6443;   // another one if that is taken
inline constexpr uint16_t kGatewayPort = 8012;  // the same; Knative's activator has it, too

// In the network namespace of the caller; bound, not listening.
Result<UniqueFd> BindPodApi(Ipv4 bridge_address, uint16_t port = kPodApiPort);
Result<uint16_t> PortOfSocket(int fd);

}  // namespace muster::agent
