#include "controllers/podautoscaler/scaling_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "schema/quantity_syntax.h"

namespace muster::controllers {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int32_t>::max();

constexpr char kTooMany[] = "the desired replica count is more than the maximum replica count";
constexpr char kTooFew[] = "the desired replica count is less than the minimum replica count";
constexpr char kTooFastUp[] =
    "the desired replica count is increasing faster than the maximum scale rate";
constexpr char kTooFastDown[] =
    "the desired replica count is decreasing faster than the maximum scale rate";
constexpr char kLower[] =
    "recent recommendations were lower than current one, applying the lowest recent "
    "recommendation";
constexpr char kHigher[] =
    "recent recommendations were higher than current one, applying the highest recent "
    "recommendation";

Finding Within() {
  return {false, "DesiredWithinRange", "the desired count is within the acceptable range"};
}

Finding Ready() { return {true, "ReadyForNewScale", "recommended size matches current size"}; }

// Without a behaviour: the highest wish of the last five minutes.
int64_t HighestRecent(const Wish& wish, ScalingHistory& history, Time now) {
  std::erase_if(history.recommendations, [now](const ScalingHistory::Recommendation& past) {
    return past.at < now - kDefaultDownscaleWindow;
  });
  int64_t highest = wish.wanted;
  for (const ScalingHistory::Recommendation& past : history.recommendations)
    highest = std::max(highest, past.replicas);
  return highest;
}

// Without a behaviour: at most twice as many at a time, four in any case.
Decision LimitPlainly(const Wish& wish, int64_t stable) {
  const int64_t rate = std::max<int64_t>(2 * wish.current, 4);
  const bool rate_limits = wish.most > rate;
  const int64_t most = rate_limits ? rate : wish.most;
  if (stable < wish.least) return {wish.least, {}, {true, "TooFewReplicas", kTooFew}};
  if (stable <= most) return {stable, {}, Within()};
  if (rate_limits) return {most, {}, {true, "ScaleUpLimit", kTooFastUp}};
  return {most, {}, {true, "TooManyReplicas", kTooMany}};
}

Duration WindowOf(const json::Value& rules, Duration otherwise) {
  const json::Value& window = rules["stabilizationWindowSeconds"];
  return window.IsNull() ? otherwise : Duration(seconds(window.AsInt()));
}

// The current number, moved as little as the wishes of both windows allow.
int64_t Stabilize(const json::Value& behavior, const Wish& wish, ScalingHistory& history,
                  Time now) {
  const Time up_from = now - WindowOf(behavior["scaleUp"], Duration::zero());
  const Time down_from = now - WindowOf(behavior["scaleDown"], kDefaultDownscaleWindow);
  std::erase_if(history.recommendations, [&](const ScalingHistory::Recommendation& past) {
    return past.at < up_from && past.at < down_from;
  });
  int64_t lowest = wish.wanted, highest = wish.wanted;
  for (const ScalingHistory::Recommendation& past : history.recommendations) {
    if (past.at > up_from) lowest = std::min(lowest, past.replicas);
    if (past.at > down_from) highest = std::max(highest, past.replicas);
  }
  return std::min(std::max(wish.current, lowest), highest);
}

int64_t ChangedSince(const std::vector<ScalingHistory::Change>& changes, Time from) {
  int64_t sum = 0;
  for (const ScalingHistory::Change& change : changes) {
    if (change.at > from) sum += change.replicas;
  }
  return sum;
}

// How many there were when the policy's period began.
int64_t AtStartOfPeriod(const json::Value& policy, int64_t current, const ScalingHistory& history,
                        Time now) {
  const Time from = now - seconds(policy["periodSeconds"].AsInt());
  return current - ChangedSince(history.ups, from) + ChangedSince(history.downs, from);
}

int64_t UpTo(const json::Value& policy, int64_t start) {
  const int64_t value = policy["value"].AsInt();
  if (policy["type"].AsString() == "Pods") return start + value;
  const double grown =
      std::ceil(static_cast<double>(start) * (1 + static_cast<double>(value) / 100));
  return static_cast<int64_t>(std::min(grown, static_cast<double>(kUnlimited)));
}

int64_t DownTo(const json::Value& policy, int64_t start) {
  const int64_t value = policy["value"].AsInt();
  if (policy["type"].AsString() == "Pods") return start - value;
  return static_cast<int64_t>(static_cast<double>(start) * (1 - static_cast<double>(value) / 100));
}

// How far `rules` let the number go in their direction.
int64_t RateLimit(const json::Value& rules, bool up, int64_t current, const ScalingHistory& history,
                  Time now) {
  const std::string_view select = rules["selectPolicy"].AsString("Max");
  if (select == "Disabled") return current;
  // The widest of the policies, or the narrowest.
  const bool highest = (select == "Min") != up;
  int64_t limit = highest ? -kUnlimited : kUnlimited;
  for (const json::Value& policy : rules["policies"].items()) {
    const int64_t start = AtStartOfPeriod(policy, current, history, now);
    const int64_t proposed = up ? UpTo(policy, start) : DownTo(policy, start);
    limit = highest ? std::max(limit, proposed) : std::min(limit, proposed);
  }
  return limit;
}

Decision LimitByRules(const json::Value& behavior, const Wish& wish, int64_t stable,
                      const ScalingHistory& history, Time now) {
  if (stable > wish.current) {
    const int64_t rate =
        std::max(RateLimit(behavior["scaleUp"], true, wish.current, history, now), wish.current);
    if (stable > std::min(rate, wish.most)) {
      if (wish.most > rate) return {rate, {}, {true, "ScaleUpLimit", kTooFastUp}};
      return {wish.most, {}, {true, "TooManyReplicas", kTooMany}};
    }
  } else if (stable < wish.current) {
    const int64_t rate =
        std::min(RateLimit(behavior["scaleDown"], false, wish.current, history, now), wish.current);
    if (stable < std::max(rate, wish.least)) {
      if (wish.least < rate) return {rate, {}, {true, "ScaleDownLimit", kTooFastDown}};
      return {wish.least, {}, {true, "TooFewReplicas", kTooFew}};
    }
  }
  return {stable, {}, Within()};
}

Duration LongestPeriod(const json::Value& rules) {
  int64_t longest = 0;
  for (const json::Value& policy : rules["policies"].items())
    longest = std::max(longest, policy["periodSeconds"].AsInt());
  return seconds(longest);
}

void Add(std::vector<ScalingHistory::Change>& changes, Duration kept, int64_t replicas, Time now) {
  std::erase_if(changes, [&](const auto& change) { return change.at <= now - kept; });
  changes.push_back({replicas, now});
}

double ShareOf(const json::Value& quantity) {
  const Result<schema::Amount> amount = schema::AmountFromJson(quantity);
  return amount ? static_cast<double>(amount->nano) / 1e9 : kDefaultTolerance;
}

}  // namespace

