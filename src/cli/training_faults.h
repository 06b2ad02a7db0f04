// src/cli/training_faults.h
//
// What is wrong with a training that runs but gets no further, or got no further: a rank that is
// not there or waits for nobody, GPUs that are slower than their peers, memory that ran out. From
// what can be seen from outside: pods, last words of their logs, CPU, figures of the GPUs.
//
// Thread: any (pure functions).

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cli/gpu_figures.h"
#include "json/value.h"

namespace muster::cli {

// Ranks without a word for so long are suspected.
inline constexpr Duration kSilence = minutes(5);
// Cores: all who use less sleep, all who use more compute (or spin). Of others a rank differs if it
// uses so many times as much as the next; below kLeastCores nothing is measured.
inline constexpr double kIdleCores = 0.05;
inline constexpr double kBusyCores = 0.5;
inline constexpr double kLoadGap = 10;
inline constexpr double kLeastCores = 0.003;
// A GPU is slow if its clock is below this part of the median of its peers, hot if it is so many
// degrees above theirs, idle if its load is so far below theirs.
inline constexpr double kSlowClock = 0.85;
inline constexpr int64_t kHotterByCelsius = 15;
inline constexpr int64_t kIdlerByPercent = 40;

struct GpuOfRank {
  std::string uuid, model;
  Figures figures;
};

struct Rank {
  std::string name;  // of the pod
  json::Value pod;
  std::string node, driver;  // the node's label of its driver
  bool log_read = true;
  std::optional<Time> last_word;  // of its log; nullopt: it has said nothing
  std::optional<double> cores;    // in use
  std::vector<GpuOfRank> gpus;
};

// A container of the pod was, lately.
bool WasOomKilled(const json::Value& pod);

// Where containers ended for want of memory: of the node, by its limit, or, in the last lines of a
// log, of the GPU. `memory_now`: what the container uses again, "" if that is not known.
std::vector<std::string> MemoryFaults(const json::Value& pod, std::string_view log_tail,
                                      const std::string& memory_now);

// Which rank others wait for, if any does. `wanted` pods make the training whole. A training whose
// ranks have spoken lately, or whose start is younger than `silence`, is not suspected.
std::vector<std::string> HangFaults(const std::vector<Rank>& ranks, int64_t wanted, Time now,
                                    Duration silence);

// GPUs that differ from those of their model in the same training.
std::vector<std::string> SlowGpus(const std::vector<Rank>& ranks);

// "8" is "hardware slowdown"; "" of reasons that slow nothing down (idle, set by somebody).
std::string SlowdownText(int64_t reasons);

}  // namespace muster::cli
