// What the API server does for the page of a browser: its files, and watches as WebSockets.

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "net/websocket.h"

namespace muster::apiserver {
namespace {

// Keeps what the server writes into an upgraded connection.
class RecordingStream final : public net::ByteStream {
 public:
  explicit RecordingStream(std::string& written) : written_(written) {}
  void OnData(Function<void(std::string_view)>) override {}
  void OnClose(Task) override {}
  void Write(std::string bytes) override { written_ += bytes; }
  void Close() override {}

 private:
  std::string& written_;
};

class DashboardTest : public testing::Test {
 protected:
  using WriterPtr = TestServer::WriterPtr;

  // As somebody without a certificate.
  WriterPtr Ask(std::string method, std::string target, net::Headers headers = {}) {
    auto writer = std::make_shared<FakeWriter>();
    writer->upgrade = std::make_unique<RecordingStream>(written_);
    net::Request request{.method = std::move(method), .target = std::move(target)};
    request.headers = std::move(headers);
    request.peer.address = "127.0.0.1:1";
    test_.server->Handle(std::move(request), writer);
    test_.loop.RunReady();
    return writer;
  }

  static net::Headers Handshake(const std::string& origin) {
    net::Request request;
    net::PrepareWebSocket(request, {"binary.k8s.io"});
    request.headers.Add("Host", "127.0.0.1:6443");
    if (!origin.empty()) request.headers.Add("Origin", origin);
    return request.headers;
  }

  std::vector<std::string> Messages() const {
    net::WebSocketDecoder decoder(false);
    std::vector<net::WebSocketFrame> frames;
    EXPECT_TRUE(decoder.Feed(written_, frames).ok());
    std::vector<std::string> messages;
    for (const net::WebSocketFrame& frame : frames) messages.push_back(frame.payload);
    return messages;
  }

  // The token of a service account that may look everywhere.
  net::Headers Viewer() {
    constexpr const char* kJson = "application/json";
    net::Headers json;
    json.Add("Content-Type", kJson);
    EXPECT_EQ(test_
                  .Send("POST", "/api/v1/namespaces/default/serviceaccounts",
                        R"({"metadata":{"name":"viewer"}})", json)
                  ->status,
              201);
    EXPECT_EQ(test_
                  .Send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                        R"({"metadata":{"name":"viewer"},"roleRef":{"kind":"ClusterRole",
                         "apiGroup":"rbac.authorization.k8s.io",
                         "name":"system:aggregate-to-view"},
                         "subjects":[{"kind":"ServiceAccount","name":"viewer",
                         "namespace":"default"}]})",
                        json)
                  ->status,
              201);
    const WriterPtr made = test_.Send(
        "POST", "/api/v1/namespaces/default/serviceaccounts/viewer/token", "{\"spec\":{}}", json);
    EXPECT_EQ(made->status, 201) << made->body;
    net::Headers headers = Handshake("");
    headers.Add("Authorization", "Bearer " + TestServer::Json(*made)["status"]["token"].Str());
    return headers;
  }

  TestServer test_;
  std::string written_;
};

TEST_F(DashboardTest, ItsFilesAreForEverybody) {
  const WriterPtr page = Ask("GET", "/dashboard/");
  EXPECT_EQ(page->status, 200);
  EXPECT_NE(page->headers.Get("Content-Security-Policy").find("frame-ancestors 'none'"),
            std::string_view::npos);
  EXPECT_EQ(Ask("HEAD", "/dashboard/")->status, 200);
  EXPECT_EQ(Ask("GET", "/dashboard")->status, 308);
  EXPECT_EQ(Ask("GET", "/dashboard/nothing")->status, 404);
  EXPECT_EQ(Ask("POST", "/dashboard/")->status, 403) << "only looking is";
  EXPECT_EQ(Ask("GET", "/api/v1/nodes")->status, 403);
}

TEST_F(DashboardTest, AWatchComesAsMessages) {
  const WriterPtr watch =
      Ask("GET", "/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Ddefault", Viewer());
  EXPECT_EQ(watch->status, 101);
  EXPECT_EQ(watch->headers.Get("Sec-WebSocket-Protocol"), "binary.k8s.io");
  const std::vector<std::string> messages = Messages();
  ASSERT_EQ(messages.size(), 1U);
  const json::Value event = *json::Parse(messages[0]);
  EXPECT_EQ(event["type"].AsString(), "ADDED");
  EXPECT_EQ(event["object"]["metadata"]["name"].AsString(), "default");
}

TEST_F(DashboardTest, WhatCannotBeWatchedIsAnOrdinaryError) {
  EXPECT_EQ(Ask("GET", "/api/v1/pods?watch=1", Handshake(""))->status, 403);
  const net::Headers viewer = Viewer();
  net::Headers malformed = viewer;
  malformed.Set("Sec-WebSocket-Version", "8");
  EXPECT_EQ(Ask("GET", "/api/v1/pods?watch=1", malformed)->status, 400);
  EXPECT_EQ(Ask("GET", "/api/v1/pods?watch=1&resourceVersion=x", viewer)->status, 422);
}

// Its browser would open it with the certificate that its user has.
TEST_F(DashboardTest, APageFromElsewhereGetsNoWebSocket) {
  const auto as_admin = [&](const std::string& origin) {
    auto writer = std::make_shared<FakeWriter>();
    writer->upgrade = std::make_unique<RecordingStream>(written_);
    test_.Begin("GET", "/api/v1/pods?watch=1", "", Handshake(origin), writer);
    test_.loop.RunReady();
    return writer->status;
  };
  EXPECT_EQ(as_admin("https://evil.example"), 403);
  EXPECT_EQ(as_admin("https://127.0.0.1:6443"), 101);
}

}  // namespace
}  // namespace muster::apiserver
