#include "agent/probes/probe_state.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::agent {
namespace {

constexpr Time kNow = Time(seconds(1767225600));

ProbeSpec Spec(const std::string& text) { return ProbeSpecOf(*json::Parse(text)); }
Time At(int64_t s) { return kNow + seconds(s); }

TEST(ProbeState, AbsentFieldsHaveUpstreamsDefaults) {
  const ProbeSpec spec = Spec(R"({"periodSeconds":0})");
  EXPECT_EQ(spec.period, seconds(10));
  EXPECT_EQ(spec.timeout, seconds(1));
  EXPECT_EQ(spec.success_threshold, 1);
  EXPECT_EQ(spec.failure_threshold, 3);
}

TEST(ProbeState, IsAskedAtItsTicksAfterTheInitialDelay) {
  ProbeState probe(ProbeKind::kLiveness, Spec(R"({"initialDelaySeconds":15})"), kNow);
  EXPECT_EQ(probe.Due(true), std::nullopt) << "nothing runs";
  probe.Begin(At(1), At(1));
  EXPECT_EQ(probe.Due(true), At(20));
  probe.Asked();
  EXPECT_EQ(probe.Due(true), std::nullopt) << "one question at a time";
  EXPECT_FALSE(probe.Answered(true, At(20)));
  EXPECT_EQ(probe.Due(true), At(30));
  probe.Answered(true, At(47));
  EXPECT_EQ(probe.Due(true), At(50)) << "ticks that passed meanwhile are lost";
  probe.End();
  EXPECT_EQ(probe.Due(true), std::nullopt);
}

TEST(ProbeState, LivenessFailsAfterItsThresholdAndIsThenLeftAlone) {
  ProbeState probe(ProbeKind::kLiveness, Spec(R"({"failureThreshold":2})"), kNow);
  probe.Begin(kNow, kNow);
  EXPECT_EQ(probe.verdict(), ProbeVerdict::kSuccess) << "until shown otherwise";
  EXPECT_FALSE(probe.Answered(false, At(0)));
  EXPECT_FALSE(probe.Answered(true, At(10)));
  EXPECT_FALSE(probe.Answered(false, At(20))) << "in a row";
  EXPECT_FALSE(probe.Answered(std::nullopt, At(30))) << "that was no answer";
  EXPECT_TRUE(probe.Answered(false, At(40)));
  EXPECT_EQ(probe.verdict(), ProbeVerdict::kFailure);
  EXPECT_EQ(probe.Due(true), std::nullopt) << "it will be killed";
  probe.End();
  probe.Begin(At(45), At(45));
  EXPECT_EQ(probe.verdict(), ProbeVerdict::kSuccess);
  EXPECT_EQ(probe.Due(true), At(50));
}

TEST(ProbeState, ReadinessCountsBothWays) {
  ProbeState probe(ProbeKind::kReadiness, Spec(R"({"successThreshold":2,"failureThreshold":3})"),
                   kNow);
  probe.Begin(kNow, kNow);
  EXPECT_EQ(probe.verdict(), ProbeVerdict::kFailure);
  EXPECT_FALSE(probe.Answered(true, At(0)));
  EXPECT_TRUE(probe.Answered(true, At(10)));
  // One that flaps below its threshold changes nothing.
  for (int i = 2; i < 20; ++i) EXPECT_FALSE(probe.Answered(i % 3 == 0, At(10 * i)));
  EXPECT_EQ(probe.verdict(), ProbeVerdict::kSuccess);
  EXPECT_FALSE(probe.Answered(false, At(200)));
  EXPECT_TRUE(probe.Answered(false, At(210))) << "the third in a row";
  EXPECT_NE(probe.Due(true), std::nullopt) << "it may come back";
}

TEST(ProbeState, OthersWaitForTheStartupProbe) {
  ProbeState startup(ProbeKind::kStartup, Spec(R"({"periodSeconds":1})"), kNow);
  ProbeState readiness(ProbeKind::kReadiness, Spec("{}"), kNow);
  startup.Begin(At(1), At(1));
  readiness.Begin(At(1), At(1));
  EXPECT_EQ(startup.Due(false), At(1));
  EXPECT_EQ(readiness.Due(false), std::nullopt);
  EXPECT_EQ(startup.verdict(), ProbeVerdict::kUnknown);
  EXPECT_TRUE(startup.Answered(true, At(4)));
  EXPECT_EQ(startup.Due(true), std::nullopt);
  EXPECT_EQ(readiness.Due(true), At(10));
  readiness.Hurry(At(4));
  EXPECT_EQ(readiness.Due(true), At(4)) << "nobody waits for a tick to take work";
}

TEST(ProbeState, HurryRespectsTheInitialDelay) {
  ProbeState probe(ProbeKind::kReadiness, Spec(R"({"initialDelaySeconds":5})"), kNow);
  probe.Begin(kNow, kNow);
  probe.Hurry(At(1));
  EXPECT_EQ(probe.Due(true), At(10));
}

TEST(ProbeState, GoesOnFromWhatAnEarlierAgentKnew) {
  ProbeState readiness(ProbeKind::kReadiness, Spec("{}"), At(3));
  readiness.Begin(kNow, kNow, ProbeVerdict::kSuccess);
  EXPECT_EQ(readiness.verdict(), ProbeVerdict::kSuccess);
  EXPECT_EQ(readiness.Due(true), At(3));
  ProbeState startup(ProbeKind::kStartup, Spec("{}"), kNow);
  startup.Begin(kNow, kNow, ProbeVerdict::kSuccess);
  EXPECT_EQ(startup.Due(true), std::nullopt);
  EXPECT_EQ(startup.Due(false), std::nullopt);
}

TEST(ProbeState, ALateAnswerOfAnEndedContainerCountsForNothing) {
  ProbeState probe(ProbeKind::kReadiness, Spec("{}"), kNow);
  probe.Begin(kNow, kNow);
  probe.Asked();
  probe.End();
  EXPECT_FALSE(probe.Answered(true, At(1)));
  EXPECT_EQ(probe.verdict(), ProbeVerdict::kFailure);
}

TEST(ProbeState, RetiresForGood) {
  ProbeState probe(ProbeKind::kLiveness, Spec(R"({"failureThreshold":1})"), kNow);
  probe.Begin(kNow, kNow);
  probe.Asked();
  probe.Retire();
  EXPECT_FALSE(probe.Answered(false, At(1)));
  EXPECT_EQ(probe.Due(true), std::nullopt);
}

}  // namespace
}  // namespace muster::agent
