// src/net/websocket.h
//
// WebSocket (RFC 6455): negotiation over HTTP/1.1 and messages over a ByteStream. No extensions.
//
//   server:  ASSIGN_OR_RETURN(WebSocketAccept accept, AcceptWebSocket(request,
//   {"v5.channel.k8s.io", "v4.channel.k8s.io"}));
//            WebSocket socket(WebSocket::Role::kServer,
//            writer->Upgrade(std::move(accept.headers)));
//   client:  PrepareWebSocket(request, {"v5.channel.k8s.io"}); client.Upgrade(endpoint, request,
//   ...);
//            ASSIGN_OR_RETURN(std::string protocol, CheckWebSocketAnswer(request,
//            answer.response));
//
// Life cycle: a WebSocket owns its stream; destroying it closes the connection. The owner may
// destroy it from inside a
//             callback.
// Thread:     the loop thread of the stream.
// Invariants: a message is at most kMaxMessageBytes (else close 1009); frames from a client are
// masked, from a server
//             not (else close 1002); pings are answered; after OnClose nothing runs any more.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/task.h"
#include "net/http.h"

namespace muster::net {

inline constexpr size_t kMaxMessageBytes = 1024 * 1024;

struct WebSocketAccept {
  Headers headers;       // for ResponseWriter::Upgrade
  std::string protocol;  // the chosen one; "" if the client named none
};

// True if the request asks for a WebSocket at all (then AcceptWebSocket says whether it can have
// one).
bool IsWebSocketRequest(const Request& request);
// Chooses the client's first protocol that is in `supported`. BadRequest if the handshake is
// malformed or none fits.
Result<WebSocketAccept> AcceptWebSocket(const Request& request,
                                        const std::vector<std::string>& supported);

// Adds the handshake's headers, with a fresh random key.
void PrepareWebSocket(Request& request, const std::vector<std::string>& protocols);
// The chosen protocol, or why the answer is no WebSocket.
Result<std::string> CheckWebSocketAnswer(const Request& request, const Response& answer);

class WebSocket {
 public:
  enum class Role : uint8_t { kServer, kClient };

  WebSocket(Role role, std::unique_ptr<ByteStream> stream);
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // Whole messages, text or binary.
  void OnMessage(Function<void(std::string_view message, bool binary)> on_message);
  // The peer closed (its code; 1005 if it gave none) or the connection broke (1006).
  void OnClose(Function<void(uint16_t code, std::string_view reason)> on_close);

  // The peer answered a Ping().
  void OnPong(Function<void()> on_pong);

  void Ping();
  // REQUIRES: message.size() <= kMaxMessageBytes.
  void Send(std::string_view message, bool binary = true);
  // Sends a close frame and ends the connection after it; what still arrives is dropped, OnClose
  // runs in the end.
  void Close(uint16_t code = 1000, std::string_view reason = {});
  size_t BufferedBytes() const;
  // See ByteStream: what was read before still comes to OnMessage, a bounded number of bytes. Pings
  // wait too.
  void PauseReading(bool paused);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// The codec beneath, without any I/O (also for fuzzing).
struct WebSocketFrame {
  bool final = true;
  uint8_t opcode = 0;  // 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong
  std::string payload;
};
class WebSocketDecoder {
 public:
  explicit WebSocketDecoder(bool expect_masked) : expect_masked_(expect_masked) {}
  // Appends complete frames. After an error the decoder must not be used again; code() says how to
  // close.
  Status Feed(std::string_view bytes, std::vector<WebSocketFrame>& frames);
  uint16_t close_code() const { return close_code_; }

 private:
  Status ParseOne(size_t& offset, bool& complete, WebSocketFrame& frame);

  bool expect_masked_;
  uint16_t close_code_ = 1002;
  std::string buffer_;
};
// `mask` is a 4-byte key for client frames, "" for server frames.
void AppendWebSocketFrame(std::string& out, uint8_t opcode, bool final, std::string_view payload,
                          std::string_view mask);

}  // namespace muster::net
