#include "controllers/podautoscaler/scaling_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "json/parse.h"

namespace muster::controllers {
namespace {

constexpr Time kStart{hours(1'000'000)};

json::Value Behavior(std::string_view yaml) {
  if (yaml.empty()) return {};
  auto documents = json::ParseYaml(yaml);
  CHECK(documents.has_value());
  return documents->front();
}

struct Past {
  int64_t replicas;
  int64_t seconds_ago;
};

struct Row {
  const char* what;
  Wish wish;
  int64_t replicas;
  const char* able;
  const char* limited;
  const char* behavior = "";
  std::vector<Past> recommendations = {};
  std::vector<Past> ups = {}, downs = {};
};

constexpr char kReady[] = "ReadyForNewScale";
constexpr char kInRange[] = "DesiredWithinRange";
constexpr char kUpOnly[] = "ScaleUpStabilized";
constexpr char kDownOnly[] = "ScaleDownStabilized";

// Those of upstream, completed.
constexpr char kDefaults[] =
    "{scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: "
    "[{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]},"
    " scaleDown: {selectPolicy: Max, policies: "
    "[{type: Percent, value: 100, periodSeconds: 15}]}}";
constexpr char kUpBy2Pods[] =
    "{scaleUp: {policies: [{type: Pods, value: 2, periodSeconds: 60}]}, scaleDown: {policies: "
    "[{type: Percent, value: 100, periodSeconds: 15}]}}";
constexpr char kUpByHalf[] =
    "{scaleUp: {policies: [{type: Percent, value: 50, periodSeconds: 60}]}}";
constexpr char kUpBoth[] =
    "{scaleUp: {selectPolicy: Max, policies: [{type: Pods, value: 2, periodSeconds: 60}, "
    "{type: Percent, value: 50, periodSeconds: 60}]}}";
constexpr char kUpLeast[] =
    "{scaleUp: {selectPolicy: Min, policies: [{type: Pods, value: 2, periodSeconds: 60}, "
    "{type: Percent, value: 50, periodSeconds: 60}]}}";
constexpr char kUpNever[] =
    "{scaleUp: {selectPolicy: Disabled, policies: [{type: Pods, value: 2, periodSeconds: 60}]}}";
constexpr char kUpSlowly[] =
    "{scaleUp: {stabilizationWindowSeconds: 120, policies: "
    "[{type: Percent, value: 1000, periodSeconds: 15}]}}";
constexpr char kDownBy2Pods[] =
    "{scaleDown: {stabilizationWindowSeconds: 0, policies: "
    "[{type: Pods, value: 2, periodSeconds: 60}]}}";
constexpr char kDownByTenth[] =
    "{scaleDown: {stabilizationWindowSeconds: 0, policies: "
    "[{type: Percent, value: 10, periodSeconds: 60}]}}";
constexpr char kDownBoth[] =
    "{scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: "
    "[{type: Pods, value: 2, periodSeconds: 60}, {type: Percent, value: 50, periodSeconds: 60}]}}";
constexpr char kDownLeast[] =
    "{scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Min, policies: "
    "[{type: Pods, value: 2, periodSeconds: 60}, {type: Percent, value: 50, periodSeconds: 60}]}}";
constexpr char kDownNever[] =
    "{scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Disabled, policies: "
    "[{type: Pods, value: 2, periodSeconds: 60}]}}";
constexpr char kDownSoon[] =
    "{scaleDown: {stabilizationWindowSeconds: 60, policies: "
    "[{type: Percent, value: 100, periodSeconds: 15}]}}";

const Row kRows[] = {
    // Without a behaviour.
    {"as it is", {3, 3, 1, 10}, 3, kReady, kInRange},
    {"up", {3, 5, 1, 10}, 5, kReady, kInRange},
    {"up to the maximum", {6, 20, 1, 10}, 10, kReady, "TooManyReplicas"},
    {"up to twice as many", {10, 100, 1, 1000}, 20, kReady, "ScaleUpLimit"},
    {"up from one to four", {1, 2000, 1, 2000}, 4, kReady, "ScaleUpLimit"},
    {"up to a maximum that equals the rate", {5, 20, 1, 10}, 10, kReady, "TooManyReplicas"},
    {"down", {5, 3, 1, 10}, 3, kReady, kInRange},
    {"down to the minimum", {5, 1, 2, 10}, 2, kReady, "TooFewReplicas"},
    {"to nothing", {5, 0, 1, 10}, 1, kReady, "TooFewReplicas"},
    {"not down soon after more", {5, 3, 1, 10}, 5, kDownOnly, kInRange, "", {{5, 60}}},
    {"down to the highest of late", {9, 3, 1, 10}, 7, kDownOnly, kInRange, "", {{7, 290}}},
    {"what is five minutes old still counts",
     {9, 3, 1, 10},
     7,
     kDownOnly,
     kInRange,
     "",
     {{7, 300}}},
    {"what is older does not", {9, 3, 1, 10}, 3, kReady, kInRange, "", {{7, 301}}},
    {"up although less was wanted of late", {3, 6, 1, 10}, 6, kReady, kInRange, "", {{3, 10}}},
    {"a former wish above the maximum",
     {5, 3, 1, 6},
     6,
     kDownOnly,
     "TooManyReplicas",
     "",
     {{9, 60}}},
    // Upstream's defaults as a behaviour.
    {"defaults: up by four", {1, 2000, 1, 2000}, 5, kReady, "ScaleUpLimit", kDefaults},
    {"defaults: up to twice as many", {10, 2000, 1, 2000}, 20, kReady, "ScaleUpLimit", kDefaults},
    {"defaults: up within", {10, 13, 1, 2000}, 13, kReady, kInRange, kDefaults},
    {"defaults: up to the maximum", {8, 20, 1, 10}, 10, kReady, "TooManyReplicas", kDefaults},
    {"defaults: the period's start counts",
     {9, 2000, 1, 2000},
     10,
     kReady,
     "ScaleUpLimit",
     kDefaults,
     {},
     {{4, 10}}},
    {"defaults: not what was before the period",
     {9, 2000, 1, 2000},
     18,
     kReady,
     "ScaleUpLimit",
     kDefaults,
     {},
     {{4, 15}}},
    {"defaults: down at once", {50, 1, 1, 100}, 1, kReady, kInRange, kDefaults},
    {"defaults: not down for five minutes",
     {50, 1, 1, 100},
     50,
     kDownOnly,
     kInRange,
     kDefaults,
     {{50, 299}}},
    {"defaults: down after five minutes",
     {50, 1, 1, 100},
     1,
     kReady,
     kInRange,
     kDefaults,
     {{50, 300}}},
    {"defaults: down to the minimum", {50, 1, 5, 100}, 5, kReady, "TooFewReplicas", kDefaults},
    // Rates upwards.
    {"two pods a minute", {4, 10, 1, 20}, 6, kReady, "ScaleUpLimit", kUpBy2Pods},
    {"two pods a minute, one came",
     {4, 10, 1, 20},
     5,
     kReady,
     "ScaleUpLimit",
     kUpBy2Pods,
     {},
     {{1, 30}}},
    {"two pods a minute, both came",
     {4, 10, 1, 20},
     4,
     kReady,
     "ScaleUpLimit",
     kUpBy2Pods,
     {},
     {{2, 30}}},
    {"two pods a minute, more than that came",
     {9, 10, 1, 20},
     9,
     kReady,
     "ScaleUpLimit",
     kUpBy2Pods,
     {},
     {{5, 30}}},
    {"two pods a minute, two went",
     {4, 10, 1, 20},
     8,
     kReady,
     "ScaleUpLimit",
     kUpBy2Pods,
     {},
     {},
     {{2, 30}}},
    {"half as many again", {3, 10, 1, 20}, 5, kReady, "ScaleUpLimit", kUpByHalf},
    {"half as many again, of the start",
     {6, 20, 1, 20},
     6,
     kReady,
     "ScaleUpLimit",
     kUpByHalf,
     {},
     {{2, 59}}},
    {"the most of both", {10, 50, 1, 100}, 15, kReady, "ScaleUpLimit", kUpBoth},
    {"the most of both, with few", {2, 50, 1, 100}, 4, kReady, "ScaleUpLimit", kUpBoth},
    {"the least of both", {10, 50, 1, 100}, 12, kReady, "ScaleUpLimit", kUpLeast},
    {"the least of both, with few", {2, 50, 1, 100}, 3, kReady, "ScaleUpLimit", kUpLeast},
    {"never", {2, 50, 1, 100}, 2, kReady, "ScaleUpLimit", kUpNever},
    {"never up, but down",
     {5, 2, 1, 100},
     2,
     kReady,
     kInRange,
     "{scaleUp: {selectPolicy: Disabled}, scaleDown: {stabilizationWindowSeconds: 0, policies: "
     "[{type: Percent, value: 100, periodSeconds: 15}]}}"},
    {"up by the lowest of late", {3, 9, 1, 100}, 5, kUpOnly, kInRange, kUpSlowly, {{5, 119}}},
    {"not up while less is wanted", {3, 9, 1, 100}, 3, kUpOnly, kInRange, kUpSlowly, {{2, 30}}},
    {"up when the window is over", {3, 9, 1, 100}, 9, kReady, kInRange, kUpSlowly, {{2, 120}}},
    // Rates downwards.
    {"two pods fewer", {10, 1, 1, 20}, 8, kReady, "ScaleDownLimit", kDownBy2Pods},
    {"two pods fewer, one went",
     {10, 1, 1, 20},
     9,
     kReady,
     "ScaleDownLimit",
     kDownBy2Pods,
     {},
     {},
     {{1, 30}}},
    {"two pods fewer, three went",
     {10, 1, 1, 20},
     10,
     kReady,
     "ScaleDownLimit",
     kDownBy2Pods,
     {},
     {},
     {{3, 30}}},
    {"two pods fewer, two came",
     {10, 1, 1, 20},
     6,
     kReady,
     "ScaleDownLimit",
     kDownBy2Pods,
     {},
     {{2, 30}}},
    {"two pods fewer down to the minimum",
     {6, 1, 5, 20},
     5,
     kReady,
     "TooFewReplicas",
     kDownBy2Pods},
    {"a tenth fewer", {100, 1, 1, 200}, 90, kReady, "ScaleDownLimit", kDownByTenth},
    {"a tenth fewer of few is one", {5, 1, 1, 200}, 4, kReady, "ScaleDownLimit", kDownByTenth},
    {"the most fewer", {10, 1, 1, 20}, 5, kReady, "ScaleDownLimit", kDownBoth},
    {"the least fewer", {10, 1, 1, 20}, 8, kReady, "ScaleDownLimit", kDownLeast},
    {"never fewer", {10, 1, 1, 20}, 10, kReady, "ScaleDownLimit", kDownNever},
    {"never fewer, but more",
     {2, 4, 1, 20},
     4,
     kReady,
     kInRange,
     "{scaleUp: {policies: [{type: Pods, value: 4, periodSeconds: 15}]}, scaleDown: "
     "{selectPolicy: Disabled}}"},
    {"down by the highest of a minute",
     {10, 1, 1, 20},
     6,
     kDownOnly,
     kInRange,
     kDownSoon,
     {{6, 59}, {9, 60}}},
    {"down after a minute", {10, 1, 1, 20}, 1, kReady, kInRange, kDownSoon, {{9, 60}}},
};

ScalingHistory HistoryOf(const Row& row) {
  ScalingHistory history;
  for (const Past& past : row.recommendations)
    history.recommendations.push_back({past.replicas, kStart - seconds(past.seconds_ago)});
  for (const Past& past : row.ups)
    history.ups.push_back({past.replicas, kStart - seconds(past.seconds_ago)});
  for (const Past& past : row.downs)
    history.downs.push_back({past.replicas, kStart - seconds(past.seconds_ago)});
  return history;
}

TEST(ScalingRules, Rows) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.what);
    ScalingHistory history = HistoryOf(row);
    const Decision decision = Decide(Behavior(row.behavior), row.wish, history, kStart);
    EXPECT_EQ(decision.replicas, row.replicas);
    EXPECT_TRUE(decision.able_to_scale.holds);
    EXPECT_EQ(decision.able_to_scale.reason, row.able);
    EXPECT_EQ(decision.limited.reason, row.limited);
    EXPECT_EQ(decision.limited.holds, decision.limited.reason != kInRange);
  }
}

