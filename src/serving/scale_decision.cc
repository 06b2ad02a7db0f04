#include "serving/scale_decision.h"

#include <algorithm>
#include <cmath>

namespace muster::serving {

void TrafficHistory::Add(const TrafficSample& sample, Duration window) {
  const bool first = samples_.empty();
  const bool asked = !first && sample.requests != samples_.back().requests;
  if (first || asked || sample.in_flight > 0) last_busy_ = sample.at;
  samples_.push_back(sample);
  // The last one before the window is where its rate begins.
  while (samples_.size() > 2 && samples_[1].at <= sample.at - window) samples_.pop_front();
}

double TrafficHistory::RequestsPerSecond(Duration window) const {
  if (samples_.size() < 2) return 0;
  const TrafficSample& last = samples_.back();
  const auto first = std::ranges::find_if(
      samples_, [&](const TrafficSample& one) { return one.at >= last.at - window; });
  const std::chrono::duration<double> passed = last.at - first->at;
  if (passed.count() <= 0) return 0;
  return static_cast<double>(last.requests - first->requests) / passed.count();
}

double TrafficHistory::Concurrency(Duration window) const {
  double sum = 0;
  int count = 0;
  for (const TrafficSample& one : samples_) {
    if (one.at < samples_.back().at - window) continue;
    sum += static_cast<double>(one.in_flight);
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

bool TrafficHistory::IdleFor(Duration window) const {
  return !samples_.empty() && samples_.back().at - last_busy_ >= window;
}

int64_t WantedByTraffic(const ScalePolicy& policy, const TrafficHistory& history, int64_t present) {
  if (policy.least == 0 && history.IdleFor(policy.window)) return 0;
  const bool rate = policy.metric == ScaleMetric::kRps;
  const double target = static_cast<double>(
      policy.target.value_or(rate ? kDefaultRpsTarget : kDefaultConcurrencyTarget));
  const Duration rush = std::min(kRushWindow, policy.window);
  const double load =
      rate ? std::max(history.RequestsPerSecond(policy.window), history.RequestsPerSecond(rush))
           : std::max(history.Concurrency(policy.window), history.Concurrency(rush));
  // Who sleeps is woken by a request, not by the memory of one.
  const int64_t floor = policy.least == 0 && present == 0 ? 0 : std::max<int64_t>(policy.least, 1);
  if (floor == 0 && history.Concurrency(Duration::zero()) == 0) return 0;
  const auto wanted = static_cast<int64_t>(std::ceil(load / target));
  return std::clamp(wanted, std::max<int64_t>(floor, 1), policy.most);
}

}  // namespace muster::serving
