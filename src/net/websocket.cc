#include "net/websocket.h"

#include <algorithm>
#include <utility>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/check.h"
#include "base/strings.h"
#include "net/http1_parser.h"

namespace muster::net {
namespace {

constexpr std::string_view kHandshakeGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 1.3

enum Opcode : uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kCloseFrame = 8,
  kPing = 9,
  kPong = 10
};

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1);
  return bytes;
}

std::string AcceptKey(std::string_view key) {
  std::string text = std::string(key) + std::string(kHandshakeGuid);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  CHECK(EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr) == 1);
  return Base64Encode(std::string_view(reinterpret_cast<char*>(digest), size));
}

bool ListHas(const Headers& headers, std::string_view name, std::string_view token) {
  for (const auto& [key, value] : headers.list()) {
    if (!EqualsIgnoreCase(key, name)) continue;
    if (ListHasToken(value, token)) return true;
  }
  return false;
}

std::vector<std::string> RequestedProtocols(const Headers& headers) {
  std::vector<std::string> protocols;
  for (const auto& [key, value] : headers.list()) {
    if (!EqualsIgnoreCase(key, "Sec-WebSocket-Protocol")) continue;
    for (std::string_view part : SplitNonEmpty(value, ',')) protocols.emplace_back(Trim(part));
  }
  return protocols;
}

void Unmask(std::string& payload, std::string_view mask) {
  for (size_t i = 0; i < payload.size(); ++i)
    payload[i] = static_cast<char>(payload[i] ^ mask[i & 3]);
}

}  // namespace

bool IsWebSocketRequest(const Request& request) {
  return ListHas(request.headers, "Connection", "upgrade") &&
         ListHas(request.headers, "Upgrade", "websocket");
}

Result<WebSocketAccept> AcceptWebSocket(const Request& request,
                                        const std::vector<std::string>& supported) {
  if (!IsWebSocketRequest(request) || request.method != "GET") {
    return Error(
        Reason::kBadRequest,
        "expected a WebSocket handshake: GET with Connection: Upgrade, Upgrade: websocket");
  }
  if (request.headers.Get("Sec-WebSocket-Version") != "13") {
    return Error(Reason::kBadRequest, "Sec-WebSocket-Version: expected 13");
  }
  std::string_view key = request.headers.Get("Sec-WebSocket-Key");
  if (Base64Decode(key).value_or("").size() != 16) {
    return Error(Reason::kBadRequest, "Sec-WebSocket-Key: expected 16 bytes in base64");
  }
  WebSocketAccept accept;
  std::vector<std::string> requested = RequestedProtocols(request.headers);
  auto chosen =
      std::find_if(requested.begin(), requested.end(), [&supported](const std::string& protocol) {
        return std::find(supported.begin(), supported.end(), protocol) != supported.end();
      });
  if (!requested.empty() && chosen == requested.end()) {
    // Not which: one of them may hold a token.
    return Error(Reason::kBadRequest,
                 "Sec-WebSocket-Protocol: none of the {} that were named is known; expected one of "
                 "{}",
                 requested.size(), Join(supported, ", "));
  }
  accept.headers.Add("Upgrade", "websocket");
  accept.headers.Add("Connection", "Upgrade");
  accept.headers.Add("Sec-WebSocket-Accept", AcceptKey(key));
  if (chosen != requested.end()) {
    accept.protocol = *chosen;
    accept.headers.Add("Sec-WebSocket-Protocol", *chosen);
  }
  return accept;
}

void PrepareWebSocket(Request& request, const std::vector<std::string>& protocols) {
  request.method = "GET";
  request.headers.Set("Connection", "Upgrade");
  request.headers.Set("Upgrade", "websocket");
  request.headers.Set("Sec-WebSocket-Version", "13");
  request.headers.Set("Sec-WebSocket-Key", Base64Encode(RandomBytes(16)));
  if (!protocols.empty()) request.headers.Set("Sec-WebSocket-Protocol", Join(protocols, ", "));
}

Result<std::string> CheckWebSocketAnswer(const Request& request, const Response& answer) {
  if (answer.status != 101) {
    return Error(Reason::kServiceUnavailable, "no WebSocket: the server answered {} {}",
                 answer.status, StatusText(answer.status));
  }
  if (answer.headers.Get("Sec-WebSocket-Accept") !=
      AcceptKey(request.headers.Get("Sec-WebSocket-Key"))) {
    return Error(Reason::kServiceUnavailable,
                 "no WebSocket: Sec-WebSocket-Accept does not fit our key");
  }
  std::string protocol(answer.headers.Get("Sec-WebSocket-Protocol"));
  std::vector<std::string> requested = RequestedProtocols(request.headers);
  bool known = std::find(requested.begin(), requested.end(), protocol) != requested.end();
  if (requested.empty() ? !protocol.empty() : !known) {
    return Error(Reason::kServiceUnavailable,
                 "no WebSocket: the server chose the protocol {:?}, which we did not offer",
                 protocol);
  }
  return protocol;
}

