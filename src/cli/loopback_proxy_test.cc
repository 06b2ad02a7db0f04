#include "cli/loopback_proxy.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "loop/asio_loop.h"
#include "loop/run_until_test_support.h"
#include "net/client.h"
#include "net/server.h"
#include "net/websocket.h"
#include "net/websocket_writer.h"

namespace muster::cli {
namespace {

class LambdaServer final : public net::Handler {
 public:
  void Handle(net::Request request, net::ResponseWriterPtr writer) override {
    last = request;
    ++requests;
    answer(std::move(request), std::move(writer));
  }
  std::function<void(net::Request, net::ResponseWriterPtr)> answer;
  net::Request last;
  int requests = 0;
};

// A browser, the proxy, and a server behind it.
class LoopbackProxyTest : public testing::Test {
 protected:
  void SetUp() override {
    behind_ = *net::HttpServer::Start(loop_, io_, api_, {});
    client::ConnectionConfig config;
    config.endpoint = {false, "127.0.0.1", behind_->port(), ""};
    transport_ = *client::HttpsTransport::Make(loop_, io_, config);
    proxy_ = std::make_unique<LoopbackProxy>(loop_, *transport_);
    front_ = *net::HttpServer::Start(loop_, io_, *proxy_, {});
    browser_ = *net::HttpClient::Make(loop_, io_, {});
  }
  void TearDown() override {
    socket_.reset();
    browser_.reset();
    front_.reset();
  }

  bool RunUntil(const std::function<bool()>& done) { return muster::RunUntil(loop_, done); }

  net::Endpoint Front() const { return {false, "127.0.0.1", front_->port(), ""}; }
  static net::Request Get(std::string target) {
    return {.method = "GET", .target = std::move(target)};
  }

  net::Response Ask(net::Request request) {
    std::optional<Result<net::Response>> answer;
    browser_->Send(Front(), std::move(request), seconds(10),
                   [&](Result<net::Response> got) { answer = std::move(got); });
    EXPECT_TRUE(RunUntil([&] { return answer.has_value(); }));
    EXPECT_TRUE(answer->has_value()) << answer->error().ToString();
    return answer->has_value() ? **std::move(answer) : net::Response();
  }

  AsioLoop loop_;
  net::IoThreads io_{1};
  LambdaServer api_;
  std::unique_ptr<net::HttpServer> behind_, front_;
  std::unique_ptr<client::HttpsTransport> transport_;
  std::unique_ptr<LoopbackProxy> proxy_;
  std::unique_ptr<net::HttpClient> browser_;
  std::unique_ptr<net::WebSocket> socket_;
};

TEST_F(LoopbackProxyTest, PassesOnWhatThePageAsksWithItsOwnToken) {
  api_.answer = [](const net::Request&, const net::ResponseWriterPtr& writer) {
    net::Response response{.status = 403, .body = "{\"message\":\"no\"}"};
    response.headers.Add("Content-Type", "application/json");
    response.headers.Add("Set-Cookie", "a=b");
    writer->Send(std::move(response));
  };
  net::Request request = Get("/api/v1/pods?limit=5");
  request.headers.Add("Authorization", "Bearer token");
  request.headers.Add("Accept", "application/json");
  request.headers.Add("Cookie", "a=b");
  request.headers.Add("Impersonate-User", "admin");
  const net::Response answer = Ask(request);
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.body, "{\"message\":\"no\"}");
  EXPECT_EQ(answer.headers.Get("Content-Type"), "application/json");
  EXPECT_FALSE(answer.headers.Has("Set-Cookie"));
  EXPECT_EQ(api_.last.target, "/api/v1/pods?limit=5");
  EXPECT_EQ(api_.last.headers.Get("Authorization"), "Bearer token");
  EXPECT_FALSE(api_.last.headers.Has("Cookie"));
  EXPECT_FALSE(api_.last.headers.Has("Impersonate-User"));
}

TEST_F(LoopbackProxyTest, OnlyLooks) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    net::Request request = Get("/api/v1/pods");
    request.method = method;
    EXPECT_EQ(Ask(request).status, 405) << method;
  }
  EXPECT_EQ(api_.requests, 0);
}

