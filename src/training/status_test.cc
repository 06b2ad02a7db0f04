#include "training/status.h"

#include <gtest/gtest.h>

#include "training/restarts.h"
#include "training/test_jobs.h"

namespace muster::training {
namespace {

const Time kNow = *ParseTime("2026-01-02T03:04:05Z");

json::Value After(std::initializer_list<Condition> conditions) {
  json::Value status;
  Time now = kNow;
  for (const Condition& condition : conditions) {
    status = WithCondition(status, condition, now);
    now += seconds(1);
  }
  return status;
}

std::string Shown(const json::Value& status) {
  std::string text;
  for (const json::Value& condition : status["conditions"].items()) {
    text += condition["type"].Str() + "=" + condition["status"].Str() + " ";
  }
  return text;
}

TEST(Conditions, FollowTheTable) {
  const Condition created{"Created", true, "c", ""}, running{"Running", true, "r", ""},
      restarting{"Restarting", true, "x", ""}, succeeded{"Succeeded", true, "s", ""},
      failed{"Failed", true, "f", ""}, suspended{"Suspended", true, "p", ""},
      resumed{"Suspended", false, "q", ""};
  const struct {
    std::initializer_list<Condition> steps;
    const char* shown;
  } rows[] = {
      {{created, running}, "Created=True Running=True "},
      {{created, running, restarting}, "Created=True Restarting=True "},
      {{created, running, restarting, running}, "Created=True Running=True "},
      {{created, running, succeeded}, "Created=True Running=False Succeeded=True "},
      {{created, running, failed}, "Created=True Running=False Failed=True "},
      {{created, running, failed, running, succeeded}, "Created=True Running=False Failed=True "},
      {{created, running, suspended}, "Created=True Running=False Suspended=True "},
      {{created, suspended, resumed}, "Created=True Suspended=False "},
      {{created, suspended, resumed, running}, "Created=True Suspended=False Running=True "},
  };
  for (const auto& row : rows) EXPECT_EQ(Shown(After(row.steps)), row.shown);
}

TEST(Conditions, TheSameAgainIsNoChange) {
  const json::Value status = After({{"Running", true, "r", "first"}});
  EXPECT_EQ(WithCondition(status, {"Running", true, "r", "second"}, kNow + hours(1)), status);
}

TEST(Conditions, ANewReasonKeepsTheTransitionTime) {
  const json::Value status = After({{"Running", true, "r", ""}, {"Running", true, "other", ""}});
  EXPECT_EQ(status["conditions"].At(0)["lastTransitionTime"].AsString(), "2026-01-02T03:04:05Z");
  EXPECT_EQ(status["conditions"].At(0)["lastUpdateTime"].AsString(), "2026-01-02T03:04:06Z");
}

TEST(ReplicaStatus, LeavesZeroCountsOut) {
  EXPECT_EQ(ReplicaStatus({1, 0, 0}, "a=b"), Yaml("{active: 1, selector: a=b}"));
  EXPECT_EQ(ReplicaStatus({0, 2, 3}, "a=b"), Yaml("{succeeded: 2, failed: 3, selector: a=b}"));
}

TEST(Restarts, RoundTripThroughTheJob) {
  Restarts restarts{4, 3, kNow, {"a", "b"}};
  const json::Value patch = RestartsPatch(DdpJob(), restarts);
  EXPECT_EQ(patch["metadata"]["resourceVersion"].AsString(), "7");
  const Restarts read = RestartsOf(patch);
  EXPECT_EQ(read.epoch, 4);
  EXPECT_EQ(read.count, 3);
  EXPECT_EQ(read.restarted_at, kNow);
  EXPECT_EQ(read.replaced_pods, (std::vector<std::string>{"a", "b"}));
}

TEST(Restarts, WaitLongerEachTime) {
  const struct {
    int64_t count;
    Duration delay;
  } rows[] = {{0, seconds(0)},
              {1, seconds(0)},
              {2, seconds(1)},
              {3, seconds(2)},
              {10, seconds(256)},
              {11, kMaxRestartDelay},
              {1'000'000, kMaxRestartDelay}};
  for (const auto& row : rows)
    EXPECT_EQ((Restarts{0, row.count, {}, {}}).Delay(), row.delay) << row.count;
}

}  // namespace
}  // namespace muster::training
