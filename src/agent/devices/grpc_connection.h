// src/agent/devices/grpc_connection.h
//
// GrpcConnection: gRPC on one Unix socket, as its client or as its server. HTTP/2 is nghttp2's; the
// rest of gRPC that the node's contracts need is little (docs/adr/0012).
//
// Life cycle: destroying it ends all calls; no callback runs afterwards.
// Thread:     the loop thread. Callbacks are never called from inside.
// Invariants: a message has at most kMaxGrpcMessageBytes, and no more than kMaxGrpcCalls are under
//             way; a peer that goes beyond is cut off.
// Errors:     a call ends with the peer's words, its reason after the code: Timeout for
//             DEADLINE_EXCEEDED, ServiceUnavailable for UNAVAILABLE, NotFound for UNIMPLEMENTED,
//             else Unknown. ServiceUnavailable when the connection breaks.
// Source:     https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/runtime/unique_fd.h"
#include "base/status.h"
#include "base/task.h"
#include "base/time.h"
#include "client/lifetime.h"
#include "loop/asio_loop.h"

struct nghttp2_session;

namespace muster::agent {

inline constexpr size_t kMaxGrpcMessageBytes = 4 * 1024 * 1024;  // as gRPC's own default
inline constexpr uint32_t kMaxGrpcCalls = 32;                    // at one time on a connection
inline constexpr Duration kGrpcWriteRetry = milliseconds(5);

class GrpcConnection {
 public:
  // Answers calls that have one message each way: "/v1beta1.Registration/Register".
  using Service =
      Function<Result<std::string>(const std::string& method, std::string_view request)>;
  struct CallEvents {
    Function<void(std::string_view)> on_message;  // each message of the answer
    Function<void(Status)> on_end;
  };

  // Speaks first.
  GrpcConnection(AsioLoop& loop, UniqueFd socket);
  GrpcConnection(AsioLoop& loop, UniqueFd socket, Service service);
  ~GrpcConnection();
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  // REQUIRES: a client. Without `timeout` it may go on for ever.
  void Call(const std::string& method, std::string_view request, std::optional<Duration> timeout,
            CallEvents events);
  // Its calls end with ServiceUnavailable, later.
  void Close(const std::string& why) { Break(why); }
  // Once, after all calls have ended.
  void OnClosed(Task closed) { on_closed_ = std::move(closed); }

 private:
  struct Stream;
  struct Callbacks;
  void Begin(bool client);
  void OnReadable();
  void Flush();
  void Break(const std::string& why);
  void TakeMessages(int32_t id, Stream& stream);
  void AnswerCall(int32_t id);
  void EndStream(int32_t id);

  AsioLoop& loop_;
  UniqueFd socket_;
  Service service_;
  Task on_closed_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, std::unique_ptr<Stream>> streams_;
  std::string out_;  // not yet taken by the kernel
  bool broken_ = false;
  TimerId retry_ = 0;
  std::unique_ptr<FdWatch> watch_;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
