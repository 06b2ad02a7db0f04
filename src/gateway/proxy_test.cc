#include "gateway/proxy.h"

#include <deque>

#include <gtest/gtest.h>

#include "loop/sim_loop.h"

namespace muster::gateway {
namespace {

// Keeps the one answer, or how far a streamed one came.
class Writer final : public net::ResponseWriter {
 public:
  void Send(net::Response response) override {
    EXPECT_EQ(status, 0);
    status = response.status;
    headers = std::move(response.headers);
    body = std::move(response.body);
    on_gone = nullptr;
  }
  void StartStream(int code, net::Headers head) override {
    EXPECT_EQ(status, 0);
    status = code;
    headers = std::move(head);
    streams = true;
  }
  void Write(std::shared_ptr<const std::string> bytes) override {
    EXPECT_TRUE(streams && !ended);
    body += *bytes;
    backlog += bytes->size();
  }
  void End() override {
    EXPECT_TRUE(streams && !ended);
    ended = true;
    on_gone = nullptr;
  }
  size_t BufferedBytes() const override { return backlog; }
  std::unique_ptr<net::ByteStream> Upgrade(net::Headers) override { return nullptr; }
  void OnPeerGone(Task task) override { on_gone = std::move(task); }

  int status = 0;
  net::Headers headers;
  std::string body;
  size_t backlog = 0;  // which the client has not read
  bool streams = false, ended = false;
  Task on_gone;
};

// A request at a pod.
struct Sent {
  std::string host;
  net::Request request;
  Body body;
  net::ClientStreamCallbacks answer;
  std::shared_ptr<bool> paused = std::make_shared<bool>(false);
  std::weak_ptr<bool> handle = {};

  bool Abandoned() const { return handle.expired(); }
};

class Handle final : public net::ClientStream {
 public:
  explicit Handle(std::shared_ptr<bool> paused) : paused_(std::move(paused)) {}
  void PauseReading(bool paused) override { *paused_ = paused; }
  std::weak_ptr<bool> alive() const { return alive_; }

