#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "apiserver/node_proxy.h"
#include "apiserver/pods/pod_location.h"
#include "net/splice.h"

namespace muster::apiserver {
namespace {

// A byte stream whose both ends the test holds.
struct FakeStream : net::ByteStream {
  struct State {
    Function<void(std::string_view)> on_data;
    Task on_close;
    Function<void()> on_drained;
    std::string written;
    size_t buffered = 0;
    bool paused = false;
    bool closed = false;
  };
  explicit FakeStream(std::shared_ptr<State> shared) : state(std::move(shared)) {}
  ~FakeStream() override {
    state->closed = true;
    state->on_data = nullptr;
    state->on_close = nullptr;
    state->on_drained = nullptr;
  }
  void OnData(Function<void(std::string_view)> on_data) override {
    state->on_data = std::move(on_data);
  }
  void OnClose(Task on_close) override { state->on_close = std::move(on_close); }
  void Write(std::string bytes) override { state->written += bytes; }
  void Close() override { state->closed = true; }
  size_t BufferedBytes() const override { return state->buffered; }
  void PauseReading(bool paused) override { state->paused = paused; }
  void OnDrained(Function<void()> on_drained) override {
    state->on_drained = std::move(on_drained);
  }
  std::shared_ptr<State> state;
};

class FakeNode : public NodeProxy {
 public:
  std::unique_ptr<NodeStream> Stream(const NodeEndpoint& node, net::Request request,
                                     NodeStreamCallbacks callbacks) override {
    endpoint = node;
    target = request.target;
    body = request.body;
    stream = std::move(callbacks);
    return std::make_unique<NodeStream>();
  }
  void Upgrade(const NodeEndpoint& node, net::Request request,
               Function<void(Result<NodeUpgrade>)> done) override {
    endpoint = node;
    target = request.target;
    protocol = request.headers.Get("Sec-WebSocket-Protocol");
    upgraded = std::move(done);
  }
  NodeEndpoint endpoint;
  std::string target, body, protocol;
  NodeStreamCallbacks stream;
  Function<void(Result<NodeUpgrade>)> upgraded;
};

constexpr char kLog[] = "/api/v1/namespaces/default/pods/p/log";

class PodProxyTest : public testing::Test {
 protected:
  PodProxyTest() : test_(Options()) {
    test_.Send("POST", "/api/v1/nodes",
               R"({"metadata":{"name":"n1"},"status":{"addresses":[{"type":"InternalIP",
        "address":"10.1.1.1"}],
                   "daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}})");
    test_.Send("POST", "/api/v1/namespaces/default/pods",
               R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c",
        "image":"i"}]}})");
  }
  ServerOptions Options() {
    ServerOptions options;
    options.node_proxy = &node_;
    return options;
  }
  void SetStatus(const std::string& container_status) {
    net::Headers headers;
    headers.Add("Content-Type", "application/merge-patch+json");
    const auto writer =
        test_.Send("PATCH", "/api/v1/namespaces/default/pods/p/status",
                   "{\"status\":{\"containerStatuses\":[" + container_status + "]}}", headers);
    ASSERT_EQ(writer->status, 200) << writer->body;
  }
  void SetRunning() {
    SetStatus(R"({"name":"c","image":"i","imageID":"","ready":true,"restartCount":0,
                  "state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}})");
  }
  // What a client gets of the log that the node answers for in this way.
  auto LogOf(int status, std::string_view answer, const std::string& query = "") {
    auto writer = test_.Send("GET", kLog + query);
    node_.stream.on_head(status, {});
    node_.stream.on_data(answer);
    node_.stream.on_end(Status::Ok());
    return writer;
  }
  static std::string MessageOf(const FakeWriter& writer) {
    return TestServer::Json(writer)["message"].Str();
  }

  FakeNode node_;
  TestServer test_;
};

