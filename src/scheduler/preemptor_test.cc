#include "scheduler/preemptor.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "scheduler/refused_bindings.h"
#include "scheduler/scheduler_test_base.h"

namespace muster::scheduler {
namespace {

const char kBudgets[] = "/apis/policy/v1/poddisruptionbudgets";

class PreemptorTest : public SchedulerTest {
 protected:
  // A pod that runs there and takes its time to end.
  void AddRunning(const std::string& name, const std::string& node, int gpus, int priority = 0) {
    json::Value pod = MakePod(name, gpus);
    pod = pod.SetPath({"spec", "nodeName"}, node).SetPath({"spec", "priority"}, priority);
    pod = pod.SetPath({"metadata", "finalizers"}, json::List({"test/ends-slowly"}));
    pod = pod.SetPath({"metadata", "labels"}, json::Obj({{"app", name}}));
    api_.Put(kPods, pod.SetPath({"status", "phase"}, "Running"));
  }
  // One that has a node with one GPU for itself.
  void AddRunningMember(const std::string& name, const std::string& node, const std::string& gang,
                        int priority = 0) {
    AddNode(node, 1);
    AddRunning(name, node, 1, priority);
    api_.Put(kPods, Pod(name).SetPath({"metadata", "annotations"},
                                      json::Obj({{"scheduling.k8s.io/group-name", gang}})));
  }
  void AddWaiting(const std::string& name, int gpus, int priority, const std::string& gang = "") {
    json::Value pod = MakePod(name, gpus, gang).SetPath({"spec", "priority"}, priority);
    api_.Put(kPods, pod.SetPath({"spec", "schedulerName"}, "default-scheduler"));
  }
  void End(const std::string& name) { api_.Remove(kPods, "default", name); }
  json::Value Pod(const std::string& name) { return *api_.Find(kPods, "default", name); }
  bool IsThere(const std::string& name) { return api_.Find(kPods, "default", name) != nullptr; }
  bool IsEnding(const std::string& name) { return Pod(name)["metadata"].Has("deletionTimestamp"); }
  std::string NominatedNodeOf(const std::string& name) {
    return Pod(name)["status"]["nominatedNodeName"].Str();
  }
  int64_t Deletes() {
    return std::count_if(api_.requests.begin(), api_.requests.end(),
                         [](const std::string& request) { return request.starts_with("DELETE"); });
  }
};

TEST_F(PreemptorTest, EvictsWaitsAndBinds) {
  AddNode("n1", 1);
  AddRunning("low", "n1", 1);
  AddWaiting("high", 1, 10);
  Settle();
  EXPECT_TRUE(IsEnding("low"));
  const json::Value& condition = Pod("low")["status"]["conditions"].items()[0];
  EXPECT_EQ(condition["type"].AsString(), "DisruptionTarget");
  EXPECT_EQ(condition["status"].AsString(), "True");
  EXPECT_EQ(condition["reason"].AsString(), "PreemptionByScheduler");
  EXPECT_EQ(condition["message"].AsString(),
            "default-scheduler: preempting to accommodate a higher priority pod");
  EXPECT_EQ(Events("Preempted",
                   "Preempted by pod " + Pod("high")["metadata"]["uid"].Str() + " on node n1"),
            1);
  EXPECT_EQ(NominatedNodeOf("high"), "n1");
  EXPECT_TRUE(
      Condition("high")["message"].Str().ends_with(" Preempts pod default/low; waits for its end."))
      << Condition("high")["message"].Str();
  const json::Value why = scheduler_->ExplainPod("default", "high");
  EXPECT_EQ(why["preempts"], json::List({"pod default/low"}));
  // It waits for that pod; nobody else has to end.
  EXPECT_FALSE(why.Has("fitsWhenTheseEnd"));
  EXPECT_EQ(Condition("high")["message"].Str().find("fits when"), std::string::npos);
  EXPECT_GE(scheduler_->metrics().preemption_attempts, 1U);
  EXPECT_EQ(scheduler_->metrics().preemption_victims[0], 1U);
  EXPECT_EQ(scheduler_->metrics().preemption_victims_sum, 1U);

  End("low");
  Settle();
  EXPECT_EQ(NodeOf("high"), "n1");
  EXPECT_EQ(Deletes(), 1);
}

// Complaints 2 and 3: no second round while the first ends, and the room goes to whom it is for.
TEST_F(PreemptorTest, RoomThatBecomesFreeIsKeptAndNobodyElseHasToGo) {
  AddNode("n1", 2);
  AddNode("n2", 2);
  AddRunning("a", "n1", 1);
  AddRunning("b", "n1", 1);
  AddRunning("c", "n2", 2, 1);
  AddWaiting("high", 2, 10);
  Settle();
  EXPECT_TRUE(IsEnding("a") && IsEnding("b"));
  AddWaiting("small", 1, 0);
  AddWaiting("equal", 1, 10);
  End("a");
  Settle();
  // The equal one is not of a lower priority than any other, c is: that one it may evict.
  EXPECT_EQ(NodeOf("small"), "");
  EXPECT_EQ(NodeOf("equal"), "");
  EXPECT_EQ(NominatedNodeOf("high"), "n1");
  EXPECT_EQ(NominatedNodeOf("equal"), "n2");
  EXPECT_EQ(Deletes(), 3);
  StartScheduler();
  Settle();
  EXPECT_EQ(Deletes(), 3);
  End("b");
  End("c");
  Settle();
  EXPECT_EQ(NodeOf("high"), "n1");
  EXPECT_EQ(NodeOf("equal"), "n2");
  EXPECT_EQ(NodeOf("small"), "n2");
}

TEST_F(PreemptorTest, AGangEvictsForAllOfItsPodsAtOnceOrForNone) {
  AddNode("n1", 1);
  AddNode("n2", 1);
  AddRunning("a", "n1", 1);
  AddRunning("b", "n2", 1, 20);
  AddGroup("g", 2);
  AddWaiting("g-0", 1, 10, "g");
  AddWaiting("g-1", 1, 10, "g");
  Settle();
  EXPECT_EQ(Deletes(), 0);
  AddNode("n3", 1);
  AddRunning("c", "n3", 1);
  Settle();
  EXPECT_TRUE(IsEnding("a") && IsEnding("c"));
  EXPECT_EQ(Deletes(), 2);
  End("a");
  Settle();
  EXPECT_EQ(BoundOf("g", 2), 0);
  End("c");
  Settle();
  EXPECT_EQ(BoundOf("g", 2), 2);
}

// k8s#106780.
TEST_F(PreemptorTest, ANominationThatNoLongerHoldsIsWithdrawn) {
  AddNode("n1", 1);
  AddRunning("low", "n1", 1);
  AddWaiting("high", 1, 10);
  Settle();
  EXPECT_EQ(NominatedNodeOf("high"), "n1");
  api_.Remove(kNodes, "", "n1");
  Settle();
  EXPECT_EQ(NominatedNodeOf("high"), "");
  // Also one that somebody else wrote.
  api_.Put(kPods, Pod("high").SetPath({"status", "nominatedNodeName"}, "n7"));
  AddNode("n2", 0);
  Settle();
  EXPECT_EQ(NominatedNodeOf("high"), "");
}

TEST_F(PreemptorTest, AnotherSchedulersPodThatTakesTheRoomMakesItLookElsewhere) {
  AddNode("n1", 1);
  AddRunning("low", "n1", 1);
  AddWaiting("high", 1, 10);
  Settle();
  AddNode("n2", 1);
  AddRunning("second", "n2", 1, 1);
  End("low");
  AddRunning("foreign", "n1", 1, 50);
  Settle();
  EXPECT_EQ(NominatedNodeOf("high"), "n2");
  EXPECT_TRUE(IsEnding("second"));
}

TEST_F(PreemptorTest, AConflictDoesNotMeanThatTheVictimIsGone) {
  int patches = 0, deletes = 0;
  const auto before = api_.before_handle;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    const bool is_low = request.target.find("/pods/low") != std::string::npos;
    const bool first = (request.method == "PATCH" && is_low && ++patches == 1) ||
                       (request.method == "DELETE" && is_low && ++deletes == 1);
    if (!first) return before(request, writer);
    client::FakeApi::SendError(*writer, 409, "Conflict", "the object has been modified");
    return false;
  };
  AddNode("n1", 1);
  AddRunning("low", "n1", 1);
  AddWaiting("high", 1, 10);
  Settle();
  EXPECT_EQ(patches, 2);
  EXPECT_EQ(deletes, 2);
  EXPECT_TRUE(IsEnding("low"));
}

TEST_F(PreemptorTest, AFailedEvictionIsRepeatedWhileSomebodyWaitsForIt) {
  int refused = 0;
  int refuse = 3;
  const auto before = api_.before_handle;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method == "DELETE" && refused < refuse) {
      ++refused;
      client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
      return false;
    }
    return before(request, writer);
  };
  AddNode("n1", 1);
  AddRunning("low", "n1", 1);
  AddNode("n2", 1);
  AddRunning("other", "n2", 1);
  AddWaiting("high", 1, 10);
  Settle();
  EXPECT_EQ(refused, 3);
  EXPECT_NE(IsEnding("low"), IsEnding("other"));
  const std::string stays = IsEnding("low") ? "other" : "low";
  End(IsEnding("low") ? "low" : "other");
  Settle();

  refuse = 1'000'000;
  AddWaiting("higher", 1, 20);
  loop_.RunFor(seconds(60));
  EXPECT_GT(refused, 5);
  api_.Remove(kPods, "default", "higher");
  loop_.RunFor(seconds(30));
  const int until_now = refused;
  refuse = 0;
  loop_.RunFor(seconds(60));
  EXPECT_EQ(refused, until_now);
  EXPECT_FALSE(IsEnding(stays));
}

