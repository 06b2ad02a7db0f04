// src/apiserver/pods/pod_location.h
//
// Where a container's node agent is, and what to say when there is none or it has no log yet.
//
// Thread: the loop thread.

#pragma once

#include <string>
#include <string_view>

#include "apiserver/core.h"
#include "apiserver/node_proxy.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::apiserver {

inline constexpr size_t kMaxLogBacklogBytes =
    64 * 1024 * 1024;  // unread by the client: the connection is cut, muster's own client goes on
inline constexpr size_t kMaxNodeErrorBytes = 16 * 1024;        // of an error text of a node

inline constexpr size_t kMaxNodeAnswerBytes = 16 * 1024 * 1024;  // through nodes/NAME/proxy

struct PodLocation {
  NodeEndpoint node;
  std::string container;
};

// NotFound; ServiceUnavailable: it has no address.
Result<NodeEndpoint> LocateNode(Core& core, const std::string& name);
// BadRequest: no node yet, container unknown or to be chosen. NotFound: the node.
// ServiceUnavailable: it has no address.
Result<PodLocation> LocatePod(Core& core, const json::Value& pod, std::string_view container);

// Why a container that has not started has no log, in the kubelet's words; Ok if its status gives
// no reason.
Status WaitingToStart(const json::Value& pod, std::string_view container, bool previous);

}  // namespace muster::apiserver
