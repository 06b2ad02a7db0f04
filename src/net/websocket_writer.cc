#include "net/websocket_writer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "net/websocket.h"

namespace muster::net {
namespace {

constexpr std::string_view kProtocol = "binary.k8s.io";
constexpr std::string_view kTokenProtocol = "base64url.bearer.authorization.k8s.io.";
constexpr std::string_view kProtocolHeader = "Sec-WebSocket-Protocol";
constexpr size_t kPieceBytes = 64 * 1024;
constexpr uint16_t kNormal = 1000, kTooBig = 1009;

class WebSocketWriter final : public ResponseWriter,
                              public std::enable_shared_from_this<WebSocketWriter> {
 public:
  WebSocketWriter(ResponseWriterPtr inner, WebSocketAccept accept)
      : inner_(std::move(inner)), accept_(std::move(accept)) {}

  void Send(Response response) override { inner_->Send(std::move(response)); }

  void StartStream(int status, Headers headers) override {
    if (status != 200) return inner_->StartStream(status, std::move(headers));
    lines_ = headers.Get("Content-Type").starts_with("application/json");
    Headers head = std::move(accept_.headers);
    for (const auto& [name, value] : headers.list())
      if (EqualsIgnoreCase(name, "Warning")) head.Add(name, value);
    socket_ = std::make_unique<WebSocket>(WebSocket::Role::kServer, inner_->Upgrade(head));
    socket_->OnMessage([](std::string_view, bool) {});
    socket_->OnClose([this](uint16_t, std::string_view) {
      ended_ = true;
      if (on_gone_) std::exchange(on_gone_, nullptr)();
    });
  }

  void Write(std::shared_ptr<const std::string> bytes) override {
    if (socket_ == nullptr) return inner_->Write(std::move(bytes));
    if (ended_) return;
    const auto keep = shared_from_this();  // whoever hears that it is over may let go
    if (lines_) {
      for (const std::string_view line : SplitNonEmpty(*bytes, '\n')) SendLine(line);
    } else {
      for (std::string_view rest = *bytes; !rest.empty();) {
        socket_->Send(rest.substr(0, kPieceBytes));
        rest.remove_prefix(std::min(kPieceBytes, rest.size()));
      }
    }
  }

  void End() override {
    if (socket_ == nullptr) return inner_->End();
    Close(kNormal, "");
  }

  size_t BufferedBytes() const override {
    return socket_ == nullptr ? inner_->BufferedBytes() : socket_->BufferedBytes();
  }

  std::unique_ptr<ByteStream> Upgrade(Headers headers) override {
    return inner_->Upgrade(std::move(headers));
  }

  // Kept here: the inner writer forgets its own once it is upgraded.
  void OnPeerGone(Task task) override {
    on_gone_ = std::move(task);
    if (socket_ != nullptr) return;
    inner_->OnPeerGone([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self != nullptr && self->on_gone_) std::exchange(self->on_gone_, nullptr)();
    });
  }

 private:
  void SendLine(std::string_view line) {
    if (ended_) return;
    if (line.size() <= kMaxMessageBytes) return socket_->Send(line, false);
    Close(kTooBig, "an object is too large for a message");
    if (on_gone_) std::exchange(on_gone_, nullptr)();
  }

  void Close(uint16_t code, std::string_view reason) {
    if (!std::exchange(ended_, true)) socket_->Close(code, reason);
  }

  ResponseWriterPtr inner_;
  WebSocketAccept accept_;
  std::unique_ptr<WebSocket> socket_;  // null: no stream has begun
  bool lines_ = false;
  bool ended_ = false;
  Task on_gone_;
};

// base64url without padding, which is what a protocol's name may hold.
std::string DecodeToken(std::string_view text) {
  std::string base64(text);
  std::ranges::replace(base64, '-', '+');
  std::ranges::replace(base64, '_', '/');
  while (base64.size() % 4 != 0) base64 += '=';
  return Base64Decode(base64).value_or("");
}

}  // namespace

Result<ResponseWriterPtr> MakeWebSocketWriter(const Request& request, ResponseWriterPtr inner) {
  ASSIGN_OR_RETURN(WebSocketAccept accept, AcceptWebSocket(request, {std::string(kProtocol)}));
  return std::make_shared<WebSocketWriter>(std::move(inner), std::move(accept));
}

void TakeTokenFromProtocols(Request& request) {
  std::vector<std::string> others;
  std::string token;
  bool any = false;
  for (const auto& [name, value] : request.headers.list()) {
    if (!EqualsIgnoreCase(name, kProtocolHeader)) continue;
    for (const std::string_view part : SplitNonEmpty(value, ',')) {
      const std::string_view protocol = Trim(part);
      if (protocol.starts_with(kTokenProtocol)) {
        any = true;
        token = DecodeToken(protocol.substr(kTokenProtocol.size()));
      } else {
        others.emplace_back(protocol);
      }
    }
  }
  if (!any) return;
  // Gone from there in any case: what is passed on, or said of a header, must not hold a token.
  request.headers.Remove(kProtocolHeader);
  if (others.empty()) return;
  request.headers.Add(std::string(kProtocolHeader), Join(others, ", "));
  // A client has to offer another protocol beside it: that one can be agreed on.
  if (!token.empty() && !request.headers.Has("Authorization"))
    request.headers.Add("Authorization", "Bearer " + token);
}

bool IsSameOrigin(const Request& request) {
  const std::string_view origin = request.headers.Get("Origin");
  if (origin.empty()) return true;
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return false;  // "null": a file, a sandbox
  return EqualsIgnoreCase(origin.substr(scheme + 3), request.headers.Get("Host"));
}

}  // namespace muster::net
