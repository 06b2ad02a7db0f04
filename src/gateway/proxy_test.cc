#include "gateway/proxy.h"

#include <gtest/gtest.h>

#include "loop/sim_loop.h"

namespace muster::gateway {
namespace {

// Keeps the one answer.
class Writer final : public net::ResponseWriter {
 public:
  void Send(net::Response response) override {
    EXPECT_EQ(status, 0);
    status = response.status;
    body = std::move(response.body);
  }
  void StartStream(int, net::Headers) override {}
  void Write(std::shared_ptr<const std::string>) override {}
  void End() override {}
  size_t BufferedBytes() const override { return 0; }
  std::unique_ptr<net::ByteStream> Upgrade(net::Headers) override { return nullptr; }
  void OnPeerGone(Task task) override { on_gone = std::move(task); }

  int status = 0;
  std::string body;
  Task on_gone;
};

struct Sent {
  std::string host;
  net::Request request;
  Function<void(Result<net::Response>)> done;
};

class ProxyTest : public testing::Test {
 protected:
  ProxyTest()
      : proxy_(
            loop_,
            [this](const net::Endpoint& endpoint, net::Request request, Duration,
                   Function<void(Result<net::Response>)> done) {
              sent_.push_back({endpoint.host, std::move(request), std::move(done)});
            },
            [this](const client::ObjectKey& key) { woken_.push_back(key.ToString()); }, Rng(1)) {
    for (PodGroup* group : {&stable_, &canary_}) {
      group->counters = std::make_shared<TrafficCounters>();
    }
    stable_.deployment = "iris-predictor";
    stable_.weight = 100;
    canary_.deployment = "iris-predictor-canary";
  }

  void Publish() {
    Route route;
    route.key = {"ml", "iris"};
    route.timeout = seconds(30);
    route.most_at_once = most_at_once_;
    route.why_not = "pod x: no model";
    if (canary_.weight > 0 || !canary_.ready.empty()) route.groups.push_back(canary_);
    route.groups.push_back(stable_);
    auto table = std::make_shared<RouteTable>();
    table->Add(std::move(route), "");
    proxy_.SetTable(table);
  }

  std::shared_ptr<Writer> Ask(std::string method = "POST", std::string host = "iris.ml") {
    net::Request request;
    request.method = std::move(method);
    request.target = "/v1/models/iris:predict";
    request.headers.Add("Host", host);
    request.headers.Add("Keep-Alive", "timeout=5");
    request.peer.address = "10.42.0.9:1234";
    auto writer = std::make_shared<Writer>();
    proxy_.Handle(std::move(request), writer);
    return writer;
  }

  void Answer(size_t index, int status = 200) {
    net::Response response;
    response.status = status;
    response.body = sent_[index].host;
    auto done = std::move(sent_[index].done);
    done(std::move(response));
  }
  void Break(size_t index, std::string_view why) {
    auto done = std::move(sent_[index].done);
    done(Error(Reason::kServiceUnavailable, "http://x: {}", why));
  }

  SimLoop loop_;
  std::vector<Sent> sent_;
  std::vector<std::string> woken_;
  Proxy proxy_;
  PodGroup stable_, canary_;
  int64_t most_at_once_ = 0;
};

TEST_F(ProxyTest, HandsOnARequestAndItsAnswer) {
  stable_.ready = {{"p1", 80}};
  Publish();
  const auto writer = Ask();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].request.target, "/v1/models/iris:predict");
  EXPECT_EQ(sent_[0].request.headers.Get("Host"), "iris.ml");
  EXPECT_EQ(sent_[0].request.headers.Get("X-Forwarded-For"), "10.42.0.9");
  EXPECT_FALSE(sent_[0].request.headers.Has("Keep-Alive"));
  EXPECT_EQ(stable_.counters->in_flight, 1);
  Answer(0, 201);
  EXPECT_EQ(writer->status, 201);
  EXPECT_EQ(stable_.counters->in_flight, 0);
  EXPECT_EQ(Ask("POST", "other.ml")->status, 404);
}