 private:
  std::shared_ptr<bool> paused_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

constexpr size_t kBudget = 4 * 1024 * 1024;

class ProxyTest : public testing::Test {
 protected:
  ProxyTest()
      : proxy_(
            loop_,
            [this](const net::Endpoint& endpoint, net::Request request, Body body,
                   net::ClientStreamCallbacks answer) {
              Sent& sent = sent_.emplace_back(endpoint.host, std::move(request), std::move(body),
                                              std::move(answer));
              auto handle = std::make_unique<Handle>(sent.paused);
              sent.handle = handle->alive();
              return handle;
            },
            [this](const client::ObjectKey& key) { woken_.push_back(key.ToString()); }, budget_,
            Rng(1)) {
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

  // A graph whose two steps both ask iris, which has one pod.
  void SetGraph(const std::string& name, const std::string& type) {
    auto table = std::make_shared<RouteTable>();
    Route route;
    route.key = {"ml", "iris"};
    route.timeout = seconds(30);
    stable_.ready = {{"p1", 80}};
    route.groups = {stable_};
    table->Add(route, "");
    const json::Value step = json::Obj({{"serviceName", "iris"}});
    const json::Value root = json::Obj({{"routerType", type}, {"steps", json::List({step, step})}});
    table->Add(GraphRoute{{"ml", name}, json::Obj({{"root", root}}), seconds(30)}, "");
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

  // `length`: as the pod says it; -1: it does not say.
  void Begin(size_t index, int64_t length, int status = 200) {
    net::Headers headers;
    headers.Add("Content-Type", "application/json");
    if (length >= 0) headers.Add("Content-Length", std::to_string(length));
    std::exchange(sent_[index].answer.on_head, nullptr)(status, headers);
  }
  void Say(size_t index, std::string_view bytes) { sent_[index].answer.on_data(bytes); }
  void End(size_t index, const Status& status = Status::Ok()) {
    std::exchange(sent_[index].answer.on_end, nullptr)(status);
  }
  void Answer(size_t index, int status = 200) {
    const std::string& body = sent_[index].host;
    Begin(index, static_cast<int64_t>(body.size()), status);
    Say(index, body);
    End(index);
  }
  void Break(size_t index, std::string_view why) {
    End(index, Status(Reason::kServiceUnavailable, fmt::format("http://x: {}", why)));
  }

  SimLoop loop_;
  std::deque<Sent> sent_;
  std::vector<std::string> woken_;
  size_t elsewhere_ = 0;
  std::shared_ptr<ByteBudget> budget_ =
      std::make_shared<ByteBudget>(kBudget, [this] { return elsewhere_; });
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
  for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS"}) {
    const auto other = Ask(method);
    Break(sent_.size() - 1, "the server closed the connection");
    EXPECT_EQ(other->status, 502) << method;
  }
  sent_.clear();
  const auto reader = Ask("GET");
  Break(0, "the server closed the connection");
  ASSERT_EQ(sent_.size(), 2u);
  Answer(1);
  EXPECT_EQ(reader->status, 200);
}

TEST_F(ProxyTest, AGetThatKillsItsPodIsNotRepeatedForEver) {
  stable_.ready = {{"p1", 80}};
  Publish();
  const auto writer = Ask("GET");
  for (size_t i = 0; writer->status == 0 && i < 100; ++i) {
    ASSERT_EQ(sent_.size(), 2 * i + 1);
    Break(2 * i, "the server closed the connection");
    if (writer->status != 0) break;
    // Nobody listens there for a moment, which counts for nothing.
    loop_.RunFor(kRetryPause);
    ASSERT_EQ(sent_.size(), 2 * i + 2);
    Break(2 * i + 1, "Connection refused");
    loop_.RunFor(kRetryPause);
  }
  EXPECT_EQ(writer->status, 502);
  EXPECT_EQ(writer->body,
            "{\"error\":\"a pod of InferenceService ml/iris did not answer: http://x: the server "
            "closed the connection\"}");
  EXPECT_EQ(sent_.size(), size_t{2 * kMaxRepeats + 1});
  EXPECT_EQ(stable_.counters->in_flight, 0);
}

TEST_F(ProxyTest, ALongAnswerIsPassedOnAsItComes) {
  stable_.ready = {{"p1", 80}};
  Publish();
  const auto writer = Ask("GET");
  Begin(0, kMaxWholeAnswerBytes + 1, 206);
  EXPECT_EQ(writer->status, 206);
  EXPECT_EQ(writer->headers.Get("Content-Type"), "application/json");
  EXPECT_FALSE(writer->headers.Has("Content-Length"));
  Say(0, "one ");
  EXPECT_EQ(writer->body, "one ");
  // As long as something comes there is time.
  for (int i = 0; i < 4; ++i) {
    loop_.RunFor(seconds(20));
    Say(0, "more ");
  }
  EXPECT_EQ(stable_.counters->in_flight, 1);
  End(0);
  EXPECT_TRUE(writer->ended);
  EXPECT_EQ(writer->body, "one more more more more ");
  EXPECT_EQ(stable_.counters->in_flight, 0);
  EXPECT_EQ(stable_.counters->failures, 0u);
}

TEST_F(ProxyTest, AnAnswerThatIsCutIsNotEndedNorRepeated) {
  stable_.ready = {{"p1", 80}, {"p2", 80}};
  Publish();
  std::weak_ptr<Writer> reader;
  {
    const auto writer = Ask("GET");
    reader = writer;
    Begin(0, -1);
    Say(0, "half");
    Break(0, "the server closed the connection");
    EXPECT_FALSE(writer->ended);
  }
  EXPECT_TRUE(reader.expired());  // which cuts the connection
  EXPECT_EQ(sent_.size(), 1u);
  EXPECT_EQ(stable_.counters->failures, 1u);
  const auto silent = Ask("GET");
  Begin(1, -1);
  loop_.RunFor(seconds(31));
  EXPECT_TRUE(sent_[1].Abandoned());
  EXPECT_FALSE(silent->ended);
  EXPECT_EQ(silent.use_count(), 1);
  EXPECT_EQ(stable_.counters->in_flight, 0);
}

TEST_F(ProxyTest, ASlowReaderHoldsItsPodBack) {
  stable_.ready = {{"p1", 80}};
  Publish();
  const auto writer = Ask("GET");
  Begin(0, -1);
  Say(0, std::string(kMaxAnswerBacklogBytes, 'x'));
  EXPECT_FALSE(*sent_[0].paused);
  Say(0, "x");
  EXPECT_TRUE(*sent_[0].paused);
  // What was on its way comes all the same.
  Say(0, "x");
  loop_.RunFor(seconds(1));
  EXPECT_TRUE(*sent_[0].paused);
  writer->backlog = kMaxAnswerBacklogBytes / 2;
  loop_.RunFor(kMaxBacklogLookPeriod);
  EXPECT_FALSE(*sent_[0].paused);
  // Where many are slow, each may have less.
  elsewhere_ = kBudget / 2;
  writer->backlog = 0;
  Say(0, std::string(kMinAnswerBacklogBytes + 1, 'x'));
  EXPECT_TRUE(*sent_[0].paused);
  // Nothing is read any more.
  loop_.RunFor(seconds(31));
  EXPECT_TRUE(sent_[0].Abandoned());
  EXPECT_FALSE(writer->ended);
}

TEST_F(ProxyTest, AnswersOfAllTogetherHaveABound) {
  stable_.ready = {{"p1", 80}};
  Publish();
  elsewhere_ = kBudget;
  const auto streamed = Ask("GET"), whole = Ask("GET");
  Begin(0, -1);
  EXPECT_EQ(streamed->status, 503);
  EXPECT_EQ(streamed->body,
            "{\"error\":\"the answers that are on their way through the gateway have more than 4 "
            "MiB together; try again later\"}");
  EXPECT_EQ(streamed->headers.Get("Retry-After"), "1");
  EXPECT_TRUE(sent_[0].Abandoned());
  Begin(1, 3);
  Say(1, "abc");
  End(1);
  EXPECT_EQ(whole->status, 200);  // a short one
  EXPECT_EQ(budget_->refused(), 1u);
  EXPECT_EQ(stable_.counters->in_flight, 0);
  elsewhere_ = 0;
  const auto next = Ask("GET");
  Answer(2);
  EXPECT_EQ(next->status, 200);
  EXPECT_EQ(budget_->used(), 0u);
}

TEST_F(ProxyTest, AHeadTellsTheLengthAndABodilessAnswerIsNoStream) {
  stable_.ready = {{"p1", 80}};
  Publish();
  const auto head = Ask("HEAD"), none = Ask("GET");
  Begin(0, 5'000'000);
  End(0);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->headers.Get("Content-Length"), "5000000");
  Begin(1, 0, 204);
  End(1);
  EXPECT_EQ(none->status, 204);
  EXPECT_FALSE(none->headers.Has("Content-Length"));
  EXPECT_FALSE(head->streams || none->streams);
}

TEST_F(ProxyTest, APodDoesNotGoOnForWhoIsGone) {
  most_at_once_ = 1;
  stable_.ready = {{"p1", 80}};
  Publish();
  const auto gone = Ask(), reads = Ask(), last = Ask();
  gone->on_gone();
  EXPECT_TRUE(sent_[0].Abandoned());
  ASSERT_EQ(sent_.size(), 2u);  // its place goes to the next
  Begin(1, -1);
  Say(1, "half");
  reads->on_gone();
  EXPECT_TRUE(sent_[1].Abandoned());
  ASSERT_EQ(sent_.size(), 3u);
  Answer(2);
  EXPECT_EQ(last->status, 200);
  EXPECT_EQ(stable_.counters->in_flight, 0);
}

TEST_F(ProxyTest, WithoutContainerConcurrencyThereIsABoundForWhoHasNoAnswerYet) {
  stable_.ready = {{"p1", 80}};
  Publish();
  const size_t most = kMaxUnansweredPerPod;
  std::vector<std::shared_ptr<Writer>> writers;
  for (size_t i = 0; i < most + 3; ++i) writers.push_back(Ask());
  EXPECT_EQ(sent_.size(), most);
  EXPECT_EQ(stable_.counters->held, 3);
  Answer(0);
  EXPECT_EQ(sent_.size(), most + 1);
  // One that streams does not count, nor when it ends.
  Begin(1, -1);
  EXPECT_EQ(sent_.size(), most + 2);
  End(1);
  EXPECT_EQ(sent_.size(), most + 2);
  Answer(2);
  EXPECT_EQ(sent_.size(), most + 3);
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
  SetGraph("chain", "Sequence");
  const auto writer = Ask("POST", "chain.ml");
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].request.target, "/v1/models/iris:predict");
  Answer(0);
  ASSERT_EQ(sent_.size(), 2u);
  Answer(1);
  EXPECT_EQ(writer->status, 200);
  EXPECT_EQ(stable_.counters->requests, 2u);
  // Nobody waits for the second.
  Ask("POST", "chain.ml")->on_gone();
  Answer(2);
  EXPECT_EQ(sent_.size(), 3u);
}

TEST_F(ProxyTest, WhatAGraphCollectsIsBoundedAndItsBodyShared) {
  SetGraph("both", "Ensemble");
  const auto fits = Ask("POST", "both.ml");
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[0].body, sent_[1].body);
  Begin(0, -1);  // nobody gets it piece by piece
  Say(0, std::string(kBudget / 2, '1'));
  EXPECT_EQ(budget_->used(), kBudget / 2);
  End(0);
  EXPECT_EQ(budget_->used(), kBudget / 2);
  EXPECT_EQ(fits->status, 0);
  Answer(1);
  EXPECT_EQ(fits->status, 200);
  EXPECT_EQ(budget_->used(), 0u);

  const auto too_much = Ask("POST", "both.ml");
  for (const size_t i : {2, 3}) {
    Begin(i, -1);
    Say(i, std::string(kBudget / 2, '1'));
  }
  Say(3, "1");
  EXPECT_EQ(budget_->refused(), 1u);
  End(2);
  EXPECT_EQ(too_much->status, 200);  // of a soft step: what it said, here the refusal
  EXPECT_NE(too_much->body.find("more than 4 MiB together"), std::string::npos);
  EXPECT_EQ(budget_->used(), 0u);
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
