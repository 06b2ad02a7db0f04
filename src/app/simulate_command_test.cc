#include "app/simulate_command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "cli/arguments.h"
#include "cli/cli_testing.h"
#include "cli/console.h"
#include "json/parse.h"
#include "simulator/trace_reader.h"

namespace muster::app {
namespace {

class SimulateCommandTest : public ::testing::Test {
 protected:
  SimulateCommandTest()
      : jobs_(std::filesystem::temp_directory_path() /
              ("muster-simulate-" + std::to_string(getpid()))) {
    std::ofstream file(jobs_);
    file << "timestamp,duration,num_gpus,gpu_time,cluster\n";
    for (int i = 0; i < 40; ++i) file << "2017-10-09 07:00:00,10.0,8,1,a\n";
    file << "2017-10-09 07:00:00,10.0,24,1,a\n";
  }
  ~SimulateCommandTest() override { std::filesystem::remove(jobs_); }

  // What it prints, or the error.
  std::string Run(std::vector<std::string> words) {
    const cli::Command command = SimulateCommand();
    cli::Console console{cli::Console::Capture{}};
    const auto arguments = cli::ParseArguments(command, words);
    if (!arguments) return arguments.error().message();
    const auto code = command.run_offline(*arguments, console);
    return code ? console.out : code.error().message();
  }

