// src/apiserver/aggregation/extension_request.h
//
// What is sent to a server behind an APIService, and where. Source of headers and contract:
// k8s.io/kube-aggregator pkg/apiserver, k8s.io/client-go transport.
//
// Thread: the loop thread.

#pragma once

#include <string>

#include "apiserver/aggregation/api_service.h"
#include "apiserver/aggregation/extension_client.h"
#include "apiserver/authentication.h"
#include "apiserver/call.h"
#include "apiserver/core.h"
#include "base/status.h"
#include "net/http.h"

namespace muster::apiserver {

// A ready endpoint of the Service, by chance; why there is none otherwise.
Result<ExtensionTarget> TargetOf(Core& core, const ApiService& service);

// Who asks, in the words that the ConfigMap extension-apiserver-authentication names:
// X-Remote-User, X-Remote-Group, X-Remote-Extra-KEY. REQUIRES: no such headers in `headers`.
void SayWhoAsks(const User& user, net::Headers& headers);

// The request as it is passed on: without what was meant for this server (credentials,
// impersonation, the connection) and without what only this server may say (who asks).
net::Request PassOn(const Call& call, const ApiService& service);
// The same with another target and host, and without who asks: for what stands behind a Service.
net::Request PassOnTo(const Call& call, std::string target, const std::string& host);

// Headers of an answer that go to the client.
net::Headers PassBack(const net::Headers& headers);

}  // namespace muster::apiserver
