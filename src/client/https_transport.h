// src/client/https_transport.h
//
// HttpsTransport: requests over TLS (or plain HTTP, for tests) to the server that a kubeconfig
// names.
//
// Life cycle: made with a Loop and IoThreads that outlive it; destroying it abandons what is in
// flight. Thread:     the loop thread.

#pragma once

#include <memory>
#include <string>

#include "client/kubeconfig.h"
#include "client/transport.h"
#include "loop/loop.h"
#include "net/client.h"

namespace muster::client {

class HttpsTransport final : public Transport {
 public:
  static Result<std::unique_ptr<HttpsTransport>> Make(Loop& loop, net::IoThreads& io,
                                                      const ConnectionConfig& config);

  void Send(net::Request request, Function<void(Result<net::Response>)> done) override;
  std::unique_ptr<StreamHandle> Stream(net::Request request, StreamCallbacks callbacks) override;
  // exec and its like. Destroying the handle before `done` abandons it.
  std::unique_ptr<StreamHandle> Upgrade(net::Request request,
                                        Function<void(Result<net::UpgradeAnswer>)> done);

  void set_timeout(Duration timeout) { timeout_ = timeout; }
  const net::Endpoint& endpoint() const { return endpoint_; }

 private:
  HttpsTransport(std::unique_ptr<net::HttpClient> http, const ConnectionConfig& config);
  net::Request Complete(net::Request request) const;

  std::unique_ptr<net::HttpClient> http_;
  const net::Endpoint endpoint_;
  const std::string path_prefix_;
  const std::string bearer_token_;
  Duration timeout_ = net::kRequestTimeout;
};

}  // namespace muster::client
