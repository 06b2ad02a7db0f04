// src/apiserver/aggregation/service_proxy.h
//
// Answers a request by what the server behind an APIService, or behind a Service, answers: status,
// headers, and the body as it comes, so that watches pass.
//
// Thread: the loop thread; bytes and TLS are the I/O threads'.

#pragma once

#include <string>

#include "apiserver/aggregation/api_service.h"
#include "apiserver/aggregation/extension_client.h"
#include "apiserver/call.h"
#include "apiserver/core.h"
#include "base/time.h"

namespace muster::apiserver {

// An answer that is no watch must have come by then, as upstream's requests.
inline constexpr Duration kExtensionPatience = seconds(60);
// Unread by the client: its connection is cut.
inline constexpr size_t kMaxExtensionBacklogBytes = 64 * 1024 * 1024;
// Unread by all clients together: who has more than kFairExtensionBacklogBytes is cut.
inline constexpr size_t kMaxExtensionBacklogOfAllBytes = 256 * 1024 * 1024;
inline constexpr size_t kFairExtensionBacklogBytes = 1024 * 1024;
// Of an answer to a part of this process.
inline constexpr size_t kMaxExtensionAnswerBytes = 64 * 1024 * 1024;
// Requests that are under way to servers behind APIServices, watches included.
inline constexpr size_t kMaxExtensionRequests = 4096;

// ServiceUnavailable when the service is not available or cannot be reached.
void ProxyToApiService(Core& core, const CallPtr& call, const ApiServicePtr& service);

// What `target` answers to `request`, within the same bounds. `host`: for messages.
void RelayAnswer(Core& core, const CallPtr& call, const ExtensionTarget& target,
                 net::Request request, std::string host);

}  // namespace muster::apiserver
