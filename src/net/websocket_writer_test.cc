#include "net/websocket_writer.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/net_testing.h"
#include "net/websocket.h"

namespace muster::net {
namespace {

class WebSocketWriterTest : public testing::Test {
 protected:
  // Asks a server whose handler gets a writer of messages.
  void Open(LambdaHandler::Function handle) {
    server_ = net_.Serve([handle](Request request, const ResponseWriterPtr& writer) {
      auto messages = MakeWebSocketWriter(request, writer);
      ASSERT_TRUE(messages.has_value()) << messages.error().ToString();
      handle(std::move(request), *messages);
    });
    client_ = net_.Client();
    Request request{.method = "GET", .target = "/watch"};
    PrepareWebSocket(request, {"binary.k8s.io"});
    handle_ = client_->Upgrade(net_.EndpointOf(*server_, false), request,
                               [this](Result<UpgradeAnswer> answer) {
                                 ASSERT_TRUE(answer.has_value());
                                 status_ = answer->response.status;
                                 body_ = answer->response.body;
                                 if (answer->stream != nullptr) Listen(std::move(answer->stream));
                               });
    ASSERT_TRUE(net_.RunUntil([this] { return status_ != 0; }));
  }

  void Listen(std::unique_ptr<ByteStream> stream) {
    socket_ = std::make_unique<WebSocket>(WebSocket::Role::kClient, std::move(stream));
    socket_->OnMessage([this](std::string_view message, bool binary) {
      messages_.push_back((binary ? "b:" : "t:") + std::string(message));
    });
    socket_->OnClose([this](uint16_t code, std::string_view) { closed_ = code; });
  }

  static Headers Type(const char* type) {
    Headers headers;
    headers.Add("Content-Type", type);
    return headers;
  }
  static std::shared_ptr<const std::string> Bytes(std::string text) {
    return std::make_shared<const std::string>(std::move(text));
  }