TEST(ScalingRules, MessagesAreUpstreams) {
  ScalingHistory history;
  history.recommendations.push_back({9, kStart});
  const Decision decision = Decide({}, {9, 3, 1, 5}, history, kStart);
  EXPECT_EQ(decision.able_to_scale.message,
            "recent recommendations were higher than current one, applying the highest recent "
            "recommendation");
  EXPECT_EQ(decision.limited.message,
            "the desired replica count is more than the maximum replica count");
}

TEST(ScalingRules, ForgetsWhatIsTooOldToCount) {
  ScalingHistory history;
  const json::Value behavior = Behavior(kUpBy2Pods);
  for (int i = 0; i < 1000; ++i) {
    const Time now = kStart + seconds(15 * i);
    Decide(behavior, {5, 5, 1, 10}, history, now);
    RememberChange(behavior, 5, 6, now, history);
    RememberChange(behavior, 6, 5, now, history);
  }
  EXPECT_LE(history.recommendations.size(), 22u);
  EXPECT_LE(history.ups.size(), 5u);
  EXPECT_LE(history.downs.size(), 5u);
}

TEST(ScalingRules, TolerancesOfABehavior) {
  const Tolerance none = ToleranceOf({});
  EXPECT_EQ(none.up, kDefaultTolerance);
  EXPECT_EQ(none.down, kDefaultTolerance);
  const Tolerance both =
      ToleranceOf(Behavior("{scaleUp: {tolerance: '0'}, scaleDown: {tolerance: 50m}}"));
  EXPECT_EQ(both.up, 0);
  EXPECT_EQ(both.down, 0.05);
}