  std::filesystem::path jobs_;
};

TEST_F(SimulateCommandTest, PrintsWaitsAndWhatNeverFits) {
  const std::string text = Run({"--nodes", "2x8", "--jobs", jobs_});
  // 40 jobs, two at a time: waits 0, 0, 10, 10, ..., 190, 190.
  EXPECT_NE(text.find("wait          95.0        90.0       180.0       190.0"), std::string::npos)
      << text;
  EXPECT_NE(text.find("JCT          105.0"), std::string::npos) << text;
  EXPECT_NE(text.find("GPUs used 100.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("never placed: job-42: "), std::string::npos) << text;
}

TEST_F(SimulateCommandTest, JsonAndSample) {
  const std::vector<std::string> words = {"--nodes", "2x8",      "--jobs", jobs_,    "-o",
                                          "json",    "--sample", "50",     "--seed", "3"};
  const std::string text = Run(words);
  const auto json = json::Parse(text);
  ASSERT_TRUE(json.has_value()) << text;
  EXPECT_GT((*json)["jobs"].AsInt(), 5);
  EXPECT_LT((*json)["jobs"].AsInt(), 36);
  EXPECT_EQ((*json)["gpus"].AsInt(), 16);
  EXPECT_EQ(Run(words), text);
}

TEST_F(SimulateCommandTest, WritesAReport) {
  const std::string file = jobs_.string() + ".html";
  EXPECT_EQ(Run({"--nodes", "2x8", "--jobs", jobs_, "--html", file}).substr(0, 7), "41 jobs");
  const auto html = ReadSmallFile(file, size_t{1} << 20);
  ASSERT_TRUE(html.has_value());
  EXPECT_NE(html->find("on 2x8, order: muster"), std::string::npos);
  std::filesystem::remove(file);
}

// One node of 4 GPUs: "runs" has 3 and ends in 60 s, "endless" has 1, and "waits" wants 3.
class SimulateLiveTest : public ::testing::Test {
 protected:
  SimulateLiveTest()
      : file_(std::filesystem::temp_directory_path() /
              ("muster-submit-" + std::to_string(getpid()))) {
    cluster_.api.Put("/api/v1/nodes",
                     cli::Yaml("{metadata: {name: n0}, status: {allocatable: {cpu: '8', pods: '9', "
                               "nvidia.com/gpu: '4'}}}"));
    const Time started = cluster_.loop.Now() - seconds(40);
    PutPod("runs", "nodeName: n0,", 3, "100", FormatTime(started));
    PutPod("endless", "nodeName: n0,", 1, "", FormatTime(started));
    PutPod("waits", "", 3, "30", "");
  }
  ~SimulateLiveTest() override { std::filesystem::remove(file_); }

  void PutPod(const std::string& name, const std::string& spec, int gpus, const std::string& run,
              const std::string& started) {
    cluster_.api.Put(
        "/api/v1/pods",
        cli::Yaml("{metadata: {name: " + name + ", namespace: default, annotations: {" +
                  (run.empty() ? "" : "muster.dev/run-seconds: '" + run + "'") + "}}, spec: {" +
                  spec + " containers: [{name: c, resources: {limits: {nvidia.com/gpu: '" +
                  std::to_string(gpus) + "'}}}]}, status: {startTime: '" + started + "'}}"));
  }
  // Exit code and output of --live --submit with a PyTorchJob of so many pods of so many GPUs.
  std::pair<int, std::string> Submit(int workers, int gpus, std::vector<std::string> more = {}) {
    std::ofstream(file_) << others_
                         << "kind: ConfigMap\n---\nkind: PyTorchJob\nmetadata: {name: j}\nspec: "
                            "{pytorchReplicaSpecs: "
                            "{Worker: {replicas: "
                         << workers
                         << ", template: {spec: {containers: [{name: c, resources: {limits: "
                            "{nvidia.com/gpu: "
                         << gpus << "}}}]}}}}}\n";
    more.insert(more.end(), {"--live", "--submit", file_});
    cli::Session session(cluster_.loop, cluster_.pump, cluster_.transport, "default");
    cli::Console console{cli::Console::Capture{}};
    const auto code = RunSimulate(*cli::ParseArguments(SimulateCommand(), more), console, &session);
    return {code.value_or(-1), code ? console.out + console.err : code.error().message()};
  }

  std::filesystem::path file_;
  std::string others_;  // objects before the job
  cli::FakeCluster cluster_;
};

TEST_F(SimulateLiveTest, SaysWhenAJobWouldStart) {
  // "waits" goes first, when "runs" ends, and is over 30 s later.
  const std::string at = FormatTime(cluster_.loop.Now() + seconds(90));
  EXPECT_EQ(Submit(2, 1), (std::pair(0, "default/j starts in 90s (" + at + ") on n0\n")));
  const auto [code, text] = Submit(2, 1, {"-o", "json"});
  const json::Value answer = (*json::Parse(text))["submitted"].At(0);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(answer["answer"].AsString(), "Starts");
  EXPECT_EQ(answer["startsAt"].AsString(), at);
  EXPECT_EQ(answer["nodes"].size(), 2u);
}

TEST_F(SimulateLiveTest, SaysWhenNobodyCanTell) {
  const auto [code, text] = Submit(1, 4);
  EXPECT_EQ(code, kStartUnknown);
  EXPECT_EQ(text,
            "default/j: nobody can tell when it starts; 1 that run or wait before it have no known "
            "end (annotation muster.dev/run-seconds). 0/1 nodes are available: 1 Insufficient "
            "nvidia.com/gpu. Waits for 4 nvidia.com/gpu: 3 of 4 free (1 held by pod "
            "default/endless); fits when pod default/endless ends.\n");
}

TEST_F(SimulateLiveTest, SaysWhatItLeavesOut) {
  others_ = "kind: Deployment\nmetadata: {name: web}\n---\nkind: Service\n---\n";
  EXPECT_TRUE(Submit(2, 1).second.ends_with(
      " on n0\nnot simulated: Deployment web; only Pods, PodGroups, PyTorchJobs and Jobs are\n"))
      << Submit(2, 1).second;
  const json::Value answer = *json::Parse(Submit(2, 1, {"-o", "json"}).second);
  EXPECT_EQ(answer["notSimulated"].At(0).AsString(), "Deployment web");
  for (int i = 0; i < 10; ++i)
    others_ += "kind: CronJob\nmetadata: {name: c" + std::to_string(i) + "}\n---\n";
  EXPECT_NE(Submit(2, 1).second.find("CronJob c8 and 1 others; only"), std::string::npos)
      << Submit(2, 1).second;
}

// What the server would refuse never starts.
TEST_F(SimulateCommandTest, WhatIsSubmittedIsValidated) {
  const auto submit = [&](const std::string& object) {
    std::ofstream(jobs_) << object;
    return Run({"--nodes", "2x8", "--submit", jobs_});
  };
  const std::string job =
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: "
      "{restartPolicy: Never, containers: [{name: c, image: i}]}}";
  EXPECT_EQ(submit(job + "}\n"), "default/j starts at once on node-0\n");
  EXPECT_EQ(submit(job + ", paralelism: 2}\n"),
            jobs_.string() +
                ": Job j: Job in version \"v1\" cannot be handled as a Job: strict "
                "decoding error: unknown field \"spec.paralelism\"");
  EXPECT_EQ(submit(job + ", parallelism: -2}\n"),
            jobs_.string() +
                ": Job j: Job.batch \"j\" is invalid: spec.parallelism: Invalid value: "
                "-2: must be greater than or equal to 0");
  EXPECT_NE(submit(job + ", parallelism: many}\n").find("cannot unmarshal string"),
            std::string::npos);
}

// Gangs have the names of their jobs, not numbers.
TEST_F(SimulateCommandTest, AGangHasItsName) {
  std::ofstream(jobs_)
      << "kind: PyTorchJob\nmetadata: {name: big}\nspec: {pytorchReplicaSpecs: {Worker: "
         "{replicas: 3, template: {spec: {containers: [{name: c, resources: {limits: "
         "{nvidia.com/gpu: 8}}}]}}}}}\n";
  const std::string text = Run({"--nodes", "2x8", "--submit", jobs_});
  EXPECT_NE(text.find("gang big: "), std::string::npos) << text;
}

TEST_F(SimulateCommandTest, SaysWhatItLeavesOutWhereNothingIsLeft) {
  std::ofstream(jobs_) << "kind: StatefulSet\nmetadata: {name: db}\n";
  const std::string text = Run({"--nodes", "2x8", "--submit", jobs_});
  EXPECT_NE(text.find(": no job with a run time (not simulated: StatefulSet db; only"),
            std::string::npos)
      << text;
}

TEST_F(SimulateLiveTest, SaysWhatNeverFits) {
  const auto [code, text] = Submit(2, 4);
  EXPECT_EQ(code, kStartsNever);
  EXPECT_NE(text.find("default/j never starts: "), std::string::npos) << text;
  EXPECT_NE(text.find("as of 1 more node like n0"), std::string::npos) << text;
}

TEST_F(SimulateLiveTest, CountsWhatRunsFromTheBeginning) {
  cli::Session session(cluster_.loop, cluster_.pump, cluster_.transport, "default");
  cli::Console console{cli::Console::Capture{}};
  ASSERT_TRUE(RunSimulate(*cli::ParseArguments(SimulateCommand(), {"--live"}), console, &session));
  // 4 of 4 for 60 s, then "waits" beside "endless" for 30 s: all of the time all GPUs.
  EXPECT_NE(console.out.find("makespan 90.0 s\nGPUs used 100.0 %"), std::string::npos)
      << console.out;
  EXPECT_NE(console.out.find("1 running without a known end"), std::string::npos) << console.out;
}

TEST_F(SimulateLiveTest, CreatesNothing) {
  Submit(1, 1);
  for (const std::string& request : cluster_.api.requests)
    EXPECT_TRUE(request.starts_with("GET ")) << request;
}

TEST_F(SimulateCommandTest, SaysWhatIsMissing) {
  EXPECT_NE(Run({"--jobs", jobs_}).find("--nodes"), std::string::npos);
  EXPECT_NE(Run({"--nodes", "2x8"}).find("--jobs"), std::string::npos);
  EXPECT_NE(Run({"--nodes", "2x8", "--jobs", "/nowhere"}).find("/nowhere"), std::string::npos);
  std::filesystem::resize_file(jobs_, simulator::kMaxTraceBytes + 1);
  EXPECT_NE(Run({"--nodes", "2x8", "--jobs", jobs_}).find(jobs_), std::string::npos);
  EXPECT_NE(Run({"--nodes", "2x8", "--jobs", jobs_, "--sample", "0"}).find("sample"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::app
