#include "simulator/summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace muster::simulator {
namespace {

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Distribution DistributionOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto rank = [&](double share) {
    const double position = std::ceil(share * static_cast<double>(values.size()));
    return values[static_cast<size_t>(position) - 1];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), rank(0.5), rank(0.95), values.back()};
}

// Adds the time that each sample lasts to the points that it falls into.
std::vector<Point> OverTime(const Outcome& outcome) {
  const double width = InSeconds(outcome.makespan) / kSummaryPoints;
  if (width <= 0) return {};
  std::vector<Point> points(kSummaryPoints);
  const double gpus = std::max(1.0, static_cast<double>(outcome.gpus));
  for (size_t i = 0; i < outcome.samples.size(); ++i) {
    const Sample& sample = outcome.samples[i];
    double at = InSeconds(sample.at);
    const double end =
        InSeconds(i + 1 < outcome.samples.size() ? outcome.samples[i + 1].at : outcome.makespan);
    auto point = std::min(kSummaryPoints - 1, static_cast<size_t>(at / width));
    for (; at < end && point < kSummaryPoints; ++point) {
      const bool last = point + 1 == kSummaryPoints;
      const double until = last ? end : std::min(end, static_cast<double>(point + 1) * width);
      const double share = std::max(0.0, until - at) / width;
      points[point].utilisation += share * static_cast<double>(sample.gpus_used) / gpus;
      points[point].fragmentation += share * static_cast<double>(sample.gpus_stranded) / gpus;
      points[point].unusable += share * sample.gpus_unusable / gpus;
      points[point].jobs_waiting += share * static_cast<double>(sample.jobs_waiting);
      at = std::max(at, until);
    }
  }
  for (size_t i = 0; i < points.size(); ++i) points[i].at = static_cast<double>(i) * width;
  return points;
}

std::string Row(std::string_view name, const Distribution& d) {
  return fmt::format("{:<6}{:>12.1f}{:>12.1f}{:>12.1f}{:>12.1f}\n", name, d.mean, d.p50, d.p95,
                     d.max);
}

json::Value DistributionJson(const Distribution& d) {
  return json::Obj({{"meanSeconds", d.mean},
                    {"p50Seconds", d.p50},
                    {"p95Seconds", d.p95},
                    {"maxSeconds", d.max}});
}

}  // namespace

namespace {

// Of the jobs at these positions.
void Distribute(const Workload& workload, const Outcome& outcome, const std::vector<size_t>& jobs,
                Distribution& wait, Distribution& jct, size_t& placed) {
  std::vector<double> waits, jcts;
  for (const size_t i : jobs) {
    if (!outcome.jobs[i].placed) continue;
    const Duration waited = outcome.jobs[i].start - workload.jobs[i].arrival;
    waits.push_back(InSeconds(waited));
    if (workload.jobs[i].run_time != kNoKnownEnd)
      jcts.push_back(InSeconds(waited + workload.jobs[i].run_time));
  }
  placed = waits.size();
  wait = DistributionOf(std::move(waits));
  jct = DistributionOf(std::move(jcts));
}

std::vector<SizeClass> BySize(const Workload& workload, const Outcome& outcome) {
  std::map<int64_t, std::vector<size_t>> jobs;  // by the most GPUs of the class
  for (size_t i = 0; i < workload.jobs.size(); ++i) {
    const int64_t gpus = workload.jobs[i].Gpus();
    jobs[gpus == 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(gpus)))]
        .push_back(i);
  }
  std::vector<SizeClass> classes;
  for (const auto& [most, positions] : jobs) {
    SizeClass& of = classes.emplace_back();
    of.most = most;
    of.least = most < 2 ? most : most / 2 + 1;
    of.jobs = positions.size();
    Distribute(workload, outcome, positions, of.wait, of.jct, of.placed);
  }
  return classes;
}

}  // namespace

