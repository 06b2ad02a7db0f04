#include "schema/conditions.h"

#include <gtest/gtest.h>

namespace muster::schema {
namespace {

const json::Value kConditions =
    json::List({json::Obj({{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", "then"}}),
                json::Obj({{"type", "Busy"}, {"status", "False"}})});

TEST(Conditions, FindsByType) {
  EXPECT_EQ(FindCondition(kConditions, "Busy")["status"].AsString(), "False");
  EXPECT_TRUE(FindCondition(kConditions, "Idle").IsNull());
  EXPECT_TRUE(FindCondition(json::Value(), "Idle").IsNull());
  EXPECT_TRUE(ConditionHolds(kConditions, "Ready"));
  EXPECT_FALSE(ConditionHolds(kConditions, "Busy"));
  EXPECT_FALSE(ConditionHolds(kConditions, "Idle"));
}

TEST(Conditions, KeepTheTimeOfAStatusThatStays) {
  const Time now = *ParseTime("2026-01-02T03:04:05Z");
  const json::Value& ready = FindCondition(kConditions, "Ready");
  EXPECT_EQ(TransitionTime(ready, "True", now).AsString(), "then");
  EXPECT_EQ(TransitionTime(ready, "False", now).AsString(), "2026-01-02T03:04:05Z");
  EXPECT_EQ(TransitionTime(json::Value(), "True", now).AsString(), "2026-01-02T03:04:05Z");
  // A condition that somebody wrote without a time gets one.
  EXPECT_EQ(TransitionTime(FindCondition(kConditions, "Busy"), "False", now).AsString(),
            "2026-01-02T03:04:05Z");
}

}  // namespace
}  // namespace muster::schema
