#include "base/smooth_clock.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace muster {
namespace {

const Time kStart{seconds(1'767'225'600)};

TEST(SmoothClock, IsTheWallClockWhileNobodySetsIt) {
  SmoothClock clock;
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(clock.Read(kStart + seconds(i), seconds(50 + i)), kStart + seconds(i));
}

TEST(SmoothClock, AnHourForwardIsCaughtUpInTwo) {
  SmoothClock clock;
  clock.Read(kStart, seconds(0));
  EXPECT_EQ(clock.Read(kStart + hours(1) + seconds(10), seconds(10)), kStart + seconds(15));
  EXPECT_LT(clock.Read(kStart + hours(2), hours(1)), kStart + hours(2));
  EXPECT_EQ(clock.Read(kStart + hours(3), hours(2)), kStart + hours(3));
}

TEST(SmoothClock, AnHourBackIsWaitedForAtHalfSpeed) {
  SmoothClock clock;
  clock.Read(kStart, seconds(0));
  EXPECT_EQ(clock.Read(kStart - hours(1) + seconds(10), seconds(10)), kStart + seconds(5));
  EXPECT_EQ(clock.Read(kStart + hours(1), hours(2)), kStart + hours(1));
}

TEST(SmoothClock, AClockThatWasNeverSetIsFollowedAtOnce) {
  SmoothClock clock;
  clock.Read(Time(seconds(60)), seconds(60));
  EXPECT_EQ(clock.Read(kStart, seconds(61)), kStart);
  EXPECT_EQ(clock.Read(Time(seconds(62)), seconds(62)), Time(seconds(62)));
}

TEST(SmoothClock, NeverGoesBackNorFasterThanOneAndAHalf) {
  Rng rng(1);
  SmoothClock clock;
  Duration monotonic{0};
  Duration offset{0};
  Time before = clock.Read(kStart, monotonic);
  for (int i = 0; i < 10'000; ++i) {
    if (rng.Chance(0.01)) offset = seconds(rng.Between(-3600, 3600));
    const Duration passed = milliseconds(rng.Between(0, 20'000));
    monotonic += passed;
    const Time now = clock.Read(kStart + monotonic + offset, monotonic);
    ASSERT_GE(now - before, passed / 2 - Duration(1));
    ASSERT_LE(now - before, passed + passed / 2);
    before = now;
  }
}

}  // namespace
}  // namespace muster
