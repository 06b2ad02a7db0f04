#include "client/reconcile.h"

#include <gtest/gtest.h>

#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "loop/sim_loop.h"

namespace muster::client {
namespace {

constexpr char kConfigMaps[] = "/api/v1/configmaps";
constexpr char kPods[] = "/api/v1/pods";

json::Value ConfigMap(const std::string& name, int children) {
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", json::Obj({{"name", name}, {"namespace", "d"}})},
                    {"data", json::Obj({{"children", children}})}});
}

// Wants as many pods as the ConfigMap says; names are fixed unless `counting`, then each pass that
// sees too few adds one of a new name (so that a stale cache would show as too many).
class PodsPerConfigMap final : public Controller {
 public:
  struct Log {
    int passes = 0;
    std::vector<Observations> observations;
    Time look_again_at{};
    bool ask = false;
    std::vector<Probe> probes;
  };
  explicit PodsPerConfigMap(Log& log) : log_(log) {}

  std::string_view name() const override { return "pods-per-configmap"; }
  std::vector<Trigger> Setup(InformerSet& informers) override {
    informers.Get(resources::kConfigMaps, {{"data"}});
    return {OnSelf(resources::kConfigMaps), OnControlledBy(resources::kPods, "ConfigMap", "")};
  }
  Reconciled Reconcile(const View& view, const Observations& observations, const ObjectKey& key,
                       Time now, uint64_t) override {
    ++log_.passes;
    if (!observations.empty()) log_.observations.push_back(observations);
    Reconciled out;
    const json::Value* owner = view.Of(resources::kConfigMaps).Find(key);
    if (owner == nullptr) return out;
    const int64_t wanted = (*owner)["data"]["children"].AsInt();
    const int64_t have = static_cast<int64_t>(view.Of(resources::kPods).objects().size());
    for (int64_t i = have; i < wanted; ++i) {
      const std::string name = key.name + "-" + std::to_string(i);
      out.Create({resources::kPods, key.ns, name, ""},
                 json::Obj({{"kind", "Pod"},
                            {"metadata",
                             json::Obj({{"name", name}, {"ownerReferences", Owner(*owner)}})}}));
    }
    out.subject = *owner;
    if (log_.ask && observations.empty()) out.Ask("live", {resources::kPods, key.ns, "nobody", ""});
    if (observations.empty()) {
      for (const Probe& probe : log_.probes) out.Ask(probe);
    }
    if (log_.look_again_at > now) out.LookAgainAt(log_.look_again_at);
    return out;
  }

 private:
  static json::Value Owner(const json::Value& owner) {
    return json::List({json::Obj({{"apiVersion", "v1"},
                                  {"kind", "ConfigMap"},
                                  {"name", owner["metadata"]["name"]},
                                  {"uid", owner["metadata"]["uid"]},
                                  {"controller", true}})});
  }
  Log& log_;
};

class ReconcileTest : public testing::Test {
 protected:
  void Start() {
    runtime_.Add(std::make_unique<PodsPerConfigMap>(log_));
    runtime_.Start();
    informers_.Start();
    loop_.RunReady();
  }
  size_t Requests(const std::string& prefix) const {
    return static_cast<size_t>(
        std::count_if(api_.requests.begin(), api_.requests.end(),
                      [&](const std::string& line) { return line.starts_with(prefix); }));
  }

  SimLoop loop_;
  FakeApi api_{loop_};
  InProcessTransport transport_{loop_, api_, {}};
  ApiClient client_{loop_, transport_, "tester"};
  InformerSet informers_{client_};
  Runtime runtime_{client_, informers_, Rng(1)};
  PodsPerConfigMap::Log log_;
};

TEST_F(ReconcileTest, ReachesTheFixpointAndStops) {
  api_.Put(kConfigMaps, ConfigMap("a", 100));
  Start();
  loop_.RunReady();
  EXPECT_EQ(api_.Count(kPods), 100u);
  EXPECT_TRUE(runtime_.Idle());
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  api_.Remove(kPods, "d", "a-99");
  loop_.RunReady();
  EXPECT_EQ(api_.Count(kPods), 100u);
}