void AppendWebSocketFrame(std::string& out, uint8_t opcode, bool final, std::string_view payload,
                          std::string_view mask) {
  out += static_cast<char>((final ? 0x80 : 0) | opcode);
  uint8_t mask_bit = mask.empty() ? 0 : 0x80;
  if (payload.size() < 126) {
    out += static_cast<char>(mask_bit | payload.size());
  } else {
    bool wide = payload.size() > 0xffff;
    out += static_cast<char>(mask_bit | (wide ? 127 : 126));
    for (int shift = wide ? 56 : 8; shift >= 0; shift -= 8)
      out += static_cast<char>(payload.size() >> shift & 0xff);
  }
  out += mask;
  size_t start = out.size();
  out += payload;
  if (mask.empty()) return;
  for (size_t i = 0; i < payload.size(); ++i)
    out[start + i] = static_cast<char>(out[start + i] ^ mask[i & 3]);
}

Status WebSocketDecoder::Feed(std::string_view bytes, std::vector<WebSocketFrame>& frames) {
  buffer_ += bytes;
  size_t offset = 0;
  while (true) {
    bool complete = false;
    WebSocketFrame frame;
    RETURN_IF_ERROR(ParseOne(offset, complete, frame));
    if (!complete) break;
    frames.push_back(std::move(frame));
  }
  buffer_.erase(0, offset);
  return Status::Ok();
}

Status WebSocketDecoder::ParseOne(size_t& offset, bool& complete, WebSocketFrame& frame) {
  auto byte = [this](size_t i) { return static_cast<uint8_t>(buffer_[i]); };
  size_t have = buffer_.size() - offset;
  if (have < 2) return Status::Ok();
  uint8_t first = byte(offset);
  uint8_t second = byte(offset + 1);
  frame.final = (first & 0x80) != 0;
  frame.opcode = first & 0x0f;
  bool masked = (second & 0x80) != 0;
  uint64_t size = second & 0x7f;
  bool control = frame.opcode >= 8;
  close_code_ = 1002;
  if ((first & 0x70) != 0)
    return Error(Reason::kBadRequest, "WebSocket frame: reserved bits are set");
  if ((frame.opcode > kBinary && !control) || frame.opcode > kPong) {
    return Error(Reason::kBadRequest, "WebSocket frame: unknown opcode {}", frame.opcode);
  }
  if (control && (!frame.final || size > 125)) {
    return Error(Reason::kBadRequest,
                 "WebSocket frame: a control frame is whole and at most 125 bytes long");
  }
  if (masked != expect_masked_) {
    return Error(Reason::kBadRequest, "WebSocket frame: {} masked",
                 masked ? "must not be" : "must be");
  }
  size_t header = 2;
  size_t length_bytes = size == 126 ? 2 : size == 127 ? 8 : 0;
  if (have < header + length_bytes) return Status::Ok();
  if (length_bytes > 0) {
    size = 0;
    for (size_t i = 0; i < length_bytes; ++i) size = size << 8 | byte(offset + header + i);
    if (size < (length_bytes == 2 ? 126u : 0x10000u)) {
      return Error(Reason::kBadRequest, "WebSocket frame: the length is not in its shortest form");
    }
  }
  if (size > kMaxMessageBytes) {
    close_code_ = 1009;
    return Error(Reason::kRequestEntityTooLarge, "WebSocket frame: {} bytes, the limit is {}", size,
                 kMaxMessageBytes);
  }
  header += length_bytes;
  size_t mask_bytes = masked ? 4 : 0;
  if (have < header + mask_bytes + size) return Status::Ok();
  std::string_view mask = std::string_view(buffer_).substr(offset + header, mask_bytes);
  frame.payload = buffer_.substr(offset + header + mask_bytes, static_cast<size_t>(size));
  if (masked) Unmask(frame.payload, mask);
  offset += header + mask_bytes + static_cast<size_t>(size);
  complete = true;
  return Status::Ok();
}

struct WebSocket::Impl : std::enable_shared_from_this<WebSocket::Impl> {
  explicit Impl(Role r) : role(r), decoder(r == Role::kServer) {}

  const Role role;
  std::unique_ptr<ByteStream> stream;
  WebSocketDecoder decoder;
  Function<void(std::string_view, bool)> on_message;
  Function<void(uint16_t, std::string_view)> on_close;
  Function<void()> on_pong;
  std::string message;  // fragments so far
  bool in_message = false;
  bool binary = false;
  bool close_sent = false;
  bool closed = false;  // on_close ran or is due
  bool failed = false;
  uint16_t closed_code = 1006;
  std::string closed_reason;
  bool owner_gone = false;

  void SendFrame(uint8_t opcode, std::string_view payload) {
    std::string out;
    AppendWebSocketFrame(out, opcode, true, payload,
                         role == Role::kClient ? RandomBytes(4) : std::string());
    stream->Write(std::move(out));
  }

