// src/cli/loopback_proxy.h
//
// LoopbackProxy: serves the dashboard's files over plain HTTP on this machine's loopback address,
// and passes what the page asks on to the API server over verified TLS. So a browser needs no
// certificate of the cluster. It adds no credentials: a request has the rights of the token that it
// carries itself, so whoever else reaches the port gains nothing.
//
// Life cycle: destroyed after the HttpServer that calls it has stopped.
// Thread:     the loop thread.
// Invariants: only GET and HEAD pass, and only for this machine's own names (a page from elsewhere
//             whose name was made to lead here is refused); a reader that falls more than
//             kMaxProxyBacklogBytes behind is cut.

#pragma once

#include <cstddef>
#include <memory>
#include <set>

#include "client/https_transport.h"
#include "dashboard/page.h"
#include "loop/loop.h"
#include "net/http.h"

namespace muster::cli {

inline constexpr size_t kMaxProxyBacklogBytes = 64 * 1024 * 1024;

class LoopbackProxy final : public net::Handler {
 public:
  // REQUIRES: `server` has no credentials, and outlives the proxy.
  LoopbackProxy(Loop& loop, client::HttpsTransport& server);
  ~LoopbackProxy() override;

  void Handle(net::Request request, net::ResponseWriterPtr writer) override;

 private:
  class Answer;   // one answer on its way
  class Opening;  // one WebSocket on its way

  void PassOn(const net::Request& request, net::ResponseWriterPtr writer);
  void Upgrade(const net::Request& request, net::ResponseWriterPtr writer);

  Loop& loop_;
  client::HttpsTransport& server_;
  dashboard::Page page_;
  std::set<std::shared_ptr<Answer>> answers_;
  std::set<std::shared_ptr<Opening>> openings_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace muster::cli