// One kind that a server does not have stops nobody else's controllers; what it has and cannot show
// yet is waited for.
TEST_F(ReconcileTest, AKindThatIsNotServedKeepsNobodyWaiting) {
  int status = 503;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (status == 0 || request.method != "GET" || !request.target.starts_with("/api/v1/pods"))
      return true;
    FakeApi::SendError(*writer, status, status == 404 ? "NotFound" : "ServiceUnavailable", "");
    return false;
  };
  api_.Put(kConfigMaps, ConfigMap("a", 2));
  Start();
  loop_.RunFor(seconds(60));
  EXPECT_EQ(log_.passes, 0);
  status = 404;
  loop_.RunFor(seconds(60));
  EXPECT_EQ(api_.Count(kPods), 2u);
  status = 0;
  loop_.RunFor(seconds(60));
  EXPECT_TRUE(runtime_.Idle());
}

TEST_F(ReconcileTest, ChildrenWakeTheirOwnerWhenTheyChange) {
  api_.Put(kConfigMaps, ConfigMap("a", 1));
  Start();
  const int passes = log_.passes;
  api_.Put(kPods, api_.Find(kPods, "d", "a-0")->SetPath({"status", "phase"}, "Running"));
  loop_.RunReady();
  EXPECT_EQ(log_.passes, passes + 1);
}

TEST_F(ReconcileTest, DoesNotRunAgainUntilItsWritesAreSeen) {
  Start();
  bool hold = false;  // the pod watch is cut: its events do not come
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!hold || !request.target.starts_with("/api/v1/pods?")) return true;
    FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
    return false;
  };
  hold = true;
  api_.CutWatches(false);
  loop_.RunFor(milliseconds(1));
  api_.Put(kConfigMaps, ConfigMap("a", 2));
  loop_.RunFor(seconds(5));
  EXPECT_EQ(api_.Count(kPods), 2u);
  const int passes = log_.passes;
  api_.Put(kConfigMaps, ConfigMap("a", 3));
  loop_.RunFor(seconds(1));
  EXPECT_EQ(log_.passes, passes);
  EXPECT_FALSE(runtime_.Idle());
  hold = false;
  loop_.RunFor(seconds(60));
  EXPECT_EQ(api_.Count(kPods), 3u);
  EXPECT_TRUE(runtime_.Idle());
}

TEST_F(ReconcileTest, GivesUpWaitingAfterTheLimit) {
  Start();
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!request.target.starts_with("/api/v1/pods?")) return true;
    FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
    return false;
  };
  api_.CutWatches(false);
  api_.Put(kConfigMaps, ConfigMap("a", 1));
  loop_.RunFor(seconds(5));
  const int passes = log_.passes;
  api_.Put(kConfigMaps, ConfigMap("a", 1));
  loop_.RunFor(kMaxCacheWait);
  EXPECT_GT(log_.passes, passes);
}

TEST_F(ReconcileTest, RetriesWithBackOff) {
  int failures = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "POST" || ++failures > 5) return true;
    FakeApi::SendError(*writer, 500, "InternalError", "no");
    return false;
  };
  api_.Put(kConfigMaps, ConfigMap("a", 1));
  Start();
  EXPECT_EQ(failures, 1);
  EXPECT_FALSE(runtime_.Idle());
  loop_.RunFor(seconds(1));
  EXPECT_EQ(api_.Count(kPods), 1u);
  EXPECT_TRUE(runtime_.Idle());
}

TEST_F(ReconcileTest, CreateThatHappenedDespiteATimeoutIsDone) {
  bool once = true;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "POST" || !once) return true;
    once = false;
    // Applied, but the answer is lost.
    api_.Put(kPods, json::Obj({{"metadata", json::Obj({{"name", "a-0"}, {"namespace", "d"}})}}));
    FakeApi::SendError(*writer, 504, "Timeout", "no answer");
    return false;
  };
  api_.Put(kConfigMaps, ConfigMap("a", 1));
  Start();
  loop_.RunFor(seconds(1));
  EXPECT_EQ(api_.Count(kPods), 1u);
  EXPECT_TRUE(runtime_.Idle());
}

