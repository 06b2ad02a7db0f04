// src/agent/network/connection_tracking.h
//
// Datagrams have no end that the kernel sees: a flow that was translated to an endpoint goes on to
// it as long as the client sends, also when the endpoint is gone. So it is made to forget the flow,
// and the client's next datagram finds another endpoint. The same holds for a flow to a port of the
// node that led nowhere (kNowhere) and now does.
//
// Thread: any; blocking.

#pragma once

#include <cstddef>
#include <map>
#include <set>

#include "agent/network/service_table.h"
#include "base/status.h"

namespace muster::agent {

// In the network namespace of the caller. How many flows were forgotten.
Result<size_t> ForgetDatagrams(const std::map<ServiceFrontend, std::set<ServiceEndpoint>>& lost);

}  // namespace muster::agent
