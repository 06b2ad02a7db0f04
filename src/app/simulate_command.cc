#include "app/simulate_command.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/rng.h"
#include "cli/console.h"
#include "json/write.h"
#include "simulator/simulation.h"
#include "simulator/summary.h"
#include "simulator/trace_reader.h"

namespace muster::app {
namespace {

using cli::Arguments;
using cli::Console;
using simulator::Policy;

Policy PolicyOf(const std::string& name) {
  if (name == "fifo") return Policy::kFifo;
  if (name == "backfill") return Policy::kBackfill;
  return name == "sjf" ? Policy::kShortestFirst : Policy::kMuster;
}

Result<std::vector<cluster::NodeInfo>> NodesOf(const std::string& value) {
  if (simulator::IsNodeShape(value)) return simulator::NodesOfShape(value);
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(value, simulator::kMaxTraceBytes));
  return simulator::ReadNodes(value, text);
}

// Each job stays with the same chance.
void TakeSample(std::vector<simulator::Job>& jobs, int64_t percent, int64_t seed) {
  Rng rng(static_cast<uint64_t>(seed));
  std::erase_if(jobs, [&](const simulator::Job&) {
    return rng.Below(100) >= static_cast<uint64_t>(percent);
  });
}

Result<int> RunSimulation(const Arguments& arguments, Console& console) {
  for (const char* flag : {"nodes", "jobs"}) {
    if (!arguments.Has(flag))
      return Error(Reason::kInvalid, "say which {} with --{} (see muster simulate --help)", flag,
                   flag);
  }
  ASSIGN_OR_RETURN(const int64_t percent, arguments.GetInt("sample", 100, 1, 100));
  ASSIGN_OR_RETURN(const int64_t seed, arguments.GetInt("seed", 1, 0, INT64_MAX));
  simulator::Workload workload;
  ASSIGN_OR_RETURN(workload.nodes, NodesOf(arguments.Get("nodes")));
  const std::string file = arguments.Get("jobs");
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(file, simulator::kMaxTraceBytes));
  ASSIGN_OR_RETURN(workload.jobs, simulator::ReadJobs(file, text));
  if (percent < 100) TakeSample(workload.jobs, percent, seed);
  const simulator::Outcome outcome = simulator::Simulate(
      workload, PolicyOf(arguments.Get("policy")), [&](size_t done, size_t total) {
        console.StatusLine(fmt::format("simulating {} jobs: {} %", total / 2, 100 * done / total));
      });
  console.StatusLine("");
  const simulator::Summary summary = simulator::Summarise(workload, outcome);
  if (arguments.Get("output") == "json") {
    console.Out(json::WritePretty(simulator::ToJson(workload, outcome, summary)) + "\n");
  } else {
    console.Out(simulator::ToText(workload, outcome, summary));
  }
  return 0;
}

}  // namespace

cli::Command SimulateCommand() {
  cli::Command command;
  command.name = "simulate";
  command.summary = "how long jobs would wait on a cluster that need not exist";
  command.usage = "--nodes FILE|COUNTxGPUS --jobs FILE [flags]";
  command.details =
      "Runs the scheduler of `muster up` on simulated time: jobs arrive, start, end. Prints how "
      "long\n"
      "they waited, completion times (JCT), use of the GPUs, and the jobs that fit nowhere with "
      "the\n"
      "reason. The format of a file is recognized: CSV as of the openb traces (nodes, jobs) or of\n"
      "Philly (jobs), or Kubernetes objects in YAML or JSON: Nodes, and Pods with the annotation\n"
      "muster.dev/run-seconds (pods of one gang, as their group-name says, start together).\n"
      "Times are in seconds. Runs are repeatable: the seed decides which jobs a sample keeps.";
  command.flags = {
      {"nodes", 0, "NODES", "a file, or COUNTxGPUS: 100x8 is 100 nodes of 8 GPUs", "", {}},
      {"jobs", 0, "FILE", "what arrives", "", {}},
      {"policy",
       0,
       "ORDER",
       "whose order: that of muster, of first in first out (fifo), with those that fit going ahead "
       "(backfill), or the shortest first (sjf)",
       "muster",
       {"muster", "fifo", "backfill", "sjf"}},
      {"sample", 0, "PERCENT", "take about that many of the jobs", "100", {}},
      {"seed", 0, "N", "of the choice of a sample", "1", {}},
      {"output", 'o', "FORMAT", "json", "", {"json"}}};
  command.examples = {
      {"muster simulate --nodes 100x8 --jobs philly.csv", "a trace on 100 nodes of 8 GPUs"},
      {"muster simulate --nodes nodes.yaml --jobs pods.yaml -o json", "for programs"}};
  command.needs = {{"seed", {"sample"}}};
  command.local = true;
  command.run_offline = RunSimulation;
  return command;
}

}  // namespace muster::app
