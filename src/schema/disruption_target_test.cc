#include "schema/disruption_target.h"

#include <chrono>

#include <gtest/gtest.h>

#include "schema/conditions.h"

namespace muster::schema {
namespace {

TEST(DisruptionTarget, KeepsTheTimeSinceWhenThePodIsToGo) {
  const Time first = Time{} + std::chrono::seconds(60);
  const Time later = first + std::chrono::seconds(60);
  const json::Value bare = json::Obj();
  const json::Value condition = DisruptionTarget(bare, "NodeInterruption", "taken back", first);
  const json::Value conditions = json::List({condition});
  EXPECT_TRUE(ConditionHolds(conditions, kDisruptionTarget));
  EXPECT_EQ(condition["reason"].AsString(), "NodeInterruption");
  EXPECT_EQ(condition["message"].AsString(), "taken back");
  const json::Value pod = json::Obj({{"status", json::Obj({{"conditions", conditions}})}});
  const json::Value again = DisruptionTarget(pod, "EvictionByEvictionAPI", "evicting", later);
  EXPECT_EQ(again["lastTransitionTime"], condition["lastTransitionTime"]);
  EXPECT_EQ(again["reason"].AsString(), "EvictionByEvictionAPI");
  EXPECT_FALSE(DisruptionTarget(bare, "NodeInterruption", "taken back", later) == condition);
}

}  // namespace
}  // namespace muster::schema
