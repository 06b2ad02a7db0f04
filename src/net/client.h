// src/net/client.h
//
// HttpClient: HTTP/1.1 requests over TLS or plain TCP, with a pool of kept-alive connections per
// endpoint.
//
// Life cycle: one per identity (CA and client certificate); destroyed before its Loop and
// IoThreads. Destroying it, or
//             a StreamHandle, abandons what is in flight: no callback runs afterwards.
// Thread:     made, called and destroyed on the thread of `loop`; callbacks run there, never from
// inside the call. Errors:     ServiceUnavailable (refused, reset, unknown host, bad certificate)
// or Timeout; the message names the
//             endpoint. An answer with any HTTP status is not an error.
// Invariants: a request that may have reached the server is sent once; one that met a kept-alive
// connection which the
//             server had closed, before any byte of an answer, is sent again only if its method is
//             idempotent.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/task.h"
#include "base/time.h"
#include "loop/loop.h"
#include "net/http.h"
#include "net/io_threads.h"

namespace muster::net {

inline constexpr size_t kMaxIdleConnectionsPerEndpoint = 32;
inline constexpr size_t kMaxRequestsPerEndpoint =
    128;  // at one time; further ones wait. Streams are not counted
inline constexpr size_t kMaxResponseBytes =
    512 * 1024 * 1024;  // of an answer that is collected whole
inline constexpr size_t kMaxUndeliveredBytes =
    1024 * 1024;  // of a stream, before its socket is read no further
inline constexpr Duration kConnectTimeout = seconds(10);     // name, TCP and TLS together
inline constexpr Duration kClientIdleTimeout = seconds(60);  // shorter than the server's
inline constexpr Duration kRequestTimeout = seconds(60);

struct Endpoint {
  bool tls = true;
  std::string host;
  uint16_t port = 0;
  std::string server_name;  // for the certificate instead of host, if not ""
  bool operator==(const Endpoint&) const = default;
  auto operator<=>(const Endpoint&) const = default;
  std::string ToString() const;  // "https://127.0.0.1:6443"
};

struct ClientOptions {
  std::string ca_pem;           // "" = the system's authorities
  std::string certificate_pem;  // client certificate, "" = none
  std::string key_pem;
  bool insecure_skip_verify = false;
  size_t max_response_bytes = kMaxResponseBytes;
  Duration connect_timeout = kConnectTimeout;
  size_t max_undelivered_bytes = kMaxUndeliveredBytes;
};

// Destroying it abandons the stream.
class ClientStream {
 public:
  virtual ~ClientStream() = default;
  // A paused answer is read no further. What was read before still comes to on_data, at most
  // ClientOptions::max_undelivered_bytes and one read. Without effect on Upgrade and Connect.
  virtual void PauseReading(bool paused) { (void)paused; }
};

struct ClientStreamCallbacks {
  Function<void(int status, const Headers& headers)> on_head;
  Function<void(std::string_view bytes)> on_data;
  Function<void(Status)> on_end;  // Ok: the server ended the stream in good order
};

struct UpgradeAnswer {
  Response response;                   // 101, or what the server said instead
  std::unique_ptr<ByteStream> stream;  // null unless 101
};

class HttpClient {
 public:
  static Result<std::unique_ptr<HttpClient>> Make(Loop& loop, IoThreads& io, ClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Host, Content-Length and (for Upgrade) Connection are filled in; other headers are sent as
  // given.
  void Send(const Endpoint& endpoint, Request request, Duration timeout,
            Function<void(Result<Response>)> done);
  std::unique_ptr<ClientStream> Stream(const Endpoint& endpoint, Request request,
                                       ClientStreamCallbacks callbacks);
  // With a body that others have, too; that of `request` is not looked at.
  std::unique_ptr<ClientStream> Stream(const Endpoint& endpoint, Request request,
                                       std::shared_ptr<const std::string> body,
                                       ClientStreamCallbacks callbacks);
  // The request carries its Upgrade header (see websocket.h). Destroying the handle before `done`
  // abandons it.
  std::unique_ptr<ClientStream> Upgrade(const Endpoint& endpoint, Request request,
                                        Function<void(Result<UpgradeAnswer>)> done);
  // A connection of its own without HTTP, for other protocols. Destroying the handle before `done`
  // abandons it.
  std::unique_ptr<ClientStream> Connect(const Endpoint& endpoint,
                                        Function<void(Result<std::unique_ptr<ByteStream>>)> done);

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::net
