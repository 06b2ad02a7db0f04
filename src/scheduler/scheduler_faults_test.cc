#include "scheduler/scheduler_test_base.h"

namespace muster::scheduler {
namespace {

TEST_F(SchedulerTest, ATerminatingPodKeepsItsDevicesUntilItIsGone) {
  AddNode("n1", 1);
  AddPod("old", 1);
  Settle();
  api_.Put(kPods, api_.Find(kPods, "default", "old")
                      ->SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z"));
  AddPod("new", 1);
  Settle();
  EXPECT_EQ(NodeOf("new"), "");
  api_.Remove(kPods, "default", "old");
  Settle();
  EXPECT_EQ(NodeOf("new"), "n1");
}

TEST_F(SchedulerTest, ABindingWithoutAnAnswerIsRepeatedInPlace) {
  AddNode("n1", 1);
  AddNode("n2", 1);
  lose_bind_answers_ = 2;
  AddPod("p", 1);
  AddPod("q", 1);
  Settle();
  EXPECT_NE(NodeOf("p"), NodeOf("q"));
  EXPECT_FALSE(NodeOf("p").empty());
  ExpectDevicesOwnedOnce();
}

// Its devices are known no more: nothing is bound there without them.
TEST_F(SchedulerTest, ANodeThatGoesBetweenTwoTriesGetsNoPod) {
  AddNode("n1", 1);
  bool gone = false;
  refuse_bind = [&](const std::string&, net::ResponseWriter& writer) {
    if (gone) return false;
    gone = true;
    api_.Remove(kNodes, "", "n1");
    client::FakeApi::SendError(writer, 503, "ServiceUnavailable", "away");
    return true;
  };
  AddPod("p", 1);
  loop_.RunFor(seconds(30));
  EXPECT_TRUE(gone);
  EXPECT_EQ(NodeOf("p"), "");
  AddNode("n2", 1);
  loop_.RunFor(seconds(30));
  EXPECT_EQ(NodeOf("p"), "n2");
  ExpectDevicesOwnedOnce();
}

TEST_F(SchedulerTest, ARefusedPodBacksOffAndBlocksNobody) {
  AddNode("n1", 1);
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "poison") return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "not this one");
    return true;
  };
  AddPod("poison", 1);
  loop_.RunFor(milliseconds(50));
  AddPod("good", 1);
  loop_.RunFor(seconds(60));
  EXPECT_EQ(NodeOf("good"), "n1");
  EXPECT_LT(binds_, 12);
  EXPECT_GE(scheduler_->metrics().errors, 1u);
}

TEST_F(SchedulerTest, AClockThatIsSetBackDoesNotLengthenABackoff) {
  AddNode("n1", 1);
  refuse_bind = [](const std::string&, net::ResponseWriter& writer) {
    client::FakeApi::SendError(writer, 403, "Forbidden", "not now");
    return true;
  };
  AddPod("p", 1);
  loop_.RunFor(milliseconds(50));
  EXPECT_EQ(Condition("p")["reason"].AsString(), "SchedulerError");
  EXPECT_EQ(Condition("p")["message"].AsString(),
            "the binding was refused: not now; next try in 0.1 s");
  refuse_bind = {};
  loop_.JumpClock(-hours(1));
  loop_.RunFor(kMaxBindBackoff);
  EXPECT_EQ(NodeOf("p"), "n1");
}

TEST_F(SchedulerTest, ARefusedGangReleasesAllItsPlacesIfNoneIsBound) {
  AddNode("n1", 2);
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (!pod.starts_with("g-")) return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "quota");
    return true;
  };
  AddGang("g", 2, 1);
  loop_.RunFor(milliseconds(50));
  EXPECT_EQ(Condition("g-0")["reason"].AsString(), "SchedulerError");
  AddGang("h", 2, 1);
  loop_.RunFor(seconds(60));
  EXPECT_EQ(BoundOf("g", 2), 0);
  EXPECT_EQ(BoundOf("h", 2), 2);
}

TEST_F(SchedulerTest, AHalfBoundGangIsCompletedOnItsReservedPlace) {
  AddNode("n1", 2);
  int refusals = 3;
  refuse_bind = [&refusals](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "g-1" || refusals-- <= 0) return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "try again");
    return true;
  };
  AddGang("g", 2, 1);
  loop_.RunFor(milliseconds(50));
  EXPECT_EQ(BoundOf("g", 2), 1);
  AddPod("thief", 1);  // must not get the place that is kept
  loop_.RunFor(seconds(60));
  EXPECT_EQ(BoundOf("g", 2), 2);
  EXPECT_EQ(NodeOf("thief"), "");
}