TEST_F(ProxyTest, WeightsAreExactAndOnlyForWhoIsReady) {
  stable_.ready = {{"old", 80}};
  stable_.weight = 90;
  canary_.weight = 10;
  Publish();
  const auto ask_hundred = [&] {
    sent_.clear();
    for (int i = 0; i < 100; ++i) {
      const auto writer = Ask();
      if (sent_.size() == static_cast<size_t>(i) + 1) Answer(sent_.size() - 1);
      EXPECT_EQ(writer->status, 200);
    }
    return std::ranges::count(sent_, "new", &Sent::host);
  };
  EXPECT_EQ(ask_hundred(), 0);
  canary_.ready = {{"new", 80}};
  Publish();
  EXPECT_EQ(ask_hundred(), 10);
  canary_.weight = 0;
  stable_.weight = 100;
  Publish();
  EXPECT_EQ(ask_hundred(), 0);
}

TEST_F(ProxyTest, TakesThePodThatHasLeastToDo) {
  stable_.ready = {{"p1", 80}, {"p2", 80}};
  Publish();
  Ask(), Ask(), Ask();
  EXPECT_EQ(sent_[0].host, "p1");
  EXPECT_EQ(sent_[1].host, "p2");
  Answer(1);
  Ask();
  EXPECT_EQ(sent_[3].host, "p2");
}

TEST_F(ProxyTest, HoldsTheFirstRequestOfWhoSleepsUntilAPodIsReady) {
  stable_.asleep = true;
  Publish();
  const auto first = Ask(), second = Ask();
  EXPECT_EQ(sent_.size(), 0u);
  EXPECT_EQ(woken_.front(), "ml/iris");
  EXPECT_EQ(stable_.counters->held, 2);
  stable_.asleep = false;
  Publish();
  EXPECT_EQ(sent_.size(), 0u);
  stable_.ready = {{"p1", 80}};
  Publish();
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(stable_.counters->held, 0);
  EXPECT_EQ(stable_.counters->requests, 2u);
  Answer(0), Answer(1);
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(second->status, 200);
}

TEST_F(ProxyTest, WhoWaitsTooLongIsToldWhy) {
  Publish();
  const auto writer = Ask();
  loop_.RunFor(seconds(29));
  EXPECT_EQ(writer->status, 0);
  loop_.RunFor(seconds(2));
  EXPECT_EQ(writer->status, 504);
  EXPECT_EQ(
      writer->body,
      "{\"error\":\"no pod of InferenceService ml/iris was ready to answer within 30 s: pod x: "
      "no model\"}");
  EXPECT_EQ(stable_.counters->held, 0);
  EXPECT_EQ(stable_.counters->failures, 1u);
}

TEST_F(ProxyTest, OnlySoManyMayWait) {
  Publish();
  std::vector<std::shared_ptr<Writer>> writers;
  for (size_t i = 0; i <= kMaxHeldRequests; ++i) writers.push_back(Ask());
  EXPECT_EQ(writers[kMaxHeldRequests - 1]->status, 0);
  EXPECT_EQ(writers[kMaxHeldRequests]->status, 503);
}

TEST_F(ProxyTest, WhoIsGoneDoesNotWait) {
  Publish();
  const auto writer = Ask();
  writer->on_gone();
  EXPECT_EQ(stable_.counters->held, 0);
  stable_.ready = {{"p1", 80}};
  Publish();
  EXPECT_EQ(sent_.size(), 0u);
}

