#include "gpu/idle_gpus.h"

#include <gtest/gtest.h>

namespace muster::gpu {
namespace {

class IdleGpusTest : public testing::Test {
 protected:
  // Looks every five seconds, for so long; the notices of these looks.
  std::vector<IdleGpus::Notice> Look(Duration time, int64_t percent,
                                     const std::vector<std::string>& holders = {"p"}) {
    std::vector<IdleGpus::Notice> all;
    for (const Time end = now_ + time; now_ < end; now_ += seconds(5)) {
      for (const IdleGpus::Notice& each : idle_.Observe({{"GPU-a", percent, holders}}, now_))
        all.push_back(each);
    }
    return all;
  }
  Time now_{seconds(1000)};
  IdleGpus idle_{minutes(30)};
};

TEST_F(IdleGpusTest, IsToldOfAfterTheTimeAndAtEachDoubling) {
  EXPECT_TRUE(Look(minutes(30), kIdlePercent).empty());
  const auto notices = Look(minutes(4 * 60), 0);
  ASSERT_EQ(notices.size(), 4u);
  EXPECT_EQ(notices[0].idle, minutes(30));
  EXPECT_EQ(notices[1].idle, minutes(60));
  EXPECT_EQ(notices[2].idle, minutes(120));
  EXPECT_EQ(notices[3].idle, minutes(240));
  EXPECT_EQ(notices[0].holder, "p");
  EXPECT_FALSE(notices[0].works);
}

TEST_F(IdleGpusTest, WorkBeginsItAnewAndIsToldOfOnceAfterANotice) {
  Look(minutes(29), 0);
  EXPECT_TRUE(Look(seconds(5), kIdlePercent + 1).empty());
  EXPECT_TRUE(Look(minutes(29), 0).empty());
  EXPECT_EQ(Look(minutes(5), 0).size(), 1u);
  const auto notices = Look(minutes(5), 90);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_TRUE(notices[0].works);
  EXPECT_GE(notices[0].idle, minutes(30));
  EXPECT_EQ(Look(minutes(31), 0).size(), 1u);
}

TEST_F(IdleGpusTest, WhoComesLaterIsToldLater) {
  Look(minutes(20), 0);
  const auto notices = Look(minutes(15), 0, {"p", "q"});
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].holder, "p");
  // Given back and taken again: it counts from then on, and nobody is told that it works.
  Look(seconds(5), 0, {});
  EXPECT_TRUE(Look(minutes(29), 0).empty());
  EXPECT_TRUE(Look(seconds(5), 90).empty());
}

TEST_F(IdleGpusTest, WhatTheDriverDoesNotTellChangesNothing) {
  EXPECT_TRUE(Look(hours(2), -1).empty());
  EXPECT_EQ(Look(seconds(5), 0).size(), 1u);
}

TEST_F(IdleGpusTest, AClockThatIsSetBackTellsNoLie) {
  Look(minutes(20), 0);
  now_ -= minutes(60);
  EXPECT_TRUE(Look(minutes(30), 0).empty());
  EXPECT_EQ(Look(minutes(1), 0).size(), 1u);
}

TEST_F(IdleGpusTest, ZeroIsNever) {
  IdleGpus never{Duration(0)};
  EXPECT_TRUE(never.Observe({{"GPU-a", 0, {"p"}}}, now_).empty());
  EXPECT_TRUE(never.Observe({{"GPU-a", 0, {"p"}}}, now_ + hours(24)).empty());
}

}  // namespace
}  // namespace muster::gpu
