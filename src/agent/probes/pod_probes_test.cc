#include "agent/probes/pod_probes.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "json/parse.h"
#include "loop/sim_loop.h"

namespace muster::agent {
namespace {

using Is = HandlerResult::Is;

// Answers each action by its first word, after `takes`.
class FakeHandlerRunner final : public HandlerRunner {
 public:
  explicit FakeHandlerRunner(Loop& loop) : loop_(loop) {}

  std::unique_ptr<HandlerRun> Run(const HandlerTarget& target, const HandlerAction& action,
                                  std::optional<Duration> timeout, Done done) override {
    const std::string key = target.container + "/" + action.command.front();
    ++asked[key];
    last_timeout = timeout;
    struct FakeRun final : HandlerRun {
      FakeRun(Loop& loop, TimerId timer) : loop_(loop), timer_(timer) {}
      ~FakeRun() override { loop_.Cancel(timer_); }
      Loop& loop_;
      TimerId timer_;
    };
    const HandlerResult result =
        answers.contains(key) ? answers[key] : HandlerResult{Is::kSuccess, ""};
    return std::make_unique<FakeRun>(loop_,
                                     loop_.After(takes, [result, done = std::move(done)]() mutable {
                                       Done local = std::move(done);
                                       local(result);
                                     }));
  }

  std::map<std::string, int> asked;
  std::map<std::string, HandlerResult> answers;
  std::optional<Duration> last_timeout;
  Duration takes = milliseconds(10);

 private:
  Loop& loop_;
};

struct Fixture {
  explicit Fixture(const std::string& probes, bool recovered = false)
      : probes_(loop, runner,
                *json::Parse(R"({"metadata":{"uid":"u"},"spec":{"containers":[{"name":"c")" +
                             probes + "}]}}"),
                recovered,
                {[this](size_t) { ++changes; },
                 [this](std::string_view reason, const std::string& message) {
                   warnings.push_back(fmt::format("{}: {}", reason, message));
                 },
                 [] { return std::string("10.42.0.2"); }}) {}

