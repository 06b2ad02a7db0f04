// How long the jobs of Philly wait under each order of the queue, on the same simulated nodes of 8
// GPUs with the same production planner; prints `name value unit` lines.
//
//   queueing_bench TRACE_CSV [--short]
//
// Load = GPU seconds of the jobs / (GPUs * seconds from the first arrival to the last), set by the
// number of nodes: the trace itself is never stretched. The jobs are the first kJobs that arrive
// (kShortJobs with --short). `seconds` is what the simulation itself took.
// Exits with 77 where the trace is missing.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/time.h"
#include "simulator/simulation.h"
#include "simulator/summary.h"
#include "simulator/trace_reader.h"

namespace muster::simulator {
namespace {

constexpr size_t kJobs = 40'000;
constexpr size_t kShortJobs = 3'000;
constexpr int kLoadsPercent[] = {40, 50, 60};

constexpr std::pair<const char*, Policy> kPolicies[] = {{"muster", Policy::kMuster},
                                                        {"fifo", Policy::kFifo},
                                                        {"backfill", Policy::kBackfill},
                                                        {"sjf", Policy::kShortestFirst}};

int NodesForLoad(const std::vector<Job>& jobs, int percent) {
  double gpu_seconds = 0;
  for (const Job& job : jobs) {
    gpu_seconds +=
        static_cast<double>(job.Gpus()) * std::chrono::duration<double>(job.run_time).count();
  }
  const double span = std::chrono::duration<double>(jobs.back().arrival).count();
  return static_cast<int>(std::round(gpu_seconds / span / 8 / percent * 100));
}

void Measure(const std::vector<Job>& jobs, int percent) {
  const int nodes = NodesForLoad(jobs, percent);
  std::printf("load_%d_nodes %d nodes\n", percent, nodes);
  const Workload workload{*NodesOfShape(fmt::format("{}x8", nodes)), jobs};
  for (const auto& [name, policy] : kPolicies) {
    const Duration began = RealClock().Monotonic();
    const Outcome outcome = Simulate(workload, policy);
    const std::chrono::duration<double> took = RealClock().Monotonic() - began;
    const Summary summary = Summarise(workload, outcome);
    const std::string prefix = fmt::format("load_{}_{}_", percent, name);
    std::printf("%swait_mean %.0f s\n%swait_p95 %.0f s\n", prefix.c_str(), summary.wait.mean,
                prefix.c_str(), summary.wait.p95);
    std::printf("%sjct_mean %.0f s\n%sjct_p95 %.0f s\n", prefix.c_str(), summary.jct.mean,
                prefix.c_str(), summary.jct.p95);
    std::printf("%splaced %zu jobs\n", prefix.c_str(), summary.placed);
    std::printf("%sseconds %.2f s\n", prefix.c_str(), took.count());
    std::fflush(stdout);
  }
}

int Run(const std::string& path, bool short_run) {
  const auto text = ReadSmallFile(path, kMaxTraceBytes);
  if (!text && text.error().reason() == Reason::kNotFound) {
    std::fprintf(stderr, "skipped: the trace %s is not there\n", path.c_str());
    return 77;
  }
  auto jobs = text ? ReadJobs(path, *text) : Result<std::vector<Job>>(Error(text.error()));
  if (!jobs) {
    std::fprintf(stderr, "error: %s\n", jobs.error().message().c_str());
    return 1;
  }
  jobs->resize(std::min(jobs->size(), short_run ? kShortJobs : kJobs));
  std::printf("jobs %zu jobs\n", jobs->size());
  for (const int percent : kLoadsPercent) Measure(*jobs, percent);
  return 0;
}

}  // namespace
}  // namespace muster::simulator

int main(int argc, char** argv) {
  const bool short_run = argc > 2 && std::strcmp(argv[2], "--short") == 0;
  return muster::simulator::Run(argc > 1 ? argv[1] : "../shared/traces/philly/philly.csv",
                                short_run);
}
