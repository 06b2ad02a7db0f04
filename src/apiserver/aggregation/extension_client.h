// src/apiserver/aggregation/extension_client.h
//
// ExtensionClient: how the API server reaches the servers behind APIServices. Production goes over
// HTTPS and shows the front proxy's certificate; tests answer in process.
//
// Life cycle: made by the composition root, outlives the ApiServer.
// Thread:     the API server's loop thread; callbacks run there, never from inside the call.

#pragma once

#include <memory>
#include <string>

#include "net/client.h"
#include "net/http.h"

namespace muster::apiserver {

struct ExtensionTarget {
  net::Endpoint endpoint;     // server_name is what the certificate must carry
  std::string ca_pem;         // "": the system's authorities
  bool believes_all = false;  // any certificate
  bool in_cluster = false;    // a pod's address
};

class ExtensionClient {
 public:
  virtual ~ExtensionClient() = default;
  // Destroying the stream abandons the request.
  virtual std::unique_ptr<net::ClientStream> Stream(const ExtensionTarget& target,
                                                    net::Request request,
                                                    net::ClientStreamCallbacks callbacks) = 0;
};

}  // namespace muster::apiserver
