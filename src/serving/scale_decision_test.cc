#include "serving/scale_decision.h"

#include <gtest/gtest.h>

namespace muster::serving {
namespace {

class ScaleDecisionTest : public testing::Test {
 protected:
  // `rate` requests a second and so many in flight for so long.
  void Pass(int seconds_passed, uint64_t rate, int64_t in_flight) {
    for (int i = 0; i < seconds_passed; ++i) {
      now_ += seconds(1);
      requests_ += rate;
      history_.Add({now_, requests_, in_flight}, policy_.window);
    }
  }
  int64_t Wanted() { return present_ = WantedByTraffic(policy_, history_, present_); }

  ScalePolicy policy_{
      .least = 1, .most = 5, .metric = ScaleMetric::kRps, .target = 10, .window = seconds(10)};
  TrafficHistory history_;
  Duration now_ = seconds(1000);
  uint64_t requests_ = 0;
  int64_t present_ = 1;
};

TEST_F(ScaleDecisionTest, FollowsTheRateBetweenItsBounds) {
  Pass(11, 25, 1);
  EXPECT_EQ(Wanted(), 3);
  Pass(11, 1000, 1);
  EXPECT_EQ(Wanted(), 5);
  Pass(11, 0, 0);
  EXPECT_EQ(Wanted(), 1);
}

TEST_F(ScaleDecisionTest, ARushCountsAtOnceAndItsEndOnlyWhenTheWindowIsOver) {
  policy_.window = seconds(60);
  Pass(61, 1, 0);
  Pass(6, 40, 4);
  EXPECT_EQ(Wanted(), 4);
  Pass(30, 0, 0);
  EXPECT_EQ(Wanted(), 1);  // 240 requests in 60 s are 4 a second
}

TEST_F(ScaleDecisionTest, FollowsConcurrency) {
  policy_.metric = ScaleMetric::kConcurrency;
  Pass(11, 1, 35);
  EXPECT_EQ(Wanted(), 4);
}

TEST_F(ScaleDecisionTest, SleepsAfterAWholeWindowWithoutRequestsAndIsWokenByOneThatWaits) {
  policy_.least = 0;
  Pass(5, 1, 1);
  Pass(9, 0, 0);
  EXPECT_EQ(Wanted(), 1);
  Pass(1, 0, 0);
  EXPECT_EQ(Wanted(), 0);
  Pass(1, 0, 0);
  EXPECT_EQ(Wanted(), 0);
  Pass(1, 1, 1);
  EXPECT_EQ(Wanted(), 1);
}

TEST_F(ScaleDecisionTest, WhoIsAnsweredSlowlyDoesNotSleep) {
  policy_.least = 0;
  Pass(1, 1, 1);
  Pass(60, 0, 1);
  EXPECT_EQ(Wanted(), 1);
}

TEST_F(ScaleDecisionTest, TheFirstLookIsNoIdleWindow) {
  policy_.least = 0;
  requests_ = 1'000'000;
  Pass(1, 0, 0);
  EXPECT_EQ(Wanted(), 1);
}

}  // namespace
}  // namespace muster::serving