// What a gang can do without goes once: those that were told to go and do not show it yet count.
TEST_F(PreemptorTest, AGangThatLosesWhatItCanDoWithoutTwiceGoesAsAWhole) {
  bool answers = false;
  const auto before = api_.before_handle;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method == "DELETE" && !answers) {
      client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
      return false;
    }
    return before(request, writer);
  };
  AddGroup("g", 2);
  for (const char* name : {"g0", "g1", "g2", "g3"}) {
    const std::string node = name[1] < '2' ? "n1" : std::string("n") + name[1];
    AddNode(node, node == "n1" ? 2 : 1);
    AddRunning(name, node, 1);
    api_.Put(kPods, Pod(name).SetPath({"metadata", "annotations"},
                                      json::Obj({{"scheduling.k8s.io/group-name", "g"}})));
  }
  AddWaiting("two", 2, 10);
  loop_.RunFor(milliseconds(50));
  AddWaiting("one", 1, 10);
  loop_.RunFor(seconds(5));
  answers = true;
  loop_.RunFor(seconds(30));
  for (const char* name : {"g0", "g1", "g2", "g3"}) EXPECT_TRUE(IsEnding(name)) << name;
}

// Only the delete of "g0" arrives.
TEST_F(PreemptorTest, AGangOfWhichSomeWereDeletedGoesWholeWhoeverWaits) {
  bool answers = false;
  const auto before = api_.before_handle;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    const bool is_first = request.target.find("/pods/g0") != std::string::npos;
    if (request.method == "DELETE" && !is_first && !answers) {
      client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
      return false;
    }
    return before(request, writer);
  };
  for (const bool restart : {false, true}) {
    answers = false;
    AddGroup("g", 3);
    for (const char* name : {"g0", "g1", "g2"}) AddRunningMember(name, name, "g");
    AddWaiting("high", 1, 10);
    loop_.RunFor(seconds(5));
    EXPECT_TRUE(IsEnding("g0"));
    EXPECT_FALSE(IsEnding("g1") || IsEnding("g2"));
    if (restart) StartScheduler();
    api_.Remove(kPods, "default", "high");
    answers = true;
    loop_.RunFor(seconds(30));
    EXPECT_TRUE(IsEnding("g1") && IsEnding("g2")) << restart;
    for (const char* name : {"g0", "g1", "g2"}) End(name);
    loop_.RunFor(seconds(5));
  }
  EXPECT_EQ(Events("Preempted", "Preempted with the rest of its gang"), 2);
}

