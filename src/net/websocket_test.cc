#include "net/websocket.h"

#include <gtest/gtest.h>

#include "net/net_testing.h"

namespace muster::net {
namespace {

Request Handshake(const std::vector<std::string>& protocols) {
  Request request{.method = "GET", .target = "/exec"};
  PrepareWebSocket(request, protocols);
  return request;
}

TEST(WebSocketHandshake, AnswersTheExampleOfTheRfc) {
  Request request = Handshake({});
  request.headers.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
  auto accept = AcceptWebSocket(request, {});
  ASSERT_TRUE(accept.has_value()) << accept.error().ToString();
  EXPECT_EQ(accept->headers.Get("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocketHandshake, ChoosesTheFirstProtocolThatBothKnow) {
  Request request = Handshake({"v9.channel.k8s.io", "v5.channel.k8s.io", "v4.channel.k8s.io"});
  auto accept = AcceptWebSocket(request, {"v4.channel.k8s.io", "v5.channel.k8s.io"});
  ASSERT_TRUE(accept.has_value());
  EXPECT_EQ(accept->protocol, "v5.channel.k8s.io");
  Response answer{.status = 101, .headers = accept->headers};
  EXPECT_EQ(CheckWebSocketAnswer(request, answer).value_or(""), "v5.channel.k8s.io");
  EXPECT_FALSE(AcceptWebSocket(request, {"other"}).has_value());
}

TEST(WebSocketHandshake, DoesNotRepeatWhatItRefuses) {
  const auto accept =
      AcceptWebSocket(Handshake({"base64url.bearer.authorization.k8s.io.c2VjcmV0", "x"}), {"y"});
  ASSERT_FALSE(accept.has_value());
  EXPECT_EQ(accept.error().message(),
            "Sec-WebSocket-Protocol: none of the 2 that were named is known; expected one of y");
}

TEST(WebSocketHandshake, RefusesMalformedOnes) {
  auto broken = [](auto change) {
    Request request = Handshake({});
    change(request);
    return !AcceptWebSocket(request, {}).has_value();
  };
  EXPECT_TRUE(broken([](Request& r) { r.method = "POST"; }));
  EXPECT_TRUE(broken([](Request& r) { r.headers.Set("Sec-WebSocket-Version", "8"); }));
  EXPECT_TRUE(broken([](Request& r) { r.headers.Set("Sec-WebSocket-Key", "short"); }));
  EXPECT_TRUE(broken([](Request& r) { r.headers.Remove("Upgrade"); }));
  Request request = Handshake({"a"});
  Response answer{.status = 101, .headers = AcceptWebSocket(Handshake({"a"}), {"a"})->headers};
  EXPECT_FALSE(CheckWebSocketAnswer(request, answer).has_value()) << "an answer to another key";
}

Status Decode(std::string_view bytes, bool expect_masked, std::vector<WebSocketFrame>& frames,
              uint16_t* code = nullptr) {
  WebSocketDecoder decoder(expect_masked);
  Status status;
  for (char c : bytes) {
    status = decoder.Feed(std::string_view(&c, 1), frames);
    if (!status.ok()) break;
  }
  if (code != nullptr) *code = decoder.close_code();
  return status;
}

TEST(WebSocketDecoder, ReadsWhatTheEncoderWrites) {
  for (size_t size : {0u, 1u, 125u, 126u, 65535u, 65536u, 100'000u}) {
    for (std::string mask : {std::string(), std::string("\x01\x82\xfe\x00", 4)}) {
      std::string bytes;
      std::string payload(size, 'p');
      AppendWebSocketFrame(bytes, 2, true, payload, mask);
      std::vector<WebSocketFrame> frames;
      ASSERT_TRUE(Decode(bytes, !mask.empty(), frames).ok());
      ASSERT_EQ(frames.size(), 1u);
      EXPECT_EQ(frames[0].payload, payload);
      EXPECT_EQ(frames[0].opcode, 2);
    }
  }
}

TEST(WebSocketDecoder, RefusesBrokenFrames) {
  auto code_of = [](std::string bytes, bool masked) {
    std::vector<WebSocketFrame> frames;
    uint16_t code = 0;
    return Decode(bytes, masked, frames, &code).ok() ? 0 : code;
  };
  EXPECT_EQ(code_of("\x82\x01x", true), 1002) << "a client must mask";
  EXPECT_EQ(code_of(std::string("\x82\x80\0\0\0\0", 6), false), 1002) << "a server must not";
  EXPECT_EQ(code_of("\xc2\x01x", false), 1002) << "reserved bits";
  EXPECT_EQ(code_of("\x83\x01x", false), 1002) << "unknown opcode";
  EXPECT_EQ(code_of("\x09\x01x", false), 1002) << "fragmented ping";
  EXPECT_EQ(code_of("\x89\x7e\x01\x00", false), 1002) << "long ping";
  EXPECT_EQ(code_of(std::string("\x82\x7e\x00\x05", 4), false), 1002)
      << "length not in its shortest form";
  EXPECT_EQ(code_of(std::string("\x82\x7f\x00\x00\x00\x00\x00\x20\x00\x00", 10), false), 1009)
      << "too long";
}

// A pair of connected sockets over a real server.
class WebSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    server_ = net_.Serve(
        [this](const Request& request, const ResponseWriterPtr& writer) {
          auto accept = AcceptWebSocket(request, {"v5.channel.k8s.io"});
          ASSERT_TRUE(accept.has_value());
          there_ = std::make_unique<WebSocket>(WebSocket::Role::kServer,
                                               writer->Upgrade(accept->headers));
          there_->OnMessage(
              [this](std::string_view message, bool binary) { there_->Send(message, binary); });
          there_->OnClose([this](uint16_t code, std::string_view) { there_closed_ = code; });
        },
        net_.TlsOptions());
    client_ = net_.Client();
    Request request = Handshake({"v5.channel.k8s.io"});
    auto handle = client_->Upgrade(
        net_.EndpointOf(*server_, true), request, [&](Result<UpgradeAnswer> answer) {
          ASSERT_TRUE(answer.has_value());
          ASSERT_EQ(CheckWebSocketAnswer(request, answer->response).value_or("-"),
                    "v5.channel.k8s.io");
          here_ = std::make_unique<WebSocket>(WebSocket::Role::kClient, std::move(answer->stream));
          here_->OnMessage([this](std::string_view message, bool binary) {
            received_.emplace_back(message);
            binary_ = binary;
          });
          here_->OnClose([this](uint16_t code, std::string_view reason) {
            here_closed_ = code;
            reason_ = std::string(reason);
          });
        });
    ASSERT_TRUE(net_.RunUntil([&] { return here_ != nullptr; }));
  }

  TestNet net_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<WebSocket> here_, there_;
  std::vector<std::string> received_;
  bool binary_ = false;
  uint16_t here_closed_ = 0, there_closed_ = 0;
  std::string reason_;
};

TEST_F(WebSocketTest, EchoesMessages) {
  here_->Send("hello", false);
  here_->Send(std::string(kMaxMessageBytes, 'z'), true);
  ASSERT_TRUE(net_.RunUntil([&] { return received_.size() == 2; }));
  EXPECT_EQ(received_[0], "hello");
  EXPECT_EQ(received_[1].size(), kMaxMessageBytes);
  EXPECT_TRUE(binary_);
}

TEST_F(WebSocketTest, ClosesWithCodeAndReason) {
  there_->Close(1011, "exec failed");
  EXPECT_TRUE(net_.RunUntil([&] { return here_closed_ != 0 && there_closed_ != 0; }));
  EXPECT_EQ(here_closed_, 1011);
  EXPECT_EQ(reason_, "exec failed");
}

TEST_F(WebSocketTest, ReportsABrokenConnection) {
  server_.reset();
  EXPECT_TRUE(net_.RunUntil([&] { return here_closed_ != 0; }));
  EXPECT_EQ(here_closed_, 1006);
}

TEST_F(WebSocketTest, MayBeDestroyedFromItsOwnCallback) {
  here_->OnMessage([this](std::string_view, bool) { here_.reset(); });
  here_->Send("x");
  EXPECT_TRUE(net_.RunUntil([&] { return here_ == nullptr && there_closed_ != 0; }));
}

// A stream in memory, to feed broken bytes.
class FakeStream final : public ByteStream {
 public:
  struct State {
    Function<void(std::string_view)> on_data;
    std::string written;
    bool closed = false, paused = false;
  };
  explicit FakeStream(State& state) : state_(state) {}
  void OnData(Function<void(std::string_view)> on_data) override {
    state_.on_data = std::move(on_data);
  }
  void OnClose(Task) override {}
  void Write(std::string bytes) override { state_.written += bytes; }
  void Close() override { state_.closed = true; }
  void PauseReading(bool paused) override { state_.paused = paused; }

 private:
  State& state_;
};

TEST(WebSocket, JoinsFragmentsAndAnswersPings) {
  FakeStream::State state;
  WebSocket socket(WebSocket::Role::kServer, std::make_unique<FakeStream>(state));
  std::vector<std::string> messages;
  socket.OnMessage([&](std::string_view message, bool) { messages.emplace_back(message); });
  std::string bytes;
  AppendWebSocketFrame(bytes, 1, false, "hel", "mask");
  AppendWebSocketFrame(bytes, 9, true, "ping", "mask");
  AppendWebSocketFrame(bytes, 0, true, "lo", "mask");
  state.on_data(bytes);
  EXPECT_EQ(messages, (std::vector<std::string>{"hello"}));
  std::string pong;
  AppendWebSocketFrame(pong, 10, true, "ping", "");
  EXPECT_EQ(state.written, pong);
}

TEST(WebSocket, TellsWhenAPingWasAnswered) {
  FakeStream::State state;
  WebSocket socket(WebSocket::Role::kServer, std::make_unique<FakeStream>(state));
  int pongs = 0;
  socket.OnMessage([](std::string_view, bool) {});
  socket.OnPong([&] { ++pongs; });
  socket.Ping();
  std::string ping, pong;
  AppendWebSocketFrame(ping, 9, true, "", "");
  EXPECT_EQ(state.written, ping);
  EXPECT_EQ(pongs, 0);
  AppendWebSocketFrame(pong, 10, true, "", "mask");
  state.on_data(pong);
  state.on_data(pong);
  EXPECT_EQ(pongs, 2);
}

TEST(WebSocket, PausesItsStreamAndDeliversWhatWasOnTheWay) {
  FakeStream::State state;
  WebSocket socket(WebSocket::Role::kServer, std::make_unique<FakeStream>(state));
  int messages = 0;
  socket.OnMessage([&](std::string_view, bool) {
    if (++messages == 1) socket.PauseReading(true);
  });
  std::string bytes;
  AppendWebSocketFrame(bytes, 2, true, "one", "mask");
  AppendWebSocketFrame(bytes, 2, true, "two", "mask");
  state.on_data(bytes);
  EXPECT_EQ(messages, 2);
  EXPECT_TRUE(state.paused);
  socket.PauseReading(false);
  EXPECT_FALSE(state.paused);
}

TEST(WebSocket, RefusesFragmentsOutOfOrderAndTooLongMessages) {
  for (bool too_long : {false, true}) {
    FakeStream::State state;
    WebSocket socket(WebSocket::Role::kServer, std::make_unique<FakeStream>(state));
    socket.OnMessage([](std::string_view, bool) { FAIL(); });
    uint16_t code = 0;
    socket.OnClose([&](uint16_t c, std::string_view) { code = c; });
    std::string bytes;
    if (too_long) {
      AppendWebSocketFrame(bytes, 1, false, std::string(kMaxMessageBytes, 'x'), "mask");
      AppendWebSocketFrame(bytes, 0, true, "x", "mask");
    } else {
      AppendWebSocketFrame(bytes, 0, true, "x", "mask");
    }
    state.on_data(bytes);
    EXPECT_EQ(code, too_long ? 1009 : 1002);
    EXPECT_TRUE(state.closed);
  }
}

}  // namespace
}  // namespace muster::net