Decision Decide(const json::Value& behavior, const Wish& wish, ScalingHistory& history, Time now) {
  const bool plain = behavior.IsNull();
  const int64_t stable =
      plain ? HighestRecent(wish, history, now) : Stabilize(behavior, wish, history, now);
  history.recommendations.push_back({wish.wanted, now});
  Decision decision =
      plain ? LimitPlainly(wish, stable) : LimitByRules(behavior, wish, stable, history, now);
  if (stable == wish.wanted) {
    decision.able_to_scale = Ready();
  } else if (!plain && wish.wanted >= wish.current) {
    decision.able_to_scale = {true, "ScaleUpStabilized", kLower};
  } else {
    decision.able_to_scale = {true, "ScaleDownStabilized", kHigher};
  }
  return decision;
}

void RememberChange(const json::Value& behavior, int64_t from, int64_t to, Time now,
                    ScalingHistory& history) {
  if (behavior.IsNull()) return;  // nobody asks how fast it went
  const Duration kept =
      std::max(LongestPeriod(behavior["scaleUp"]), LongestPeriod(behavior["scaleDown"]));
  if (to > from) Add(history.ups, kept, to - from, now);
  if (to < from) Add(history.downs, kept, from - to, now);
}

Tolerance ToleranceOf(const json::Value& behavior) {
  return {ShareOf(behavior["scaleDown"]["tolerance"]), ShareOf(behavior["scaleUp"]["tolerance"])};
}

}  // namespace muster::controllers