TEST_F(PreemptorTest, AGangStaysThatLostPodsOtherwiseOrCanDoWithoutThem) {
  AddGroup("g", 2);
  for (const char* name : {"g0", "g1", "g2"}) AddRunningMember(name, name, "g");
  AddGroup("h", 2);
  for (const char* name : {"h0", "h1"}) AddRunningMember(name, name, "h", 20);
  AddWaiting("high", 1, 10);
  Settle();
  client_.Delete({client::resources::kPods, "default", "h0", ""}, {}, [](Result<json::Value>) {});
  Settle();
  EXPECT_TRUE(IsEnding("h0"));
  EXPECT_EQ(IsEnding("g0") + IsEnding("g1") + IsEnding("g2"), 1);
  StartScheduler();
  Settle();
  EXPECT_EQ(IsEnding("g0") + IsEnding("g1") + IsEnding("g2"), 1);
  EXPECT_FALSE(IsEnding("h1"));
}

// Made in the place of those that went, and not all of them bound yet.
TEST_F(PreemptorTest, WhoCameAfterAGangWentDoesNotGoWithIt) {
  AddGroup("g", 2);
  for (const char* name : {"g0", "g1"}) AddRunningMember(name, name, "g");
  AddWaiting("high", 1, 10);
  Settle();
  EXPECT_TRUE(IsEnding("g0") && IsEnding("g1"));
  AddRunningMember("new", "n1", "g");
  api_.Put(kPods, Pod("new").SetPath({"metadata", "creationTimestamp"}, "2026-01-01T01:00:00Z"));
  StartScheduler();
  Settle();
  EXPECT_FALSE(IsEnding("new"));
  AddRunningMember("old", "n2", "g", 10);
  StartScheduler();
  Settle();
  EXPECT_FALSE(IsEnding("new") || IsEnding("old"));  // two are enough
}

