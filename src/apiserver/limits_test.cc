// What happens at the limits that the other tests do not reach.

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "apiserver/call.h"
#include "apiserver/object_codec.h"
#include "apiserver/object_writer.h"
#include "apiserver/pods/pod_location.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

CallPtr MakeCall(const std::shared_ptr<FakeWriter>& writer) {
  return std::make_shared<Call>(net::Request(), RequestInfo(), writer, nullptr);
}

size_t Warnings(const FakeWriter& writer) {
  size_t count = 0;
  for (const auto& [name, value] : writer.headers.list()) count += name == "Warning";
  return count;
}

TEST(Warnings, AreSentOnceAndBounded) {
  auto writer = std::make_shared<FakeWriter>();
  CallPtr call = MakeCall(writer);
  call->Warn("same");
  call->Warn("same");
  call->Warn("with \"quotes\" and\na line feed");
  call->Reply(200, std::string("{}"));
  EXPECT_EQ(Warnings(*writer), 2u);
  EXPECT_EQ(writer->headers.list().back().second, "299 - \"with \\\"quotes\\\" and a line feed\"");

  writer = std::make_shared<FakeWriter>();
  call = MakeCall(writer);
  for (size_t i = 0; i < kMaxWarnings + 10; ++i) call->Warn(std::to_string(i));
  call->Reply(200, std::string("{}"));
  EXPECT_EQ(Warnings(*writer), kMaxWarnings);

  writer = std::make_shared<FakeWriter>();
  call = MakeCall(writer);
  for (char c = 'a'; c <= 'z'; ++c) call->Warn(std::string(2 * kMaxWarningBytes, c));
  call->Reply(200, std::string("{}"));
  EXPECT_EQ(Warnings(*writer), kMaxWarningsBytes / kMaxWarningBytes);
}

TEST(GenerateName, CutsTheBeginningOfLongNames) {
  TestServer test;
  const std::string generate(100, 'a');
  const auto writer = test.Send("POST", "/api/v1/namespaces/default/configmaps",
                                "{\"metadata\":{\"generateName\":\"" + generate + "\"}}");
  ASSERT_EQ(writer->status, 201) << writer->body;
  const std::string name = TestServer::Json(*writer)["metadata"]["name"].Str();
  EXPECT_EQ(name.size(), kMaxGeneratedPrefix + kNameSuffixLetters);
}

TEST(Body, OfYamlIsSmallerThanOfJson) {
  TestServer test;
  net::Headers yaml;
  yaml.Add("Content-Type", "application/yaml");
  const std::string start = "metadata: {name: big}\ndata:\n  a: ";
  const auto create = [&](size_t size) {
    return test.Send("POST", "/api/v1/namespaces/default/configmaps",
                     start + std::string(size - start.size(), 'x'), yaml);
  };
  const auto refused = create(kMaxYamlBodyBytes + 1);
  EXPECT_EQ(refused->status, 413);
  EXPECT_NE(refused->body.find("send it as JSON"), std::string::npos);
  EXPECT_EQ(create(kMaxYamlBodyBytes)->status, 201);
}

TEST(Body, OfARequestTargetThatIsNoPath) {
  TestServer test;
  EXPECT_EQ(test.Send("GET", "/api/v1/pods?labelSelector=%zz")->status, 400);
  EXPECT_EQ(test.Send("GET", "/api/v1/namespaces/default/pods/%2e%2e")->status, 400);
}

// A node that sends what the test wants.
class ChattyNode : public NodeProxy {
 public:
  std::unique_ptr<NodeStream> Stream(const NodeEndpoint&, net::Request,
                                     NodeStreamCallbacks callbacks) override {
    stream = std::move(callbacks);
    return std::make_unique<NodeStream>();
  }
  void Upgrade(const NodeEndpoint&, net::Request, Function<void(Result<NodeUpgrade>)>) override {}
  NodeStreamCallbacks stream;
};

class LogLimits : public testing::Test {
 protected:
  LogLimits() : test_(Options()) {
    test_.Send("POST", "/api/v1/nodes",
               R"({"metadata":{"name":"n1"},"status":{
                   "addresses":[{"type":"InternalIP","address":"10.1.1.1"}],
                   "daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}})");
    test_.Send("POST", "/api/v1/namespaces/default/pods",
               R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1",
                   "containers":[{"name":"c","image":"i"}]}})");
    net::Headers headers;
    headers.Add("Content-Type", "application/merge-patch+json");
    test_.Send("PATCH", "/api/v1/namespaces/default/pods/p/status",
               R"({"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":true,
                   "restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}})",
               std::move(headers));
    log_ = test_.Send("GET", "/api/v1/namespaces/default/pods/p/log");
  }
  ServerOptions Options() {
    ServerOptions options;
    options.node_proxy = &node_;
    return options;
  }

  ChattyNode node_;
  TestServer test_;
  TestServer::WriterPtr log_;
};

// A writer that is let go before its stream was ended cuts the connection: the client knows that
// there was more.
TEST_F(LogLimits, AReaderThatFallsBehindIsCutOff) {
  node_.stream.on_head(200, {});
  node_.stream.on_data("one\n");
  test_.loop.RunReady();
  EXPECT_GT(log_.use_count(), 1);
  log_->buffered_bytes = kMaxLogBacklogBytes + 1;
  node_.stream.on_data("two\n");
  node_.stream.on_data("three\n");
  test_.loop.RunReady();
  EXPECT_EQ(log_.use_count(), 1);
  EXPECT_FALSE(log_->ended);
}

TEST_F(LogLimits, ANodeThatIsLostInTheMiddleDoesNotLookLikeTheEnd) {
  node_.stream.on_head(200, {});
  node_.stream.on_data("one\n");
  node_.stream.on_end(Error(Reason::kServiceUnavailable, "reset"));
  test_.loop.RunReady();
  EXPECT_EQ(log_.use_count(), 1);
  EXPECT_FALSE(log_->ended);
}

TEST_F(LogLimits, ALongErrorOfTheNodeIsCut) {
  node_.stream.on_head(500, {});
  for (int i = 0; i < 3; ++i) node_.stream.on_data(std::string(kMaxNodeErrorBytes, 'x'));
  node_.stream.on_end(Status::Ok());
  EXPECT_EQ(TestServer::Json(*log_)["message"].AsString().size(), kMaxNodeErrorBytes);
}

}  // namespace
}  // namespace muster::apiserver
