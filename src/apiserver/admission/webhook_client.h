// src/apiserver/admission/webhook_client.h
//
// WebhookClient: how the API server reaches webhooks. Production goes over HTTPS; tests answer in
// process.
//
// Life cycle: made by the composition root, outlives the ApiServer.
// Thread:     the API server's loop thread; callbacks run there, never from inside the call.

#pragma once

#include <string>

#include "base/status.h"
#include "base/task.h"
#include "base/time.h"
#include "net/client.h"
#include "net/http.h"

namespace muster::apiserver {

struct WebhookTarget {
  net::Endpoint endpoint;   // server_name is what the certificate must carry
  std::string host;         // the Host header
  std::string path;         // with query
  std::string ca_pem;       // "": the system's authorities
  bool in_cluster = false;  // a pod's address
};

class WebhookClient {
 public:
  virtual ~WebhookClient() = default;
  // `done` gets the answer, whatever its status, or why there is none within `timeout`.
  virtual void Post(const WebhookTarget& target, std::string body, Duration timeout,
                    Function<void(Result<net::Response>)> done) = 0;
};

}  // namespace muster::apiserver
