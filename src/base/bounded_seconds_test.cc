#include "base/bounded_seconds.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(BoundedSeconds, ReachNoFurtherThanTimesDo) {
  EXPECT_EQ(BoundedSeconds(30), seconds(30));
  EXPECT_EQ(BoundedSeconds(-30), seconds(-30));
  const Time now = *ParseTime("2026-01-02T03:04:05Z");
  for (const int64_t many : {int64_t{9'999'999'999}, int64_t{99'999'999'999'999}, INT64_MAX}) {
    EXPECT_GT(now + BoundedSeconds(many), now + seconds(2'000'000'000)) << many;
    EXPECT_LT(now + BoundedSeconds(-many), now - seconds(2'000'000'000)) << many;
    EXPECT_EQ(BoundSeconds(many), kMaxWrittenSeconds);
  }
  EXPECT_EQ(BoundSeconds(INT64_MIN), -kMaxWrittenSeconds);
}

}  // namespace
}  // namespace muster
