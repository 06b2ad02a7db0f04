// src/apiserver/metrics.h
//
// Metrics: counters, gauges and histograms in the Prometheus text format.
//
// Life cycle: a Metrics object owns its families; references from Counter() and its like live as
//             long as it.
// Thread:     the loop thread.
// Invariants: a family has at most kMaxSeries label sets; what comes after is counted under
//             {overflow="true"}.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::apiserver {

inline constexpr size_t kMaxSeries = 4096;

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

class CounterFamily {
 public:
  CounterFamily(std::string name, std::string help, std::string_view type);
  void Add(const Labels& labels, double amount = 1);
  void Set(const Labels& labels, double value);
  double Value(const Labels& labels) const;
  void Render(std::string& out) const;

 private:
  double& Series(const Labels& labels);
  std::string name_, help_;
  std::string_view type_;
  std::map<std::string, double> series_;  // by rendered labels
};

class HistogramFamily {
 public:
  HistogramFamily(std::string name, std::string help, std::vector<double> bounds);
  void Observe(const Labels& labels, double value);
  void Render(std::string& out) const;

 private:
  struct Series {
    std::vector<uint64_t> counts;  // per bound, not cumulative; the last one is +Inf
    double sum = 0;
  };
  std::string name_, help_;
  std::vector<double> bounds_;
  std::map<std::string, Series> series_;
};

class Metrics {
 public:
  CounterFamily& Counter(std::string name, std::string help);
  CounterFamily& Gauge(std::string name, std::string help);
  HistogramFamily& Histogram(std::string name, std::string help, std::vector<double> bounds);
  // Read when /metrics is asked for.
  void Callback(std::string name, std::string help, std::function<double()> read);

  std::string Render() const;

 private:
  struct Read {
    std::string name, help;
    std::function<double()> read;
  };
  std::deque<CounterFamily> counters_;
  std::deque<HistogramFamily> histograms_;
  std::vector<Read> callbacks_;
};

}  // namespace muster::apiserver