json::Value RandomRules(Rng& rng) {
  constexpr const char* kSelect[] = {"Max", "Min", "Disabled"};
  json::Array policies;
  for (int64_t i = rng.Between(1, 3); i > 0; --i) {
    policies.push_back(json::Obj({{"type", rng.Chance(0.5) ? "Pods" : "Percent"},
                                  {"value", rng.Between(1, 200)},
                                  {"periodSeconds", rng.Between(1, 120)}}));
  }
  return json::Obj({{"selectPolicy", kSelect[rng.Below(3)]},
                    {"policies", json::Value(std::move(policies))},
                    {"stabilizationWindowSeconds", rng.Between(0, 300)}});
}

// Any wishes under any behaviour: what comes of it lies between the limits, and between what there
// is and some wish of the windows.
TEST(ScalingRules, StaysWithinItsLimits) {
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    json::Value behavior;
    if (round % 3 != 0)
      behavior = json::Obj({{"scaleUp", RandomRules(rng)}, {"scaleDown", RandomRules(rng)}});
    const int64_t least = rng.Between(1, 20), most = least + rng.Between(0, 100);
    int64_t current = rng.Between(least, most);
    ScalingHistory history;
    Time now = kStart;
    for (int step = 0; step < 40; ++step) {
      const int64_t wanted = rng.Between(0, 150);
      int64_t lowest = std::min(wanted, current), highest = std::max(wanted, current);
      for (const auto& past : history.recommendations) {
        lowest = std::min(lowest, past.replicas);
        highest = std::max(highest, past.replicas);
      }
      const Decision decision = Decide(behavior, {current, wanted, least, most}, history, now);
      ASSERT_GE(decision.replicas, least);
      ASSERT_LE(decision.replicas, most);
      ASSERT_GE(decision.replicas, std::min(lowest, most));
      ASSERT_LE(decision.replicas, std::max(highest, least));
      RememberChange(behavior, current, decision.replicas, now, history);
      current = decision.replicas;
      now += seconds(rng.Between(1, 60));
    }
  }
}