TEST_F(SchedulerTest, AServerThatFailsABindingForEverDoesNotHoldThePlaceForEver) {
  AddNode("n1", 1);
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "poison") return false;
    client::FakeApi::SendError(writer, 500, "InternalError", "webhook failed");
    return true;
  };
  AddPod("poison", 1);
  AddPod("good", 1);
  loop_.RunFor(minutes(5));
  EXPECT_EQ(NodeOf("good"), "n1");
}

TEST_F(SchedulerTest, ARestartInTheMiddleOfAGangCompletesItFirst) {
  AddNode("n1", 4);
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (pod == "g-0" || pod == "g-1") return false;
    client::FakeApi::SendError(writer, 503, "ServiceUnavailable", "going down");
    return true;
  };
  AddGang("g", 4, 1);
  loop_.RunFor(milliseconds(50));
  EXPECT_EQ(BoundOf("g", 4), 2);
  scheduler_ = nullptr;
  informers_ = nullptr;
  json::Value urgent = MakePod("urgent", 1).SetPath({"spec", "priority"}, 1000);
  // It would evict the gang once that is whole.
  api_.Put(kPods, urgent.SetPath({"spec", "preemptionPolicy"}, "Never"));
  refuse_bind = nullptr;
  StartScheduler();
  Settle();
  EXPECT_EQ(BoundOf("g", 4), 4);
  EXPECT_EQ(NodeOf("urgent"), "");
  ExpectDevicesOwnedOnce();
}

TEST_F(SchedulerTest, RestartWithNothingToDoWritesNothing) {
  AddNode("n1", 1);
  AddPod("p", 1);
  AddPod("waits", 1);
  AddGang("g", 2, 1);
  Settle();
  const uint64_t revision = api_.revision();
  StartScheduler();
  Settle();
  EXPECT_EQ(api_.revision(), revision);
}

TEST_F(SchedulerTest, WorksWithoutPodGroupsOnTheServer) {
  scheduler_ = nullptr;
  informers_ = nullptr;
  api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.target.find("/podgroups") != std::string::npos) {
      client::FakeApi::SendError(*writer, 404, "NotFound",
                                 "the server could not find the requested resource");
      return false;
    }
    return BeforeHandle(request, writer);
  };
  StartScheduler();
  AddNode("n1", 1);
  AddPod("p", 1);
  Settle();
  EXPECT_EQ(NodeOf("p"), "n1");
}

TEST_F(SchedulerTest, TextsOfWaitingPodsAreRewrittenAtABoundedPace) {
  AddNode("n1", 8);
  for (int i = 0; i < 8; ++i) AddPod(fmt::format("x{}", i), 1);
  Settle();
  AddPod("waits", 8);
  Settle();
  const int before = pod_status_writes_;
  for (int i = 0; i < 7; ++i) {
    SetPhase(fmt::format("x{}", i), "Succeeded");
    loop_.RunFor(milliseconds(100));
  }
  EXPECT_LE(pod_status_writes_ - before, 2);
  Settle();
  EXPECT_NE(Condition("waits")["message"].AsString().find("7 of 8 free (1 held by pod default/x7)"),
            std::string_view::npos);
}

TEST_F(SchedulerTest, BindsAndStatusWritesInFlightAreBounded) {
  std::vector<net::ResponseWriterPtr> held;
  size_t binds = 0, statuses = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    const bool is_bind = request.target.find("/binding") != std::string::npos;
    const bool is_status = request.target.find("/status") != std::string::npos;
    binds += is_bind ? 1 : 0;
    statuses += is_status ? 1 : 0;
    if (is_bind || is_status) held.push_back(writer);
    return !is_bind && !is_status;
  };
  for (int i = 0; i < 10; ++i) AddNode(fmt::format("n{}", i), 60);
  for (int i = 0; i < 600; ++i) AddPod(fmt::format("p{}", i), 1);
  for (int i = 0; i < 100; ++i) AddPod(fmt::format("waits{}", i), 61);
  loop_.RunFor(milliseconds(100));
  EXPECT_EQ(binds, kMaxBindsInFlight);
  EXPECT_EQ(statuses, kMaxStatusWritesInFlight);
  EXPECT_FALSE(scheduler_->Idle());
}