  void SendClose(uint16_t code, std::string_view reason) {
    if (std::exchange(close_sent, true)) return;
    std::string payload;
    if (code != 1005) {
      payload += static_cast<char>(code >> 8);
      payload += static_cast<char>(code & 0xff);
      payload += reason.substr(0, 123);
    }
    SendFrame(kCloseFrame, payload);
  }

  void OnBytes(std::string_view bytes) {
    if (closed || failed) return;
    std::vector<WebSocketFrame> frames;
    Status status = decoder.Feed(bytes, frames);
    for (WebSocketFrame& frame : frames) {
      if (owner_gone || closed || failed) return;
      OnFrame(std::move(frame));
    }
    if (!status.ok()) Fail(decoder.close_code(), status.message());
  }

  void OnFrame(WebSocketFrame frame) {
    switch (frame.opcode) {
      case kPing:
        if (!close_sent) SendFrame(kPong, frame.payload);
        return;
      case kPong:
        return OnPongFrame();
      case kCloseFrame:
        return OnCloseFrame(frame.payload);
      default:
        return OnDataFrame(frame);
    }
  }

  void OnPongFrame() {
    if (!on_pong) return;
    auto callback = std::exchange(on_pong, nullptr);  // it may destroy the WebSocket
    callback();
    if (!owner_gone && !on_pong) on_pong = std::move(callback);
  }

  void OnDataFrame(const WebSocketFrame& frame) {
    bool continues = frame.opcode == kContinuation;
    if (continues != in_message) return Fail(1002, "WebSocket: fragments out of order");
    if (!continues) binary = frame.opcode == kBinary;
    if (message.size() + frame.payload.size() > kMaxMessageBytes) {
      return Fail(1009,
                  fmt::format("WebSocket: a message is longer than {} bytes", kMaxMessageBytes));
    }
    message += frame.payload;
    in_message = !frame.final;
    if (in_message) return;
    std::string whole = std::exchange(message, {});
    // The callback may destroy the WebSocket, and with it on_message: so it runs from a local.
    auto callback = std::exchange(on_message, nullptr);
    callback(whole, binary);
    if (!owner_gone && !on_message) on_message = std::move(callback);
  }

  void OnCloseFrame(std::string_view payload) {
    closed_code = 1005;
    if (payload.size() >= 2) {
      closed_code = static_cast<uint16_t>(static_cast<uint8_t>(payload[0]) << 8 |
                                          static_cast<uint8_t>(payload[1]));
      closed_reason = std::string(payload.substr(2));
    }
    SendClose(closed_code, "");
    stream->Close();
    ReportClosed();
  }

  void Fail(uint16_t code, const std::string& reason) {
    failed = true;
    closed_code = code;
    closed_reason = reason;
    SendClose(code, reason);
    stream->Close();
    ReportClosed();
  }

  void ReportClosed() {
    if (std::exchange(closed, true) || owner_gone || !on_close) return;
    auto callback = std::exchange(on_close, nullptr);
    callback(closed_code, closed_reason);
  }
};

WebSocket::WebSocket(Role role, std::unique_ptr<ByteStream> stream)
    : impl_(std::make_shared<Impl>(role)) {
  impl_->stream = std::move(stream);
  impl_->stream->OnClose([weak = std::weak_ptr(impl_)] {
    if (auto impl = weak.lock()) impl->ReportClosed();
  });
}

WebSocket::~WebSocket() {
  impl_->owner_gone = true;
  impl_->on_message = nullptr;
  impl_->on_close = nullptr;
  impl_->stream->Close();
}

void WebSocket::OnMessage(Function<void(std::string_view, bool)> on_message) {
  impl_->on_message = std::move(on_message);
  // The stream keeps its bytes until there is someone to read them.
  impl_->stream->OnData([weak = std::weak_ptr(impl_)](std::string_view bytes) {
    if (auto impl = weak.lock()) impl->OnBytes(bytes);
  });
}

void WebSocket::OnClose(Function<void(uint16_t, std::string_view)> on_close) {
  impl_->on_close = std::move(on_close);
}

void WebSocket::OnPong(Function<void()> on_pong) { impl_->on_pong = std::move(on_pong); }

void WebSocket::Ping() {
  if (!impl_->close_sent && !impl_->closed) impl_->SendFrame(kPing, "");
}

void WebSocket::Send(std::string_view message, bool binary) {
  CHECK(message.size() <= kMaxMessageBytes);
  if (!impl_->close_sent && !impl_->closed) impl_->SendFrame(binary ? kBinary : kText, message);
}

void WebSocket::Close(uint16_t code, std::string_view reason) {
  if (impl_->closed || impl_->failed) return;
  impl_->closed_code = code;
  impl_->SendClose(code, reason);
  impl_->stream->Close();
}

size_t WebSocket::BufferedBytes() const { return impl_->stream->BufferedBytes(); }

void WebSocket::PauseReading(bool paused) { impl_->stream->PauseReading(paused); }

}  // namespace muster::net