// A longer memory for going down never gives fewer replicas; one for going up never gives more.
TEST(ScalingRules, LongerWindowsMoveLess) {
  Rng rng(12);
  for (int round = 0; round < 2000; ++round) {
    const json::Value up = RandomRules(rng), down = RandomRules(rng);
    const Wish wish{rng.Between(1, 100), rng.Between(0, 120), 1, 100};
    ScalingHistory history;
    for (int i = 0; i < 10; ++i)
      history.recommendations.push_back(
          {rng.Between(0, 120), kStart - seconds(rng.Between(0, 400))});
    const auto decide = [&](int64_t longer_up, int64_t longer_down) {
      const auto with = [](const json::Value& rules, int64_t longer) {
        return rules.Set("stabilizationWindowSeconds",
                         rules["stabilizationWindowSeconds"].AsInt() + longer);
      };
      ScalingHistory copy = history;
      return Decide(json::Obj(
                        {{"scaleUp", with(up, longer_up)}, {"scaleDown", with(down, longer_down)}}),
                    wish, copy, kStart)
          .replicas;
    };
    EXPECT_GE(decide(0, 100), decide(0, 0));
    EXPECT_LE(decide(100, 0), decide(0, 0));
  }
}

// The same wish again changes nothing more once it was reached.
TEST(ScalingRules, ComesToRest) {
  Rng rng(13);
  for (int round = 0; round < 200; ++round) {
    const int64_t wanted = rng.Between(1, 100);
    int64_t current = rng.Between(1, 100);
    ScalingHistory history;
    Time now = kStart;
    const json::Value behavior = Behavior(kDefaults);
    for (int step = 0; step < 60; ++step) {
      const Decision decision = Decide(behavior, {current, wanted, 1, 100}, history, now);
      RememberChange(behavior, current, decision.replicas, now, history);
      current = decision.replicas;
      now += seconds(15);
    }
    EXPECT_EQ(current, wanted);
    EXPECT_EQ(Decide(behavior, {current, wanted, 1, 100}, history, now).replicas, wanted);
  }
}

}  // namespace
}  // namespace muster::controllers