TEST_F(LoopbackProxyTest, ServesThePageItself) {
  const net::Response page = Ask(Get("/dashboard/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(page.headers.Has("Content-Security-Policy"));
  const net::Response root = Ask(Get("/"));
  EXPECT_EQ(root.status, 302);
  EXPECT_EQ(root.headers.Get("Location"), "/dashboard/");
  EXPECT_EQ(api_.requests, 0);
}

TEST_F(LoopbackProxyTest, RefusesPagesFromElsewhere) {
  net::Request foreign = Get("/api/v1/pods");
  foreign.headers.Add("Origin", "https://evil.example");
  EXPECT_EQ(Ask(foreign).status, 403);
  net::Request renamed = Get("/api/v1/pods");
  renamed.headers.Add("Host", "evil.example:8088");
  EXPECT_EQ(Ask(renamed).status, 403);
  for (const char* host : {"127.0.0.1.evil.example:8088", "127.0.0.1:8088@evil.example",
                           "localhost:evil.example", "localhost.", "[::1", ""}) {
    net::Request other = Get("/api/v1/pods");
    other.headers.Set("Host", host);
    EXPECT_EQ(Ask(other).status, 403) << host;
  }
  EXPECT_EQ(api_.requests, 0);
}

TEST_F(LoopbackProxyTest, SaysThatTheServerIsGone) {
  behind_.reset();
  const net::Response answer = Ask(Get("/api/v1/pods"));
  EXPECT_EQ(answer.status, 502);
  EXPECT_NE(answer.body.find("cannot reach the cluster"), std::string::npos);
}

TEST_F(LoopbackProxyTest, JoinsWebSockets) {
  net::ResponseWriterPtr stream;
  api_.answer = [&](net::Request request, net::ResponseWriterPtr writer) {
    net::TakeTokenFromProtocols(request);
    EXPECT_EQ(request.headers.Get("Authorization"), "Bearer abc");
    EXPECT_EQ(request.headers.Get("Origin"), fmt::format("http://127.0.0.1:{}", behind_->port()));
    EXPECT_TRUE(net::IsSameOrigin(request));
    stream = *net::MakeWebSocketWriter(request, std::move(writer));
    net::Headers json;
    json.Add("Content-Type", "application/json");
    stream->StartStream(200, std::move(json));
    stream->Write(std::make_shared<const std::string>("{\"type\":\"ADDED\"}\n"));
  };
  net::Request request = Get("/api/v1/pods?watch=1");
  net::PrepareWebSocket(request, {"base64url.bearer.authorization.k8s.io.YWJj", "binary.k8s.io"});
  request.headers.Add("Origin", fmt::format("http://127.0.0.1:{}", front_->port()));
  std::vector<std::string> messages;
  uint16_t closed = 0;
  const auto handle = browser_->Upgrade(Front(), request, [&](Result<net::UpgradeAnswer> answer) {
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(net::CheckWebSocketAnswer(request, answer->response).value_or("-"), "binary.k8s.io");
    socket_ =
        std::make_unique<net::WebSocket>(net::WebSocket::Role::kClient, std::move(answer->stream));
    socket_->OnMessage([&](std::string_view message, bool) { messages.emplace_back(message); });
    socket_->OnClose([&](uint16_t code, std::string_view) { closed = code; });
  });
  ASSERT_TRUE(RunUntil([&] { return messages.size() == 1; }));
  EXPECT_EQ(messages[0], "{\"type\":\"ADDED\"}");
  stream->End();
  EXPECT_TRUE(RunUntil([&] { return closed == 1000; }));
}

}  // namespace
}  // namespace muster::cli
