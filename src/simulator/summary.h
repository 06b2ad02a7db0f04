// src/simulator/summary.h
//
// The outcome of a simulation in numbers, as text and as JSON.
//
// Wait = start - arrival; JCT = end - arrival; both over the jobs that were placed. Percentiles by
// nearest rank. Utilisation and fragmentation are averages over time, from the first arrival to the
// last end, as shares of all GPUs. Fragmentation counts GPUs that are free on nodes whose other
// GPUs are used; `unusable` those that are free and of no use to the pods of the workload
// (gpu_use.h).
// Jobs without a known end have no JCT.
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/value.h"
#include "simulator/simulation.h"

namespace muster::simulator {

// Points of utilisation and queue length over time in the JSON.
inline constexpr size_t kSummaryPoints = 100;
// Jobs that were never placed, named with their reason in the text; the JSON has all.
inline constexpr size_t kMaxNeverPlacedNamed = 10;

struct Distribution {
  double mean = 0, p50 = 0, p95 = 0, max = 0;  // seconds
};

// Averages over one kSummaryPoints-th of the makespan.
struct Point {
  double at = 0;  // seconds since the first arrival, where it begins
  double utilisation = 0, fragmentation = 0, unusable = 0, jobs_waiting = 0;
};

// Jobs of about one size.
struct SizeClass {
  int64_t least = 0, most = 0;  // GPUs
  size_t jobs = 0, placed = 0;
  Distribution wait, jct;
};

struct Summary {
  size_t jobs = 0, placed = 0;
  int64_t gpus = 0;
  Distribution wait, jct;
  double makespan = 0;  // seconds
  double utilisation = 0, fragmentation = 0, unusable = 0;
  std::vector<Point> over_time;
  std::vector<SizeClass> by_size;  // 0, 1, 2, 3-4, 5-8, ... GPUs, those that have jobs
};

Summary Summarise(const Workload& workload, const Outcome& outcome);
std::string ToText(const Workload& workload, const Outcome& outcome, const Summary& summary);
json::Value ToJson(const Workload& workload, const Outcome& outcome, const Summary& summary);

}  // namespace muster::simulator