// Random arrivals, departures, refusals, lost answers, broken watches and restarts: nothing is ever
// owned twice or bound twice, gangs are whole when the world has been calm for a while.
TEST_F(SchedulerTest, KeepsItsPromisesUnderFaults) {
  int refused = 0, lost = 0, restarts = 0, watches_cut = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    api_.objects.clear();
    api_.CutWatches(/*expired=*/true);
    StartScheduler();
    refuse_bind = [&](const std::string&, net::ResponseWriter& writer) {
      if (!rng.Chance(0.15)) return false;
      ++refused;
      client::FakeApi::SendError(writer, rng.Chance(0.5) ? 403 : 503,
                                 rng.Chance(0.5) ? "Forbidden" : "ServiceUnavailable", "no");
      return true;
    };
    std::map<std::string, int> gangs;
    for (int i = 0; i < 3; ++i) AddNode(fmt::format("n{}", i), 4);
    for (int step = 0; step < 30; ++step) {
      const std::string name = fmt::format("s{}u{}", seed, step);
      const uint64_t action = rng.Below(8);
      if (action < 3) {
        gangs[name] = static_cast<int>(rng.Between(1, 6));
        AddGang(name, gangs[name], static_cast<int>(rng.Between(1, 2)));
      } else if (action == 3) {
        AddPod(name, static_cast<int>(rng.Between(1, 4)));
      } else if (action == 4 && !gangs.empty()) {
        const auto gang = std::next(gangs.begin(), static_cast<ptrdiff_t>(rng.Below(gangs.size())));
        for (int i = 0; i < gang->second; ++i)
          api_.Remove(kPods, "default", fmt::format("{}-{}", gang->first, i));
        api_.Remove(kGroups, "default", gang->first);
        gangs.erase(gang);
      } else if (action == 5 && rng.Chance(0.3)) {
        ++restarts;
        StartScheduler();
      } else if (action == 6 && rng.Chance(0.3)) {
        ++watches_cut;
        api_.CutWatches(rng.Chance(0.5));
      } else if (action == 7) {
        ++lost;
        lose_bind_answers_ = 1;
      }
      loop_.RunFor(milliseconds(rng.Between(0, 500)));
      ExpectDevicesOwnedOnce();
    }
    refuse_bind = nullptr;
    lose_bind_answers_ = 0;
    loop_.RunFor(minutes(3));
    EXPECT_TRUE(scheduler_->Idle()) << "seed " << seed;
    ExpectDevicesOwnedOnce();
    for (const auto& [gang, members] : gangs) {
      const int bound = BoundOf(gang, members);
      EXPECT_TRUE(bound == 0 || bound == members)
          << "seed " << seed << " gang " << gang << " bound " << bound;
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(lost, 0);
  EXPECT_GT(restarts, 0);
  EXPECT_GT(watches_cut, 0);
}

// Found by simulation (seed 631): the place of a bound pod was given to another.
TEST(Binder, AConflictWithItsOwnLostBindingIsNoRefusal) {
  SimLoop loop;
  client::FakeApi api(loop);
  client::InProcessTransport transport(loop, api, {});
  client::ApiClient client(loop, transport, "scheduler");
  api.Put(kPods, json::Obj({{"metadata", json::Obj({{"namespace", "d"}, {"name", "p"}})}}));
  int binds = 0;
  api.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "POST") return true;
    if (++binds == 1) {
      api.Put(kPods, api.Find(kPods, "d", "p")->SetPath({"spec", "nodeName"}, "n1"));
      client::FakeApi::SendError(*writer, 504, "Timeout", "lost");
    } else {
      client::FakeApi::SendError(*writer, 409, "Conflict", "already assigned to node n1");
    }
    return false;
  };
  int bound = 0, released = 0;
  Binder binder(client,
                {.binding_of =
                     [](const cluster::PodKey&) {
                       return json::Obj({{"target", json::Obj({{"name", "n1"}})}});
                     },
                 .on_bound = [&](const cluster::PodKey&, const json::Value&) { ++bound; },
                 .on_released = [&](const cluster::PodKey&, const Status&) { ++released; }});
  binder.Bind({{"d", "p"}}, false);
  loop.RunFor(seconds(60));
  EXPECT_EQ(binds, 2);
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(released, 0);
}

TEST(Binder, BacksOffFromATenthOfASecondToTenSeconds) {
  EXPECT_EQ(BindBackoff(1), milliseconds(100));
  EXPECT_EQ(BindBackoff(2), milliseconds(200));
  EXPECT_EQ(BindBackoff(100), kMaxBindBackoff);
}

}  // namespace
}  // namespace muster::scheduler