TEST_F(PodProxyTest, PassesRequestsOnToTheNode) {
  const auto writer =
      test_.Send("POST", "/api/v1/nodes/n1/proxy/images/pull?a=b%20c", R"({"image":"nginx"})");
  EXPECT_EQ(node_.endpoint.node, "n1");
  EXPECT_EQ(node_.target, "/images/pull?a=b%20c");
  EXPECT_EQ(node_.body, R"({"image":"nginx"})");
  net::Headers headers;
  headers.Set("Content-Type", "text/plain");
  node_.stream.on_head(409, headers);
  node_.stream.on_data("it is ");
  node_.stream.on_data("used");
  node_.stream.on_end(Status::Ok());
  EXPECT_EQ(writer->status, 409);
  EXPECT_EQ(writer->body, "it is used");
  test_.loop.RunReady();

  EXPECT_EQ(test_.Send("GET", "/api/v1/nodes/n2/proxy/pods")->status, 404);
  const auto unreachable = test_.Send("GET", "/api/v1/nodes/n1/proxy");
  EXPECT_EQ(node_.target, "/");
  node_.stream.on_end(Error(Reason::kServiceUnavailable, "no route"));
  EXPECT_NE(unreachable->body.find("cannot reach node \\\"n1\\\": no route"), std::string::npos)
      << unreachable->body;
  test_.loop.RunReady();
}

TEST_F(PodProxyTest, ANodeWithoutAKubeletSaysThatItMayBeSimulated) {
  test_.Send("POST", "/api/v1/nodes", R"({"metadata":{"name":"said"}})");
  test_.Send("POST", "/api/v1/namespaces/default/pods",
             R"({"metadata":{"name":"q"},"spec":{"nodeName":"said","containers":[{"name":"c",
        "image":"i"}]}})");
  const auto writer = test_.Send("GET", "/api/v1/namespaces/default/pods/q/log");
  EXPECT_EQ(writer->status, 503);
  EXPECT_NE(writer->body.find("need one; on a simulated node pods are only said to run"),
            std::string::npos)
      << writer->body;
}

TEST_F(PodProxyTest, ANodesAnswerHasALimit) {
  const auto writer = test_.Send("GET", "/api/v1/nodes/n1/proxy/pods");
  node_.stream.on_head(200, {});
  node_.stream.on_data(std::string(kMaxNodeAnswerBytes, ' '));
  EXPECT_EQ(writer->status, 0);
  node_.stream.on_data("x");
  EXPECT_EQ(writer->status, 413);
  test_.loop.RunReady();
}

TEST_F(PodProxyTest, StreamsTheLogOfTheOnlyContainer) {
  const auto writer = test_.Send("GET", std::string(kLog) + "?follow=true&tailLines=5&pretty=true");
  EXPECT_EQ(node_.endpoint.address, "10.1.1.1");
  EXPECT_EQ(node_.endpoint.port, 10250);
  EXPECT_EQ(node_.target, "/containerLogs/default/p/c?follow=true&tailLines=5");
  node_.stream.on_head(200, {});
  EXPECT_TRUE(writer->streaming);
  EXPECT_EQ(writer->headers.Get("Content-Type"), "text/plain");
  node_.stream.on_data("one\n");
  node_.stream.on_data("two\n");
  EXPECT_EQ(writer->body, "one\ntwo\n");
  node_.stream.on_end(Status::Ok());
  EXPECT_TRUE(writer->ended);
  test_.loop.RunReady();
}

TEST_F(PodProxyTest, SaysWhyAContainerHasNoLogYet) {
  SetStatus(R"({"name":"c","image":"i","imageID":"","ready":false,"restartCount":0,
                "state":{"waiting":{"reason":"ContainerCreating"}}})");
  const auto writer = LogOf(404, "no such file");
  EXPECT_EQ(writer->status, 400);
  EXPECT_EQ(MessageOf(*writer),
            "container \"c\" in pod \"p\" is waiting to start: ContainerCreating");
}

TEST_F(PodProxyTest, PassesTheNodesOwnErrorOn) {
  SetRunning();
  const auto writer = LogOf(500, "disk on fire\n");
  EXPECT_EQ(writer->status, 500);
  EXPECT_EQ(MessageOf(*writer), "disk on fire");
}

TEST_F(PodProxyTest, ANodeThatHasJustStartedIsAskedAgain) {
  SetRunning();
  const auto writer = LogOf(503, "this node has just started\n");
  EXPECT_EQ(writer->status, 503);
  EXPECT_EQ(writer->headers.Get("Retry-After"), "1");
  EXPECT_EQ(MessageOf(*writer), "this node has just started");
}