// The next pass might give it another name: it waits until the cache has what came.
TEST_F(ReconcileTest, ACreateWithoutAnAnswerIsLookedForBeforeTheNextPass) {
  int asked = 0, posts = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method == "GET" && request.target.starts_with("/api/v1/namespaces/d/pods/a-0") &&
        ++asked == 1) {
      FakeApi::SendError(*writer, 503, "ServiceUnavailable", "not now");
      return false;
    }
    if (request.method != "POST" || !request.target.starts_with("/api/v1/namespaces/d/pods"))
      return true;
    ++posts;
    api_.Put(kPods, FakeApi::BodyOf(request).SetPath({"metadata", "namespace"}, "d"));
    FakeApi::SendError(*writer, 504, "Timeout", "no answer");
    return false;
  };
  api_.Put(kConfigMaps, ConfigMap("a", 1));
  Start();
  loop_.RunFor(seconds(5));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(posts, 1);
  EXPECT_EQ(api_.Count(kPods), 1u);
  EXPECT_TRUE(runtime_.Idle());
}

// The answer to the first try is lost, and the cache shows the pod before the second one's comes.
TEST_F(ReconcileTest, AChildThatTheCacheLearnsOfMeanwhileIsDone) {
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "POST" || !request.target.ends_with("/pods")) return true;
    api_.Put(kPods, FakeApi::BodyOf(request).SetPath({"metadata", "namespace"}, "d"));
    loop_.After(milliseconds(10),
                [writer] { FakeApi::SendError(*writer, 409, "AlreadyExists", "it exists"); });
    return false;
  };
  api_.Put(kConfigMaps, ConfigMap("a", 1));
  Start();
  loop_.RunFor(seconds(1));
  EXPECT_TRUE(runtime_.Idle());
  EXPECT_EQ(api_.Count(kPods), 1u);
  EXPECT_EQ(api_.Count("/api/v1/events"), 0u) << "nobody is told of a failure";
}

TEST_F(ReconcileTest, AForeignObjectOfTheSameNameIsAnErrorWithBackOff) {
  Start();
  api_.Put(kConfigMaps, ConfigMap("b", 1));
  loop_.RunReady();
  api_.Put(kConfigMaps, ConfigMap("b", 2));
  loop_.RunReady();
  const size_t posts = Requests("POST");
  EXPECT_EQ(posts, 2u);
}

TEST_F(ReconcileTest, RefusalsAreToldToTheSubject) {
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!request.target.starts_with("/api/v1/namespaces/d/pods")) return true;
    client::FakeApi::SendError(*writer, 422, "Invalid", "spec.containers: Required value");
    return false;
  };
  api_.Put(kConfigMaps, ConfigMap("a", 1));
  Start();
  loop_.RunFor(seconds(10));
  ASSERT_EQ(api_.Count("/api/v1/events"), 1u) << "one event, however often it was tried";
  const auto found = api_.objects.lower_bound("/api/v1/events|");
  EXPECT_EQ(found->second["reason"].AsString(), "FailedCreatePod");
  EXPECT_EQ(found->second["involvedObject"]["name"].AsString(), "a");
  EXPECT_NE(found->second["message"].AsString().find("Required value"), std::string_view::npos);
}

TEST_F(ReconcileTest, OnlySoManyPassesInFlight) {
  std::vector<net::ResponseWriterPtr> held;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "POST") return true;
    held.push_back(writer);
    return false;
  };
  for (size_t i = 0; i < kMaxPassesInFlight + 10; ++i) {
    api_.Put(kConfigMaps, ConfigMap("a" + std::to_string(i), 1));
  }
  Start();
  EXPECT_EQ(held.size(), kMaxPassesInFlight);
}