// Its victims come back, as pods of controllers do.
TEST_F(PreemptorTest, APodThatIsRefusedForEverEvictsLessAndLess) {
  AddNode("n1", 1);
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "poison") return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "not this one");
    return true;
  };
  AddWaiting("poison", 1, 10);
  int number = 0;
  const auto name = [&] { return fmt::format("low-{}", number); };
  AddRunning(name(), "n1", 1);
  for (int second = 0; second < 3600; ++second) {
    loop_.RunFor(seconds(1));
    if (IsThere(name()) && !IsEnding(name())) continue;
    End(name());
    ++number;
    AddWaiting(name(), 1, 0);
  }
  // After 1, 2, 4, 8, then every 10 minutes.
  EXPECT_GE(Deletes(), 5);
  EXPECT_LE(Deletes(), 9);
  EXPECT_EQ(NodeOf(name()), "n1");
  const std::string message = Condition("poison")["message"].Str();
  EXPECT_NE(message.find(" Evicts nobody before 20"), std::string::npos) << message;
  EXPECT_TRUE(message.ends_with(": its binding was refused after room was made: not this one"))
      << message;
  EXPECT_EQ(scheduler_->ExplainPod("default", "poison")["evictsNobody"]["bindingRefused"],
            json::Value("not this one"));

  // Once it is bound, all is forgotten.
  refuse_bind = {};
  loop_.RunFor(minutes(11));
  End(name());
  loop_.RunFor(minutes(1));
  EXPECT_EQ(NodeOf("poison"), "n1");
}

TEST_F(PreemptorTest, RoomThatWasMadeIsKeptWhileARefusalMayPass) {
  AddNode("n1", 1);
  int refusals = kMaxRestsWithRoom;
  refuse_bind = [&](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "high" || refusals-- <= 0) return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "a policy is being loaded");
    return true;
  };
  AddRunning("low", "n1", 1);
  AddWaiting("high", 1, 10);
  Settle();
  AddWaiting("thief", 1, 0);
  End("low");
  Settle();
  EXPECT_EQ(NodeOf("high"), "n1");
  EXPECT_EQ(NodeOf("thief"), "");
  EXPECT_EQ(Deletes(), 1);
}