TEST_F(ProxyTest, APodThatDidNotTakeTheConnectionIsPassedOver) {
  stable_.ready = {{"p1", 80}, {"p2", 80}};
  Publish();
  const auto writer = Ask();
  Break(0, "Connection refused");
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[1].host, "p2");
  // Nobody takes it: again in a moment, as long as there is time.
  Break(1, "Connection refused");
  EXPECT_EQ(sent_.size(), 2u);
  loop_.RunFor(kRetryPause);
  ASSERT_EQ(sent_.size(), 3u);
  Answer(2);
  EXPECT_EQ(writer->status, 200);
  EXPECT_EQ(stable_.counters->requests, 1u);
}

TEST_F(ProxyTest, WhatAPodMayHaveDoneIsNotDoneAgain) {
  stable_.ready = {{"p1", 80}, {"p2", 80}};
  Publish();
  const auto writer = Ask();
  Break(0, "the server closed the connection");
  EXPECT_EQ(sent_.size(), 1u);
  EXPECT_EQ(writer->status, 502);
  const auto reader = Ask("GET");
  Break(1, "the server closed the connection");
  ASSERT_EQ(sent_.size(), 3u);
  Answer(2);
  EXPECT_EQ(reader->status, 200);
}

TEST_F(ProxyTest, ContainerConcurrencyHoldsWhatIsTooMuch) {
  most_at_once_ = 1;
  stable_.ready = {{"p1", 80}, {"p2", 80}};
  Publish();
  const auto a = Ask(), b = Ask(), c = Ask(), d = Ask();
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(woken_.empty());
  Answer(1);
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[2].host, "p2");
  Answer(0), Answer(2), Answer(3);
  EXPECT_EQ(d->status, 200);
}

TEST_F(ProxyTest, AServiceThatGoesAnswersWhoWaits) {
  Publish();
  const auto writer = Ask();
  proxy_.SetTable(std::make_shared<const RouteTable>());
  EXPECT_EQ(writer->status, 404);
}

TEST_F(ProxyTest, StepsOfAGraphGoThroughTheSameQueues) {
  auto table = std::make_shared<RouteTable>();
  Route route;
  route.key = {"ml", "iris"};
  route.timeout = seconds(30);
  stable_.ready = {{"p1", 80}};
  route.groups = {stable_};
  table->Add(route, "");
  const json::Value step = json::Obj({{"serviceName", "iris"}});
  const json::Value root =
      json::Obj({{"routerType", "Sequence"}, {"steps", json::List({step, step})}});
  table->Add(GraphRoute{{"ml", "chain"}, json::Obj({{"root", root}}), seconds(30)}, "");
  proxy_.SetTable(table);
  const auto writer = Ask("POST", "chain.ml");
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].request.target, "/v1/models/iris:predict");
  Answer(0);
  ASSERT_EQ(sent_.size(), 2u);
  Answer(1);
  EXPECT_EQ(writer->status, 200);
  EXPECT_EQ(stable_.counters->requests, 2u);
}

TEST_F(ProxyTest, AGraphReachesNobodyButInferenceServices) {
  auto table = std::make_shared<RouteTable>();
  Route route;
  route.key = {"ml", "iris"};
  route.timeout = seconds(30);
  stable_.ready = {{"p1", 80}};
  route.groups = {stable_};
  table->Add(route, "");
  const auto graph = [&](std::string name, std::string_view url) {
    const json::Value step = json::Obj({{"serviceUrl", url}});
    const json::Value root = json::Obj({{"routerType", "Sequence"}, {"steps", json::List({step})}});
    table->Add(GraphRoute{{"ml", std::move(name)}, json::Obj({{"root", root}}), seconds(30)}, "");
  };
  graph("inside", "http://iris.ml.svc.cluster.local/v2/models/x/infer");
  graph("outside", "http://127.0.0.1:10250/pods");
  proxy_.SetTable(table);
  EXPECT_EQ(Ask("POST", "outside.ml")->status, 502);
  EXPECT_EQ(sent_.size(), 0u);
  Ask("POST", "inside.ml");
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].request.target, "/v2/models/x/infer");
}

}  // namespace
}  // namespace muster::gateway
