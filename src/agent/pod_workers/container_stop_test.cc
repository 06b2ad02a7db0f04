#include "agent/pod_workers/container_stop.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using Do = ContainerStop::Do;
constexpr Time kNow = Time(seconds(1767225600));
constexpr Duration kGrace = seconds(30);

TEST(ContainerStop, SignalsAndKillsWhenTheGraceIsOver) {
  ContainerStop stop(kNow, /*has_hook=*/false);
  EXPECT_EQ(stop.Next(kNow, kGrace, true), Do::kSignal);
  EXPECT_EQ(stop.Next(kNow, kGrace, true), Do::kWait);
  EXPECT_EQ(stop.due(), kNow + kGrace);
  EXPECT_EQ(stop.Next(kNow + kGrace, kGrace, true), Do::kKill);
  EXPECT_EQ(stop.Next(kNow + kGrace, kGrace, true), Do::kWait);
  EXPECT_EQ(stop.due(), kNow + kGrace + kKillPatience);
  EXPECT_EQ(stop.Next(stop.due(), kGrace, true), Do::kKillSandbox);
  EXPECT_EQ(stop.Next(stop.due() - seconds(1), kGrace, true), Do::kWait);
  EXPECT_EQ(stop.Next(stop.due(), kGrace, true), Do::kKillSandbox) << "again and again";
}

TEST(ContainerStop, TheHookComesBeforeTheSignalAndCountsAgainstTheGrace) {
  ContainerStop stop(kNow, /*has_hook=*/true);
  EXPECT_EQ(stop.Next(kNow, kGrace, true), Do::kRunHook);
  EXPECT_EQ(stop.Next(kNow + seconds(29), kGrace, true), Do::kWait) << "it runs";
  EXPECT_EQ(stop.due(), kNow + kGrace);
  stop.HookDone();
  EXPECT_EQ(stop.Next(kNow + seconds(29), kGrace, true), Do::kSignal);
  EXPECT_EQ(stop.Next(kNow + seconds(29), kGrace, true), Do::kWait);
  EXPECT_EQ(stop.due(), kNow + seconds(29) + kMinStopWindow) << "a last chance";
  EXPECT_EQ(stop.Next(stop.due(), kGrace, true), Do::kKill);
}

TEST(ContainerStop, AHookThatHangsIsLeftBehind) {
  ContainerStop stop(kNow, /*has_hook=*/true);
  EXPECT_EQ(stop.Next(kNow, kGrace, true), Do::kRunHook);
  EXPECT_EQ(stop.Next(kNow + kGrace, kGrace, true), Do::kSignal);
  EXPECT_EQ(stop.Next(kNow + kGrace, kGrace, true), Do::kWait);
  EXPECT_EQ(stop.due(), kNow + kGrace + kMinStopWindow);
}

TEST(ContainerStop, WaitsForItsTurnAsLongAsThereIsGrace) {
  ContainerStop stop(kNow, false);
  EXPECT_EQ(stop.Next(kNow, kGrace, false), Do::kWait);
  EXPECT_EQ(stop.due(), kNow + kGrace);
  EXPECT_EQ(stop.Next(kNow + seconds(3), kGrace, true), Do::kSignal);
  ContainerStop late(kNow, false);
  EXPECT_EQ(late.Next(kNow + kGrace, kGrace, false), Do::kSignal);
}

TEST(ContainerStop, WithoutGraceItIsKilledWhateverItWasDoing) {
  for (const bool hook : {false, true}) {
    ContainerStop at_once(kNow, hook);
    EXPECT_EQ(at_once.Next(kNow, Duration(), false), Do::kKill);
    ContainerStop later(kNow, hook);
    EXPECT_EQ(later.Next(kNow, kGrace, true), hook ? Do::kRunHook : Do::kSignal);
    EXPECT_EQ(later.Next(kNow + seconds(1), Duration(), true), Do::kKill);
    EXPECT_EQ(later.Next(kNow + seconds(1), Duration(), true), Do::kWait);
  }
}

TEST(ContainerStop, AShorterGraceHoldsAtOnce) {
  ContainerStop stop(kNow, false);
  EXPECT_EQ(stop.Next(kNow, kGrace, true), Do::kSignal);
  EXPECT_EQ(stop.Next(kNow + seconds(5), seconds(3), true), Do::kKill);
}

}  // namespace
}  // namespace muster::agent
