// src/net/server.h
//
// HttpServer: listens on one address and hands HTTP/1.1 requests, over TLS or plain, to a Handler
// on a Loop.
//
//   ASSIGN_OR_RETURN(auto server, HttpServer::Start(loop, io_threads, handler, {.port = 6443, .tls
//   = tls})); LOG_INFO("apiserver: listening address={}", server->address());
//   server->Stop(seconds(5), [] { ... });        // streams end, requests in flight get five
//   seconds
//
// Life cycle: Start() listens at once; Stop() is graceful and asynchronous; the destructor cuts
// what is left. The
//             Loop, the Handler and the IoThreads must outlive the server. Writers may outlive it:
//             they go silent.
// Thread:     made, used and destroyed on the thread of `loop`; requests are parsed and bytes move
// on the IoThreads. Invariants: - Handler::Handle and all callbacks of writers run on the loop; one
// request at a time per connection,
//               in order (pipelined requests wait);
//             - every queue and buffer per connection is bounded by a constant below or by
//             ServerOptions; a stream's
//               writer sees its own backlog in BufferedBytes();
//             - a client certificate counts (Peer.user, Peer.groups) only if the client CA signed
//             it for a client and it is valid at the moment; else Peer.refused says why.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/task.h"
#include "base/time.h"
#include "loop/loop.h"
#include "net/http.h"
#include "net/io_threads.h"

namespace muster::net {

inline constexpr size_t kMaxHeadBytes =
    64 * 1024;  // request or status line and all headers; more is 431
inline constexpr size_t kMaxHeaderCount = 200;
inline constexpr size_t kMaxBodyBytes = 3 * 1024 * 1024;  // as upstream's API server; more is 413
inline constexpr size_t kMaxConnections = 20'000;  // of one server; a further one is closed at once
inline constexpr size_t kMaxPipelinedBytes =
    64 * 1024;  // read ahead while a request is being answered
// Bodies of one server that are arriving or whose request has no answer yet; a body that would go
// beyond is answered 429. The beginning of each is free, so that small requests pass while large
// ones have to wait.
inline constexpr size_t kMaxAllBodyBytes = 256 * 1024 * 1024;
inline constexpr size_t kFreeBodyBytes = 16 * 1024;
// What a reader that was cut off may take to read what was on its way, and why.
inline constexpr Duration kCutPatience = seconds(10);
// What waits to be sent to slow readers of one server. Beyond it, those that have stalled longest
// are cut. A piece that goes to many counts once.
inline constexpr size_t kMaxAllQueuedBytes = 512 * 1024 * 1024;
inline constexpr Duration kHandshakeAndHeadTimeout = seconds(20);
inline constexpr Duration kBodyTimeout = seconds(60);         // for each body to arrive
inline constexpr Duration kIdleTimeout = minutes(3);          // between two requests
inline constexpr Duration kWriteStallTimeout = seconds(120);  // the peer took nothing of what waits

struct TlsServerOptions {
  std::string certificate_pem;  // the chain, own certificate first
  std::string key_pem;
  std::string client_ca_pem;  // "" = client certificates are not asked for
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // an IP address; "0.0.0.0" and "::" for all
  uint16_t port = 0;               // 0 = any free one
  // A bound TCP socket, e.g. of another network namespace, that the server takes over: then `host`
  // and `port` say nothing. -1: none.
  int bound_socket = -1;
  std::optional<TlsServerOptions> tls;
  size_t max_body_bytes = kMaxBodyBytes;
  size_t max_connections = kMaxConnections;
  size_t max_all_body_bytes = kMaxAllBodyBytes;
  size_t max_all_queued_bytes = kMaxAllQueuedBytes;
  Duration head_timeout = kHandshakeAndHeadTimeout;
  Duration body_timeout = kBodyTimeout;
  Duration idle_timeout = kIdleTimeout;
  Duration write_stall_timeout = kWriteStallTimeout;
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> Start(Loop& loop, IoThreads& io, Handler& handler,
                                                   ServerOptions options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;               // the real one
  const std::string& address() const;  // "127.0.0.1:6443", "[::1]:6443"
  size_t connections() const;
  size_t body_bytes() const;    // as kMaxAllBodyBytes counts them
  size_t queued_bytes() const;  // as kMaxAllQueuedBytes counts them

  // Accepts no more, closes idle connections, ends streams; `done` runs on the loop when all
  // connections are gone, at the latest after `grace`.
  void Stop(Duration grace, Task done);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::net