  TestNet net_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<ClientStream> handle_;
  std::unique_ptr<WebSocket> socket_;
  int status_ = 0;
  std::string body_;
  std::vector<std::string> messages_;
  uint16_t closed_ = 0;
};

TEST_F(WebSocketWriterTest, EachLineOfJsonIsAMessage) {
  Open([](const Request&, const ResponseWriterPtr& writer) {
    writer->StartStream(200, Type("application/json"));
    writer->Write(Bytes("{\"a\":1}\n{\"b\":2}\n"));
    writer->End();
  });
  EXPECT_EQ(status_, 101);
  ASSERT_TRUE(net_.RunUntil([this] { return closed_ != 0; }));
  EXPECT_EQ(messages_, (std::vector<std::string>{"t:{\"a\":1}", "t:{\"b\":2}"}));
  EXPECT_EQ(closed_, 1000);
}

TEST_F(WebSocketWriterTest, TextComesInBinaryPieces) {
  Open([](const Request&, const ResponseWriterPtr& writer) {
    writer->StartStream(200, Type("text/plain"));
    writer->Write(Bytes("one\ntwo\n" + std::string(100'000, 'x')));
    writer->End();
  });
  ASSERT_TRUE(net_.RunUntil([this] { return closed_ != 0; }));
  std::string all;
  for (const std::string& message : messages_) {
    EXPECT_TRUE(message.starts_with("b:"));
    all += message.substr(2);
  }
  EXPECT_EQ(messages_.size(), 2U);
  EXPECT_EQ(all.substr(0, 8), "one\ntwo\n");
  EXPECT_EQ(all.size(), 100'008U);
}

TEST_F(WebSocketWriterTest, AnErrorStaysHttp) {
  Open([](const Request&, const ResponseWriterPtr& writer) {
    writer->Send({.status = 403, .body = "no"});
  });
  EXPECT_EQ(status_, 403);
  EXPECT_EQ(body_, "no");
}

TEST_F(WebSocketWriterTest, TellsThatThePeerIsGone) {
  bool gone = false;
  ResponseWriterPtr kept;
  Open([&](const Request&, const ResponseWriterPtr& writer) {
    writer->OnPeerGone([&] { gone = true; });
    writer->StartStream(200, Type("application/json"));
    kept = writer;
  });
  EXPECT_FALSE(gone);
  socket_.reset();
  EXPECT_TRUE(net_.RunUntil([&] { return gone; }));
  kept->Write(Bytes("{}\n"));  // harmless
}

TEST_F(WebSocketWriterTest, AnObjectThatFitsNoMessageEndsIt) {
  bool gone = false;
  ResponseWriterPtr kept;
  Open([&](const Request&, const ResponseWriterPtr& writer) {
    writer->OnPeerGone([&] {
      gone = true;
      kept = nullptr;  // as a watcher does
    });
    writer->StartStream(200, Type("application/json"));
    kept = writer;
    writer->Write(Bytes("{}\n" + std::string(kMaxMessageBytes + 1, 'x') + "\n{}\n"));
  });
  ASSERT_TRUE(net_.RunUntil([this] { return closed_ != 0; }));
  EXPECT_EQ(closed_, 1009);
  EXPECT_TRUE(gone);
  EXPECT_EQ(messages_.size(), 1U);
}

Request Asking(const std::vector<std::string>& protocols) {
  Request request{.method = "GET", .target = "/"};
  PrepareWebSocket(request, protocols);
  return request;
}

TEST(TakeTokenFromProtocols, BecomesTheHeader) {
  // "a?b>c~~" in base64url: its alphabet, and no padding.
  Request request = Asking({"base64url.bearer.authorization.k8s.io.YT9iPmN-fg", "binary.k8s.io"});
  TakeTokenFromProtocols(request);
  EXPECT_EQ(request.headers.Get("Authorization"), "Bearer a?b>c~~");
  EXPECT_EQ(request.headers.Get("Sec-WebSocket-Protocol"), "binary.k8s.io");
}

TEST(TakeTokenFromProtocols, NeedsAnotherProtocolBesideIt) {
  Request alone = Asking({"base64url.bearer.authorization.k8s.io.YWJj"});
  TakeTokenFromProtocols(alone);
  EXPECT_FALSE(alone.headers.Has("Authorization"));
  Request none = Asking({"binary.k8s.io"});
  TakeTokenFromProtocols(none);
  EXPECT_FALSE(none.headers.Has("Authorization"));
  Request broken = Asking({"base64url.bearer.authorization.k8s.io.%%", "binary.k8s.io"});
  TakeTokenFromProtocols(broken);
  EXPECT_FALSE(broken.headers.Has("Authorization"));
}

TEST(TakeTokenFromProtocols, NoTokenStaysAmongTheProtocols) {
  const std::string prefix = "base64url.bearer.authorization.k8s.io.";
  for (const std::vector<std::string>& protocols :
       {std::vector<std::string>{prefix + "YWJj"}, {prefix + "%%", "x"}, {"x", prefix + "YWJj"}}) {
    for (const bool has_header : {false, true}) {
      Request request = Asking(protocols);
      if (has_header) request.headers.Add("Authorization", "Bearer mine");
      TakeTokenFromProtocols(request);
      EXPECT_EQ(request.headers.Get("Sec-WebSocket-Protocol"), protocols.size() == 1 ? "" : "x");
    }
  }
}

TEST(TakeTokenFromProtocols, AHeaderGoesBefore) {
  Request request = Asking({"base64url.bearer.authorization.k8s.io.YWJj", "binary.k8s.io"});
  request.headers.Add("Authorization", "Bearer mine");
  TakeTokenFromProtocols(request);
  EXPECT_EQ(request.headers.Get("Authorization"), "Bearer mine");
}

TEST(IsSameOrigin, BrowsersSayWhichPageAsks) {
  const auto same = [](const char* origin, const char* host) {
    Request request;
    if (*origin != '\0') request.headers.Add("Origin", origin);
    request.headers.Add("Host", host);
    return IsSameOrigin(request);
  };
  EXPECT_TRUE(same("", "127.0.0.1:6443"));
  EXPECT_TRUE(same("https://127.0.0.1:6443", "127.0.0.1:6443"));
  EXPECT_TRUE(same("http://LocalHost:8088", "localhost:8088"));
  EXPECT_FALSE(same("https://evil.example", "127.0.0.1:6443"));
  EXPECT_FALSE(same("https://127.0.0.1:7000", "127.0.0.1:6443"));
  EXPECT_FALSE(same("null", "127.0.0.1:6443"));
}

}  // namespace
}  // namespace muster::net
