// bench/packing/bench_packing.cc
//
// The packing experiment of FGD (Weng et al., ATC 2023) on openb: pods arrive one by one until 1.3
// times what the GPUs hold has arrived, none leaves, each gets one attempt.
//
//   bench_packing --nodes CSV --pods CSV --policy muster|fgd|bestfit|dotprod|random|planner
//                 --ties fixed|random --seeds 42..51
//
// Prints one JSON line for each seed: how much of all GPU was allocated, in percent, while 100 and
// 130 percent of it had arrived (the mean over all arrivals that round to that), and how many
// seconds the run took; then one line with the means over the seeds.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "base/time.h"
#include "packing/openb_trace.h"
#include "packing/packing_policy.h"

namespace muster::bench {
namespace {

struct Arguments {
  std::string nodes, pods, policy = "muster", ties = "fixed", seeds = "42..51";
};

struct Outcome {
  double alloc_100 = 0, alloc_130 = 0, seconds = 0;
};

// The mean of what was allocated while the arrived percentage rounded to one number.
class MeanAt {
 public:
  explicit MeanAt(int64_t percent) : percent_(percent) {}
  void Add(double arrived, double allocated) {
    if (std::llround(100 * arrived) != percent_) return;
    sum_ += 100 * allocated;
    ++count_;
  }
  double mean() const { return count_ == 0 ? 0 : sum_ / count_; }

 private:
  int64_t percent_;
  double sum_ = 0;
  int count_ = 0;
};

Outcome RunSeed(const OpenbTrace& trace, const Arguments& arguments, uint64_t seed) {
  Rng rng(seed);
  const std::vector<cluster::GpuAsk> arrivals = MakeArrivals(trace, rng);
  std::vector<cluster::GpuState> nodes = trace.nodes;
  Shuffle(nodes, rng);  // the fixed order of ties
  Rng choices(rng.Next());
  Rng ties(rng.Next());
  const auto policy = MakePackingPolicy(arguments.policy, trace, std::move(nodes),
                                        arguments.ties == "random" ? &ties : nullptr, choices);
  const Duration start = RealClock().Monotonic();
  const auto total = static_cast<double>(trace.total_milli);
  double arrived = 0, used = 0;
  MeanAt at_100(100), at_130(130);
  for (const cluster::GpuAsk& pod : arrivals) {
    arrived += pod.TotalMilli();
    if (policy->Arrive(pod)) used += pod.TotalMilli();
    at_100.Add(arrived / total, used / total);
    at_130.Add(arrived / total, used / total);
  }
  return {at_100.mean(), at_130.mean(),
          std::chrono::duration<double>(RealClock().Monotonic() - start).count()};
}

// "42..51", or one number.
bool ParseSeeds(std::string_view text, int64_t& first, int64_t& last) {
  const size_t dots = text.find("..");
  const auto from = ParseInt(text.substr(0, dots));
  const auto to = dots == std::string_view::npos ? from : ParseInt(text.substr(dots + 2));
  if (!from || !to || *from < 0 || *to < *from || *to - *from >= 1'000'000) return false;
  first = *from;
  last = *to;
  return true;
}

int Run(const Arguments& arguments) {
  int64_t first = 0, last = 0;
  if (!ParseSeeds(arguments.seeds, first, last)) {
    fmt::print(stderr, "bench_packing: --seeds must be FIRST..LAST, not {:?}\n", arguments.seeds);
    return 2;
  }
  if (arguments.policy == "planner" && arguments.ties == "random") {
    fmt::print(stderr, "bench_packing: the planner decides ties in a fixed order\n");
    return 2;
  }
  const Result<OpenbTrace> trace = ReadOpenbTrace(arguments.nodes, arguments.pods);
  if (!trace) {
    fmt::print(stderr, "bench_packing: {}\n", trace.error().message());
    return 1;
  }
  Outcome sum;
  for (int64_t seed = first; seed <= last; ++seed) {
    const Outcome outcome = RunSeed(*trace, arguments, static_cast<uint64_t>(seed));
    fmt::print(R"({{"seed":{},"alloc_100":{:.3f},"alloc_130":{:.3f},"seconds":{:.3f}}})"
               "\n",
               seed, outcome.alloc_100, outcome.alloc_130, outcome.seconds);
    std::fflush(stdout);
    sum.alloc_100 += outcome.alloc_100;
    sum.alloc_130 += outcome.alloc_130;
    sum.seconds += outcome.seconds;
  }
  const auto count = static_cast<double>(last - first + 1);
  fmt::print(R"({{"policy":"{}","ties":"{}","seeds":{},)"
             R"("alloc_100":{:.3f},"alloc_130":{:.3f},"seconds":{:.3f}}})"
             "\n",
             arguments.policy, arguments.ties, last - first + 1, sum.alloc_100 / count,
             sum.alloc_130 / count, sum.seconds / count);
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::bench::Arguments arguments;
  CLI::App app("GPU packing on the openb traces, as in FGD (ATC 2023)");
  app.add_option("--nodes", arguments.nodes, "CSV: sn,cpu_milli,memory_mib,gpu,model")->required();
  app.add_option("--pods", arguments.pods,
                 "CSV: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]")
      ->required();
  app.add_option("--policy", arguments.policy, "who places")
      ->check(CLI::IsMember({"muster", "fgd", "bestfit", "dotprod", "random", "planner"}));
  app.add_option("--ties", arguments.ties, "equals: the first of a fixed random order, or any")
      ->check(CLI::IsMember({"fixed", "random"}));
  app.add_option("--seeds", arguments.seeds, "FIRST..LAST");
  CLI11_PARSE(app, argc, argv);
  return muster::bench::Run(arguments);
}