TEST_F(PodProxyTest, NamesTheNodeThatCannotBeReached) {
  const auto writer = test_.Send("GET", kLog);
  node_.stream.on_end(Status(Reason::kServiceUnavailable, "connection refused"));
  EXPECT_EQ(writer->status, 503);
  EXPECT_EQ(MessageOf(*writer), "cannot reach node \"n1\": connection refused");
}

TEST_F(PodProxyTest, PreviousWithoutAnEarlierRun) {
  SetRunning();
  const auto writer = LogOf(404, "", "?previous=true");
  EXPECT_EQ(MessageOf(*writer), "previous terminated container \"c\" in pod \"p\" not found");
}

TEST_F(PodProxyTest, JoinsAnExecWithTheNode) {
  net::Headers headers;
  headers.Add("Upgrade", "websocket");
  headers.Add("Sec-WebSocket-Protocol", "v5.channel.k8s.io");
  auto writer = std::make_shared<FakeWriter>();
  auto client = std::make_shared<FakeStream::State>();
  writer->upgrade = std::make_unique<FakeStream>(client);
  test_.Begin(
      "GET", "/api/v1/namespaces/default/pods/p/exec?command=ls&command=-l&container=c&stdout=true",
      "", headers, writer);
  EXPECT_EQ(node_.target, "/exec/default/p/c?command=ls&command=-l&stdout=true");
  EXPECT_EQ(node_.protocol, "v5.channel.k8s.io");

  auto node = std::make_shared<FakeStream::State>();
  NodeUpgrade upgrade;
  upgrade.response.status = 101;
  upgrade.response.headers.Add("Sec-WebSocket-Protocol", "v5.channel.k8s.io");
  upgrade.stream = std::make_unique<FakeStream>(node);
  node_.upgraded(std::move(upgrade));
  EXPECT_EQ(writer->status, 101);
  EXPECT_EQ(writer->headers.Get("Sec-WebSocket-Protocol"), "v5.channel.k8s.io");
  client->on_data("in");
  node->on_data("out");
  EXPECT_EQ(node->written, "in");
  EXPECT_EQ(client->written, "out");
  node->on_close();
  test_.loop.RunReady();
  EXPECT_TRUE(client->closed);
  EXPECT_TRUE(node->closed);
}

TEST_F(PodProxyTest, AnExecIsReadNoFasterThanItsClientTakesIt) {
  net::Headers headers;
  headers.Add("Upgrade", "websocket");
  auto writer = std::make_shared<FakeWriter>();
  auto client = std::make_shared<FakeStream::State>();
  writer->upgrade = std::make_unique<FakeStream>(client);
  test_.Begin("GET", "/api/v1/namespaces/default/pods/p/exec?command=ls", "", headers, writer);
  auto node = std::make_shared<FakeStream::State>();
  NodeUpgrade upgrade;
  upgrade.response.status = 101;
  upgrade.stream = std::make_unique<FakeStream>(node);
  node_.upgraded(std::move(upgrade));
  client->buffered = net::kMaxSpliceBacklogBytes;
  node->on_data("at the limit");
  EXPECT_FALSE(node->paused);
  client->buffered = net::kMaxSpliceBacklogBytes + 1;
  node->on_data("beyond it");
  EXPECT_TRUE(node->paused);
  EXPECT_FALSE(client->paused) << "the other direction goes on";
  client->on_drained();
  EXPECT_FALSE(node->paused);
  EXPECT_EQ(client->written, "at the limitbeyond it");
  node->on_close();
  test_.loop.RunReady();
  EXPECT_TRUE(client->closed);
}

TEST_F(PodProxyTest, ARefusedExecIsAnOrdinaryError) {
  net::Headers headers;
  headers.Add("Upgrade", "websocket");
  const auto writer = test_.Send("POST", "/api/v1/namespaces/default/pods/p/exec?command=ls", "",
                                 std::move(headers));
  NodeUpgrade upgrade;
  upgrade.response.status = 404;
  upgrade.response.body = "container not found (\"c\")";
  node_.upgraded(std::move(upgrade));
  EXPECT_EQ(writer->status, 404);
  EXPECT_EQ(MessageOf(*writer), "container not found (\"c\")");
}

}  // namespace
}  // namespace muster::apiserver