TEST_F(ReconcileTest, LooksAgainWhenAsked) {
  api_.Put(kConfigMaps, ConfigMap("a", 0));
  log_.look_again_at = loop_.Now() + seconds(100);
  Start();
  const int passes = log_.passes;
  loop_.RunFor(seconds(99));
  EXPECT_EQ(log_.passes, passes);
  EXPECT_TRUE(runtime_.Idle());
  loop_.RunFor(seconds(1));
  EXPECT_EQ(log_.passes, passes + 1);
}

TEST_F(ReconcileTest, ProbesAreAnsweredInTheNextPass) {
  log_.ask = true;
  api_.Put(kConfigMaps, ConfigMap("a", 0));
  Start();
  ASSERT_EQ(log_.observations.size(), 1u);
  EXPECT_TRUE(log_.observations[0].at("live").IsNull());
}

TEST_F(ReconcileTest, ProbesMayTakeFailuresForAnAnswer) {
  Probe object{.name = "object", .target = {resources::kPods, "d", "nobody", ""}};
  Probe path{.name = "path", .target = {}, .list = {}, .path = "/apis/none/v1/things?a=b"};
  Probe list{.name = "list", .target = {resources::kPods, "d", "", ""}};
  list.list = {.label_selector = "app=x"};
  for (Probe* probe : {&object, &path, &list}) {
    probe->failures_too = true;
    log_.probes.push_back(*probe);
  }
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!request.target.starts_with("/apis/none")) return true;
    FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
    return false;
  };
  api_.Put(kConfigMaps, ConfigMap("a", 0));
  Start();
  ASSERT_EQ(log_.observations.size(), 1u) << "no retries";
  const Observations& answers = log_.observations[0];
  EXPECT_TRUE(IsFailure(answers.at("object")));
  EXPECT_EQ(answers.at("object")["reason"].AsString(), "NotFound");
  EXPECT_TRUE(IsFailure(answers.at("path")));
  EXPECT_EQ(answers.at("path")["message"].AsString(), "away");
  EXPECT_FALSE(IsFailure(answers.at("list")));
  EXPECT_EQ(Requests("GET /apis/none/v1/things?a=b"), 1u);
  EXPECT_EQ(Requests("GET /api/v1/namespaces/d/pods?labelSelector=app%3Dx"), 1u);
}

TEST_F(ReconcileTest, AFailedProbeIsTriedAgainOtherwise) {
  int failures = 3;
  log_.probes.push_back({.name = "live", .target = {resources::kPods, "d", "nobody", ""}});
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (!request.target.ends_with("/nobody") || failures-- <= 0) return true;
    FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
    return false;
  };
  api_.Put(kConfigMaps, ConfigMap("a", 0));
  Start();
  loop_.RunFor(seconds(1));
  ASSERT_EQ(log_.observations.size(), 1u);
  EXPECT_TRUE(log_.observations[0].at("live").IsNull());
}

TEST_F(ReconcileTest, AtMostSoManyWritesOfAPassAtOnce) {
  size_t in_flight = 0, most = 0;
  std::vector<net::ResponseWriterPtr> held;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "POST") return true;
    most = std::max(most, ++in_flight);
    held.push_back(writer);
    return false;
  };
  api_.Put(kConfigMaps, ConfigMap("a", 200));
  Start();
  EXPECT_EQ(most, kMaxParallelWrites);
}

TEST_F(ReconcileTest, DestroyedRuntimeStops) {
  api_.Put(kConfigMaps, ConfigMap("a", 1));
  {
    Runtime runtime(client_, informers_, Rng(2));
    runtime.Add(std::make_unique<PodsPerConfigMap>(log_));
    runtime.Start();
    informers_.Start();
  }
  loop_.RunFor(seconds(10));
  EXPECT_EQ(api_.Count(kPods), 0u);
}

TEST(SeedOf, DependsOnUidAndPurpose) {
  EXPECT_EQ(SeedOf("u", "p"), SeedOf("u", "p"));
  EXPECT_NE(SeedOf("u", "p"), SeedOf("u", "q"));
  EXPECT_NE(SeedOf("v", "p"), SeedOf("u", "p"));
}

}  // namespace
}  // namespace muster::client
