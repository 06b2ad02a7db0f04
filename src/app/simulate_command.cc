#include "app/simulate_command.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/rng.h"
#include "base/strings.h"
#include "cli/console.h"
#include "cli/live_cluster.h"
#include "cli/session.h"
#include "json/write.h"
#include "scheduler/scheduler.h"
#include "simulator/html_report.h"
#include "simulator/live_workload.h"
#include "simulator/simulation.h"
#include "simulator/submission.h"
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

// What the command works on, and what of it the answer is about.
struct Question {
  simulator::Workload workload;
  std::optional<Time> now;                    // of the live cluster
  size_t first_submitted = 0, submitted = 0;  // in workload.jobs
  std::vector<std::string> not_simulated;     // objects that are submitted and make other pods
};

// Nodes, what runs there and what waits.
Status ReadLive(cli::Session& session, Question& question, simulator::ReadOptions& options) {
  ASSIGN_OR_RETURN(const scheduler::ClusterLists lists, cli::ReadCluster(session));
  std::vector<json::Value> owners;
  for (const auto& [kind, path] : {std::pair("PyTorchJob", "/apis/kubeflow.org/v1/pytorchjobs"),
                                   std::pair("Job", "/apis/batch/v1/jobs")}) {
    // A kind that is not served, or not for this user, controls nothing that we see.
    const Result<json::Value> list = session.GetJson(path);
    if (!list) continue;
    for (const json::Value& owner : (*list)["items"].items())
      owners.push_back(owner.Set("kind", kind));
  }
  for (const json::Value& each : lists.priority_classes["items"].items())
    options.priority_classes[each["metadata"]["name"].Str()] = each["value"].AsInt();
  question.now = session.loop().Now();
  question.workload = simulator::WorkloadOf(
      lists, owners, scheduler::SchedulerConfig().scheduler_names, *question.now);
  return Status::Ok();
}

// Names that a line has room for.
constexpr size_t kMaxNamesTold = 10;

std::string NotSimulatedText(std::vector<std::string> names) {
  const size_t others = names.size() - std::min(names.size(), kMaxNamesTold);
  names.resize(names.size() - others);
  return fmt::format("not simulated: {}{}; only Pods, PodGroups, PyTorchJobs and Jobs are",
                     Join(names, ", "), others > 0 ? fmt::format(" and {} others", others) : "");
}

Result<std::vector<simulator::Job>> ReadJobFile(const std::string& file,
                                                const simulator::ReadOptions& options) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(file, simulator::kMaxTraceBytes));
  return simulator::ReadJobs(file, text, options);
}

// As of what arrives now.
Status ReadSubmitted(const std::string& file, const simulator::ReadOptions& options,
                     Question& question) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(file, simulator::kMaxTraceBytes));
  RETURN_IF_ERROR(simulator::ValidateJobs(file, text));
  question.not_simulated = simulator::NotSimulated(file, text);
  Result<std::vector<simulator::Job>> submitted = simulator::ReadJobs(file, text, options);
  if (!submitted && !question.not_simulated.empty()) {
    return Error(submitted.error().reason(), "{} ({})", submitted.error().message(),
                 NotSimulatedText(question.not_simulated));
  }
  if (!submitted) return submitted.error();
  for (simulator::Job& job : *submitted) job.arrival = Duration(0);
  question.submitted = submitted->size();
  std::vector<simulator::Job>& jobs = question.workload.jobs;
  jobs.insert(jobs.end(), submitted->begin(), submitted->end());
  return Status::Ok();
}

Result<Question> ReadQuestion(const Arguments& arguments, cli::Session* session) {
  const bool live = arguments.Has("live"), submits = arguments.Has("submit");
  if (!live && !arguments.Has("nodes"))
    return Error(Reason::kInvalid,
                 "say which nodes with --nodes or --live (see muster simulate --help)");
  if (!live && !submits && !arguments.Has("jobs"))
    return Error(Reason::kInvalid, "say which jobs with --jobs (see muster simulate --help)");
  ASSIGN_OR_RETURN(const int64_t percent, arguments.GetInt("sample", 100, 1, 100));
  ASSIGN_OR_RETURN(const int64_t seed, arguments.GetInt("seed", 1, 0, INT64_MAX));
  Question question;
  simulator::ReadOptions options;
  if (live) {
    options.ns = session->ns();
    RETURN_IF_ERROR(ReadLive(*session, question, options));
  } else {
    ASSIGN_OR_RETURN(question.workload.nodes, NodesOf(arguments.Get("nodes")));
  }
  // In order of arrival: what waits, what is submitted now, and what a trace brings.
  std::vector<simulator::Job>& jobs = question.workload.jobs;
  question.first_submitted = jobs.size();
  if (submits) {
    options.run_time = simulator::RunTime::kOptional;
    options.passes_over_others = true;
    RETURN_IF_ERROR(ReadSubmitted(arguments.Get("submit"), options, question));
  }
  if (arguments.Has("jobs")) {
    options.run_time = simulator::RunTime::kRequired;
    options.passes_over_others = false;
    ASSIGN_OR_RETURN(std::vector<simulator::Job> more, ReadJobFile(arguments.Get("jobs"), options));
    if (percent < 100) TakeSample(more, percent, seed);
    jobs.insert(jobs.end(), more.begin(), more.end());
  }
  return question;
}

