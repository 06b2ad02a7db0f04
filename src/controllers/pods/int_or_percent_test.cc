#include "controllers/pods/int_or_percent.h"

#include <gtest/gtest.h>

namespace muster::controllers {
namespace {

TEST(ScaledValue, RoundsAsUpstream) {
  EXPECT_EQ(ScaledValue("25%", 3, true), 1);
  EXPECT_EQ(ScaledValue("25%", 3, false), 0);
  EXPECT_EQ(ScaledValue("100%", 7, true), 7);
  EXPECT_EQ(ScaledValue(2, 7, true), 2);
  EXPECT_EQ(ScaledValue("x%", 7, true), 0);
}

}  // namespace
}  // namespace muster::controllers