  SimLoop loop;
  FakeHandlerRunner runner{loop};
  int changes = 0;
  std::vector<std::string> warnings;
  PodProbes probes_;
};

std::string Exec(const std::string& kind, const std::string& more = "") {
  return R"(,")" + kind + R"(Probe":{"exec":{"command":[")" + kind + R"("]})" + more + "}";
}

TEST(PodProbes, AContainerWithoutProbesIsReadyWhenItRuns) {
  Fixture f("");
  f.probes_.Begin(0, f.loop.Now());
  EXPECT_TRUE(f.probes_.Started(0));
  EXPECT_TRUE(f.probes_.Ready(0));
  EXPECT_FALSE(f.loop.NextDue().has_value()) << "it costs nothing";
}

TEST(PodProbes, ReadyComesWithTheFirstAnswerAndChangesAreToldOnce) {
  Fixture f(Exec("readiness", R"(,"periodSeconds":1,"failureThreshold":2,"timeoutSeconds":4)"));
  f.probes_.Begin(0, f.loop.Now());
  EXPECT_FALSE(f.probes_.Ready(0));
  f.loop.RunFor(milliseconds(100));
  EXPECT_TRUE(f.probes_.Ready(0));
  EXPECT_EQ(f.runner.last_timeout, seconds(4));
  f.loop.RunFor(seconds(100));
  EXPECT_EQ(f.changes, 1);
  EXPECT_EQ(f.runner.asked["c/readiness"], 101);
  f.runner.answers["c/readiness"] = {Is::kFailure, "HTTP probe failed with statuscode: 500"};
  f.loop.RunFor(seconds(10));
  EXPECT_FALSE(f.probes_.Ready(0));
  EXPECT_EQ(f.changes, 2);
  EXPECT_EQ(f.warnings.front(),
            "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500");
}

TEST(PodProbes, AProbeThatFlapsBelowItsThresholdChangesNothing) {
  Fixture f(Exec("readiness", R"(,"periodSeconds":1,"failureThreshold":2)"));
  f.probes_.Begin(0, f.loop.Now());
  f.loop.RunFor(milliseconds(100));
  for (int i = 0; i < 50; ++i) {
    f.runner.answers["c/readiness"] = {i % 2 == 0 ? Is::kFailure : Is::kSuccess, "no"};
    f.loop.RunFor(seconds(1));
  }
  EXPECT_EQ(f.changes, 1) << "that it became ready";
  EXPECT_TRUE(f.probes_.Ready(0));
}

TEST(PodProbes, TheStartupProbeGatesTheOthers) {
  Fixture f(Exec("startup", R"(,"periodSeconds":1)") + Exec("liveness") + Exec("readiness"));
  f.runner.answers["c/startup"] = {Is::kFailure, "not yet"};
  f.loop.RunFor(milliseconds(500));
  f.probes_.Begin(0, f.loop.Now());
  f.loop.RunFor(seconds(2));
  EXPECT_FALSE(f.probes_.Started(0));
  EXPECT_EQ(f.runner.asked["c/readiness"] + f.runner.asked["c/liveness"], 0);
  EXPECT_EQ(f.warnings.back(), "Unhealthy: Startup probe failed: not yet");
  f.runner.answers.clear();
  f.loop.RunFor(seconds(1));
  EXPECT_TRUE(f.probes_.Started(0));
  EXPECT_TRUE(f.probes_.Ready(0)) << "asked at once, not at its next tick";
  EXPECT_EQ(f.changes, 2);
  const int asked = f.runner.asked["c/startup"];
  f.loop.RunFor(seconds(60));
  EXPECT_EQ(f.runner.asked["c/startup"], asked) << "never again";
}

TEST(PodProbes, SaysWhichProbeFailedAndForgetsItWithTheNextRun) {
  for (const std::string kind : {"liveness", "startup"}) {
    Fixture f(Exec(kind, R"(,"periodSeconds":1,"failureThreshold":3)"));
    f.runner.answers["c/" + kind] = {Is::kFailure, "x"};
    f.probes_.Begin(0, f.loop.Now());
    f.loop.RunFor(milliseconds(1500));
    EXPECT_FALSE(f.probes_.Failed(0));
    f.loop.RunFor(seconds(60));
    ASSERT_TRUE(f.probes_.Failed(0).has_value());
    EXPECT_EQ(*f.probes_.Failed(0),
              kind == "liveness" ? ProbeKind::kLiveness : ProbeKind::kStartup);
    EXPECT_EQ(f.runner.asked["c/" + kind], 3) << "it will be killed";
    f.probes_.End(0);
    f.probes_.Begin(0, f.loop.Now());
    EXPECT_FALSE(f.probes_.Failed(0));
  }
}

TEST(PodProbes, WhatCouldNotBeAskedIsNoAnswer) {
  Fixture f(Exec("liveness", R"(,"periodSeconds":1,"failureThreshold":1)"));
  f.runner.answers["c/liveness"] = {Is::kUnknown, "no such program"};
  f.probes_.Begin(0, f.loop.Now());
  f.loop.RunFor(seconds(10));
  EXPECT_FALSE(f.probes_.Failed(0));
  EXPECT_EQ(f.warnings.front(),
            "Unhealthy: Liveness probe errored and resulted in unknown state: no such program");
  Fixture nowhere(R"(,"readinessProbe":{"httpGet":{"port":"web","path":"/"}})");
  nowhere.probes_.Begin(0, nowhere.loop.Now());
  nowhere.loop.RunFor(seconds(1));
  EXPECT_NE(nowhere.warnings.front().find("couldn't find port: web"), std::string::npos);
}

TEST(PodProbes, AWarningIsASuccessWithAnEvent) {
  Fixture f(Exec("readiness"));
  f.runner.answers["c/readiness"] = {Is::kWarning, "Probe terminated redirects"};
  f.probes_.Begin(0, f.loop.Now());
  f.loop.RunFor(seconds(1));
  EXPECT_TRUE(f.probes_.Ready(0));
  EXPECT_EQ(f.warnings.front(),
            "ProbeWarning: Readiness probe warning: Probe terminated redirects");
}

TEST(PodProbes, AnEndingPodIsAskedOnlyWhetherItIsReady) {
  Fixture f(Exec("liveness", R"(,"periodSeconds":1,"failureThreshold":1)") +
            Exec("readiness", R"(,"periodSeconds":1,"failureThreshold":1)"));
  f.probes_.Begin(0, f.loop.Now());
  f.loop.RunFor(seconds(2));
  f.probes_.RetireLivenessAndStartup();
  f.runner.answers["c/liveness"] = f.runner.answers["c/readiness"] = {Is::kFailure, "x"};
  f.loop.RunFor(seconds(2));
  EXPECT_FALSE(f.probes_.Failed(0));
  EXPECT_FALSE(f.probes_.Ready(0));
}

TEST(PodProbes, APodThatWasReadyStaysSoUnderANewAgent) {
  Fixture f(Exec("startup") + Exec("readiness"), /*recovered=*/true);
  f.probes_.Begin(0, f.loop.Now() - minutes(5), PodProbes::Known{true, true});
  EXPECT_TRUE(f.probes_.Started(0));
  EXPECT_TRUE(f.probes_.Ready(0));
  f.loop.RunFor(seconds(30));
  EXPECT_EQ(f.changes, 0);
  EXPECT_GE(f.runner.asked["c/readiness"], 2);
  EXPECT_EQ(f.runner.asked["c/startup"], 0);
}

TEST(PodProbes, AnEndedContainerIsNotAsked) {
  Fixture f(Exec("readiness", R"(,"periodSeconds":1)"));
  f.probes_.Begin(0, f.loop.Now());
  f.loop.RunReady();  // it is being asked
  f.probes_.End(0);
  f.loop.RunFor(seconds(10));
  EXPECT_EQ(f.changes, 0);
  EXPECT_LE(f.runner.asked["c/readiness"], 1);
}

}  // namespace
}  // namespace muster::agent