int ExitCode(const std::vector<simulator::Submission>& submissions) {
  int code = 0;
  for (const simulator::Submission& submission : submissions) {
    if (submission.answer == simulator::Submission::Answer::kUnknown)
      code = std::max(code, kStartUnknown);
    if (submission.answer == simulator::Submission::Answer::kNever)
      code = std::max(code, kStartsNever);
  }
  return code;
}

std::string TitleOf(const Arguments& arguments) {
  std::string title = arguments.Has("jobs") ? arguments.Get("jobs") : "what waits";
  title += " on " + (arguments.Has("live") ? "a copy of the cluster" : arguments.Get("nodes"));
  if (arguments.Has("submit")) title += ", with " + arguments.Get("submit");
  return title + ", order: " + arguments.Get("policy");
}

}  // namespace

Result<int> RunSimulate(const Arguments& arguments, Console& console, cli::Session* session) {
  ASSIGN_OR_RETURN(const Question question, ReadQuestion(arguments, session));
  const simulator::Workload& workload = question.workload;
  const simulator::Outcome outcome = simulator::Simulate(
      workload, PolicyOf(arguments.Get("policy")), [&](size_t done, size_t total) {
        console.StatusLine(fmt::format("simulating {} jobs: {} %", total / 2, 100 * done / total));
      });
  console.StatusLine("");
  const simulator::Summary summary = simulator::Summarise(workload, outcome);
  if (arguments.Has("html")) {
    RETURN_IF_ERROR(WriteFileAtomic(
        arguments.Get("html"), simulator::ToHtml(workload, outcome, summary, TitleOf(arguments))));
  }
  const auto submissions =
      simulator::SubmissionsOf(workload, outcome, question.first_submitted, question.submitted);
  if (arguments.Get("output") == "json") {
    json::Value out = simulator::ToJson(workload, outcome, summary);
    json::Array list;
    for (const simulator::Submission& each : submissions)
      list.push_back(simulator::ToJson(each, question.now));
    if (arguments.Has("submit")) out = out.Set("submitted", json::Value(std::move(list)));
    if (!question.not_simulated.empty())
      out = out.Set("notSimulated", json::Strings(question.not_simulated));
    console.Out(json::WritePretty(out) + "\n");
  } else if (arguments.Has("submit")) {
    for (const simulator::Submission& each : submissions)
      console.Out(simulator::ToText(each, outcome.unknown_ends, question.now));
    if (!question.not_simulated.empty()) console.Err(NotSimulatedText(question.not_simulated));
  } else {
    console.Out(simulator::ToText(workload, outcome, summary));
  }
  return ExitCode(submissions);
}

namespace {

Result<int> Run(const Arguments& arguments, Console& console) {
  if (!arguments.Has("live")) return RunSimulate(arguments, console, nullptr);
  ASSIGN_OR_RETURN(const std::unique_ptr<cli::Session> session, cli::Session::Open(arguments));
  return RunSimulate(arguments, console, session.get());
}

}  // namespace

cli::Command SimulateCommand() {
  cli::Command command;
  command.name = "simulate";
  command.summary = "how long jobs would wait on a cluster that need not exist";
  command.usage = "--nodes FILE|COUNTxGPUS|--live [--jobs FILE] [--submit FILE] [flags]";
  command.details =
      "Runs the scheduler of `muster up` on simulated time: jobs arrive, start, end. Prints how "
      "long\n"
      "they waited, completion times (JCT), use of the GPUs, and the jobs that fit nowhere with "
      "the\n"
      "reason. The format of a file is recognized: CSV as of the openb traces (nodes, jobs) or of\n"
      "Philly (jobs), or Kubernetes objects in YAML or JSON: Nodes; PyTorchJobs, Jobs, Pods and\n"
      "PodGroups with the annotation muster.dev/run-seconds on each (pods of a gang start "
      "together).\n"
      "--live begins with a copy of the cluster: what runs, with what is left of its run time, "
      "and\n"
      "what waits. --submit says when and where jobs would start: exit code 0, or 3 where nobody "
      "can\n"
      "tell, because what runs before has no known end, or 4 where they never fit. Nothing is "
      "created.\n"
      "Times are in seconds. Runs are repeatable: the seed decides which jobs a sample keeps.";
  command.flags = {
      {"nodes", 0, "NODES", "a file, or COUNTxGPUS: 100x8 is 100 nodes of 8 GPUs", "", {}},
      {"live", 0, "", "a copy of the cluster that the kubeconfig leads to", "", {}},
      {"jobs", 0, "FILE", "what arrives", "", {}},
      {"submit", 0, "FILE", "objects as for apply: when and where would they start", "", {}},
      {"html", 0, "FILE", "write a report with charts there", "", {}},
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
      {"muster simulate --live --submit job.yaml", "when would it start"},
      {"muster simulate --nodes nodes.yaml --jobs jobs.yaml --html report.html", "charts"}};
  command.needs = {{"seed", {"sample"}}, {"sample", {"jobs"}}};
  command.exclusive = {{"live", "nodes"}};
  command.run_offline = Run;
  return command;
}

}  // namespace muster::app