Summary Summarise(const Workload& workload, const Outcome& outcome) {
  Summary summary;
  summary.jobs = workload.jobs.size();
  summary.gpus = outcome.gpus;
  summary.makespan = InSeconds(outcome.makespan);
  std::vector<size_t> all(workload.jobs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  Distribute(workload, outcome, all, summary.wait, summary.jct, summary.placed);
  summary.by_size = BySize(workload, outcome);
  summary.over_time = OverTime(outcome);
  for (const Point& point : summary.over_time) {
    summary.utilisation += point.utilisation / kSummaryPoints;
    summary.fragmentation += point.fragmentation / kSummaryPoints;
    summary.unusable += point.unusable / kSummaryPoints;
  }
  return summary;
}

std::string ToText(const Workload& workload, const Outcome& outcome, const Summary& summary) {
  std::string out =
      fmt::format("{} jobs on {} nodes with {} GPUs: {} placed, {} never\n\n", summary.jobs,
                  workload.nodes.size(), summary.gpus, summary.placed, outcome.never_placed.size());
  out += "seconds       mean         p50         p95         max\n";
  out += Row("wait", summary.wait) + Row("JCT", summary.jct);
  out += fmt::format(
      "\nmakespan {:.1f} s\nGPUs used {:.1f} %, free beside used ones {:.1f} %, free but of no use "
      "to the mix {:.1f} %\n",
      summary.makespan, 100 * summary.utilisation, 100 * summary.fragmentation,
      100 * summary.unusable);
  if (outcome.unknown_ends > 0)
    out += fmt::format("{} running without a known end (annotation {})\n", outcome.unknown_ends,
                       kRunTimeAnnotation);
  const size_t named = std::min(outcome.never_placed.size(), kMaxNeverPlacedNamed);
  for (size_t i = 0; i < named; ++i) {
    const NeverPlaced& never = outcome.never_placed[i];
    out += fmt::format("never placed: {}: {}\n", workload.jobs[never.job].name, never.why);
  }
  if (named < outcome.never_placed.size())
    out += fmt::format("and {} more (-o json names all)\n", outcome.never_placed.size() - named);
  return out;
}

json::Value ToJson(const Workload& workload, const Outcome& outcome, const Summary& summary) {
  json::Array points, sizes, never_placed;
  for (const Point& point : summary.over_time) {
    points.push_back(json::Obj({{"atSeconds", point.at},
                                {"utilisation", point.utilisation},
                                {"fragmentation", point.fragmentation},
                                {"unusable", point.unusable},
                                {"jobsWaiting", point.jobs_waiting}}));
  }
  for (const SizeClass& of : summary.by_size) {
    sizes.push_back(json::Obj({{"leastGpus", of.least},
                               {"mostGpus", of.most},
                               {"jobs", static_cast<uint64_t>(of.jobs)},
                               {"placed", static_cast<uint64_t>(of.placed)},
                               {"wait", DistributionJson(of.wait)},
                               {"jct", DistributionJson(of.jct)}}));
  }
  for (const NeverPlaced& never : outcome.never_placed) {
    never_placed.push_back(
        json::Obj({{"name", workload.jobs[never.job].name}, {"why", never.why}}));
  }
  return json::Obj({{"jobs", static_cast<uint64_t>(summary.jobs)},
                    {"placed", static_cast<uint64_t>(summary.placed)},
                    {"nodes", static_cast<uint64_t>(workload.nodes.size())},
                    {"gpus", summary.gpus},
                    {"wait", DistributionJson(summary.wait)},
                    {"jct", DistributionJson(summary.jct)},
                    {"makespanSeconds", summary.makespan},
                    {"utilisation", summary.utilisation},
                    {"fragmentation", summary.fragmentation},
                    {"unusable", summary.unusable},
                    {"unknownEnds", static_cast<uint64_t>(outcome.unknown_ends)},
                    {"bySize", json::Value(std::move(sizes))},
                    {"overTime", json::Value(std::move(points))},
                    {"neverPlaced", json::Value(std::move(never_placed))}});
}

}  // namespace muster::simulator