TEST_F(PreemptorTest, RoomThatWasMadeIsNotKeptForEver) {
  AddNode("n1", 1);
  refuse_bind = [&](const std::string& pod, net::ResponseWriter& writer) {
    if (!pod.starts_with("poison")) return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "no");
    return true;
  };
  AddRunning("low", "n1", 1);
  AddWaiting("poison", 1, 10);
  Settle();
  AddWaiting("good", 1, 0);
  End("low");
  loop_.RunFor(seconds(30));
  EXPECT_EQ(NodeOf("good"), "n1");
  EXPECT_EQ(Deletes(), 1);
}

TEST_F(PreemptorTest, AClockThatIsSetBackDoesNotLengthenAnEvictionPause) {
  AddNode("n1", 1);
  bool refuse = true;
  refuse_bind = [&](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "high" || !refuse) return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "no");
    return true;
  };
  AddRunning("low", "n1", 1);
  AddWaiting("high", 1, 10);
  Settle();
  AddWaiting("next", 1, 0);
  End("low");
  loop_.RunFor(seconds(10));
  EXPECT_EQ(NodeOf("next"), "n1");
  refuse = false;
  loop_.JumpClock(-hours(1));
  loop_.RunFor(kMaxEvictionPause);
  EXPECT_EQ(NodeOf("high"), "n1");
  EXPECT_EQ(Deletes(), 2);
}

TEST_F(PreemptorTest, WhoIsPlacedBesideARefusedOneGoesForItIfThatHelps) {
  AddNode("n1", 2);
  AddRunning("low", "n1", 1);
  AddWaiting("high", 2, 10);
  AddWaiting("late", 1, 0);  // takes the GPU that is free, in the plan that refuses the other
  Settle();
  EXPECT_TRUE(IsEnding("low"));
  EXPECT_EQ(NodeOf("late"), "gone");
  End("low");
  Settle();
  EXPECT_EQ(NodeOf("high"), "n1");
}

TEST_F(PreemptorTest, BudgetsProtectThoseThatTheyMean) {
  AddNode("n1", 1);
  AddNode("n2", 1);
  AddRunning("guarded", "n1", 1, 0);
  AddRunning("free", "n2", 1, 5);
  api_.Put(
      kBudgets,
      json::Obj(
          {{"apiVersion", "policy/v1"},
           {"kind", "PodDisruptionBudget"},
           {"metadata", json::Obj({{"namespace", "default"}, {"name", "b"}})},
           {"spec", json::Obj({{"selector",
                                json::Obj({{"matchLabels", json::Obj({{"app", "guarded"}})}})}})},
           {"status", json::Obj({{"disruptionsAllowed", 0}})}}));
  AddWaiting("high", 1, 10);
  Settle();
  EXPECT_TRUE(IsEnding("free"));
  EXPECT_FALSE(IsEnding("guarded"));
}

TEST_F(PreemptorTest, WorksWithoutBudgetsOnTheServer) {
  const auto before = api_.before_handle;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.target.starts_with("/apis/policy/")) {
      client::FakeApi::SendError(*writer, 404, "NotFound", "not served");
      return false;
    }
    return before(request, writer);
  };
  StartScheduler();
  AddNode("n1", 1);
  AddRunning("low", "n1", 1);
  AddWaiting("high", 1, 10);
  Settle();
  EXPECT_TRUE(IsEnding("low"));
}

TEST_F(PreemptorTest, WritesInFlightAreBounded) {
  std::vector<net::ResponseWriterPtr> held;
  size_t most = 0;
  const auto before = api_.before_handle;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "PATCH" || request.target.find("/status") == std::string::npos)
      return before(request, writer);
    if (!client::FakeApi::BodyOf(request)["status"].Has("nominatedNodeName") &&
        json::Write(client::FakeApi::BodyOf(request)).find("DisruptionTarget") == std::string::npos)
      return before(request, writer);
    held.push_back(writer);
    most = std::max(most, held.size());
    return false;
  };
  for (int i = 0; i < 40; ++i) {
    AddNode(fmt::format("n{}", i), 1);
    AddRunning(fmt::format("low-{}", i), fmt::format("n{}", i), 1);
    AddWaiting(fmt::format("high-{}", i), 1, 10);
  }
  loop_.RunFor(seconds(5));
  EXPECT_EQ(most, kMaxPreemptionWritesInFlight);
}

}  // namespace
}  // namespace muster::scheduler
