#include "apiserver/metrics.h"

#include <algorithm>

#include <fmt/core.h>

namespace muster::apiserver {
namespace {

std::string RenderLabels(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    if (!out.empty()) out += ',';
    out += name;
    out += "=\"";
    for (char c : value) {
      if (c == '"' || c == '\\') out += '\\';
      if (c == '\n') {
        out += "\\n";
      } else {
        out += c;
      }
    }
    out += '"';
  }
  return out;
}

template <class Map>
auto& Find(Map& series, const Labels& labels) {
  std::string key = RenderLabels(labels);
  if (series.size() >= kMaxSeries && !series.contains(key)) key = "overflow=\"true\"";
  return series[key];
}

void RenderHead(std::string& out, std::string_view name, std::string_view help,
                std::string_view type) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

std::string Braced(const std::string& labels) {
  return labels.empty() ? labels : "{" + labels + "}";
}

}  // namespace

CounterFamily::CounterFamily(std::string name, std::string help, std::string_view type)
    : name_(std::move(name)), help_(std::move(help)), type_(type) {}

double& CounterFamily::Series(const Labels& labels) { return Find(series_, labels); }

void CounterFamily::Add(const Labels& labels, double amount) { Series(labels) += amount; }

void CounterFamily::Set(const Labels& labels, double value) { Series(labels) = value; }

double CounterFamily::Value(const Labels& labels) const {
  const auto found = series_.find(RenderLabels(labels));
  return found == series_.end() ? 0 : found->second;
}

void CounterFamily::Render(std::string& out) const {
  RenderHead(out, name_, help_, type_);
  for (const auto& [labels, value] : series_)
    out += fmt::format("{}{} {}\n", name_, Braced(labels), value);
}

HistogramFamily::HistogramFamily(std::string name, std::string help, std::vector<double> bounds)
    : name_(std::move(name)), help_(std::move(help)), bounds_(std::move(bounds)) {}

void HistogramFamily::Observe(const Labels& labels, double value) {
  Series& series = Find(series_, labels);
  if (series.counts.empty()) series.counts.resize(bounds_.size() + 1);
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++series.counts[static_cast<size_t>(bound - bounds_.begin())];
  series.sum += value;
}

void HistogramFamily::Render(std::string& out) const {
  RenderHead(out, name_, help_, "histogram");
  for (const auto& [labels, series] : series_) {
    const std::string prefix = labels.empty() ? "" : labels + ",";
    uint64_t total = 0;
    for (size_t i = 0; i < series.counts.size(); ++i) {
      total += series.counts[i];
      const std::string bound = i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
      out += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name_, prefix, bound, total);
    }
    out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name_, Braced(labels), series.sum, name_,
                       Braced(labels), total);
  }
}

CounterFamily& Metrics::Counter(std::string name, std::string help) {
  return counters_.emplace_back(std::move(name), std::move(help), "counter");
}

CounterFamily& Metrics::Gauge(std::string name, std::string help) {
  return counters_.emplace_back(std::move(name), std::move(help), "gauge");
}

HistogramFamily& Metrics::Histogram(std::string name, std::string help,
                                    std::vector<double> bounds) {
  return histograms_.emplace_back(std::move(name), std::move(help), std::move(bounds));
}

void Metrics::Callback(std::string name, std::string help, std::function<double()> read) {
  callbacks_.push_back({std::move(name), std::move(help), std::move(read)});
}

std::string Metrics::Render() const {
  std::string out;
  for (const CounterFamily& family : counters_) family.Render(out);
  for (const HistogramFamily& family : histograms_) family.Render(out);
  for (const Read& one : callbacks_) {
    RenderHead(out, one.name, one.help, "gauge");
    out += fmt::format("{} {}\n", one.name, one.read());
  }
  return out;
}

}  // namespace muster::apiserver
