#include "loop/task_times.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TaskTimesTest, ATimeIsCountedUpToAndWithItsBound) {
  TaskTimes times;
  times.Record(microseconds(100));
  times.Record(microseconds(101));
  times.Record(milliseconds(5));
  times.Record(seconds(2));
  const TaskTimes::Snapshot snapshot = times.Read();
  EXPECT_EQ(snapshot.counts[0], 1U);
  EXPECT_EQ(snapshot.counts[1], 1U);
  EXPECT_EQ(snapshot.counts[4], 1U);
  EXPECT_EQ(snapshot.counts.back(), 1U);
  EXPECT_EQ(snapshot.sum, microseconds(201) + milliseconds(5) + seconds(2));
}

TEST(TaskTimesTest, TheLongestBeginsAnewOnceAskedFor) {
  TaskTimes times;
  times.Record(milliseconds(3));
  times.Record(milliseconds(1));
  EXPECT_EQ(times.TakeLongest(), milliseconds(3));
  EXPECT_EQ(times.TakeLongest(), Duration(0));
  EXPECT_EQ(times.Read().counts[4], 1U);
}

}  // namespace
}  // namespace muster
