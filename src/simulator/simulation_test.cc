#include "simulator/simulation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "json/write.h"
#include "simulator/summary.h"
#include "simulator/trace_reader.h"

namespace muster::simulator {
namespace {

Job MakeJob(const std::string& name, int arrival_s, int run_s, int64_t pods, int64_t gpus) {
  Job job;
  job.name = name;
  job.arrival = seconds(arrival_s);
  job.run_time = seconds(run_s);
  PodSet& set = job.pods.emplace_back();
  set.count = pods;
  cluster::AddTo(set.constraints.requests, {{"nvidia.com/gpu", gpus}});
  cluster::AddTo(set.constraints.requests, {{"pods", 1}});
  return job;
}

Workload OnNodes(const char* shape, std::vector<Job> jobs) {
  return {*NodesOfShape(shape), std::move(jobs)};
}

std::vector<int64_t> Starts(const Workload& workload, Policy policy) {
  std::vector<int64_t> starts;
  for (const JobOutcome& job : Simulate(workload, policy).jobs)
    starts.push_back(job.placed ? std::chrono::floor<seconds>(job.start).count() : -1);
  return starts;
}

using Seconds = std::vector<int64_t>;

// Two nodes of 4 GPUs. `a` takes one node for 100 s, gang `g` wants both, `c` and `d` a node each.
Workload FourJobs() {
  return OnNodes("2x4", {MakeJob("a", 0, 100, 1, 4), MakeJob("g", 10, 50, 2, 4),
                         MakeJob("c", 20, 30, 1, 4), MakeJob("d", 20, 10, 1, 4)});
}

TEST(Simulate, FollowsTheOrderOfEachPolicy) {
  // c runs 20-50, d 50-60; a ends at 100, then the gang.
  EXPECT_EQ(Starts(FourJobs(), Policy::kMuster), (Seconds{0, 100, 20, 50}));
  EXPECT_EQ(Starts(FourJobs(), Policy::kBackfill), (Seconds{0, 100, 20, 50}));
  // The gang blocks c and d until 150.
  EXPECT_EQ(Starts(FourJobs(), Policy::kFifo), (Seconds{0, 100, 150, 150}));
  // d is the shorter one.
  EXPECT_EQ(Starts(FourJobs(), Policy::kShortestFirst), (Seconds{0, 100, 30, 20}));
}

TEST(Simulate, CountsExactly) {
  const Workload workload = FourJobs();
  const Outcome outcome = Simulate(workload, Policy::kMuster);
  const Summary summary = Summarise(workload, outcome);
  EXPECT_EQ(summary.placed, 4u);
  EXPECT_EQ(summary.gpus, 8);
  EXPECT_DOUBLE_EQ(summary.makespan, 150);
  // Waits 0, 90, 0, 30; JCT 100, 140, 30, 40.
  EXPECT_DOUBLE_EQ(summary.wait.mean, 30);
  EXPECT_DOUBLE_EQ(summary.wait.p50, 0);
  EXPECT_DOUBLE_EQ(summary.wait.p95, 90);
  EXPECT_DOUBLE_EQ(summary.wait.max, 90);
  EXPECT_DOUBLE_EQ(summary.jct.mean, 77.5);
  EXPECT_DOUBLE_EQ(summary.jct.p50, 40);
  // GPU seconds: 400 + 400 + 120 + 40 of 8 * 150.
  EXPECT_NEAR(summary.utilisation, 960.0 / 1200, 1e-9);
  EXPECT_NEAR(summary.fragmentation, 0, 1e-12);
  // The first point is a alone; 98 s is after c and d; the last is the gang.
  EXPECT_NEAR(summary.over_time.front().utilisation, 0.5, 1e-9);
  EXPECT_NEAR(summary.over_time[65].utilisation, 0.5, 1e-9);
  EXPECT_NEAR(summary.over_time[65].jobs_waiting, 1, 1e-9);
  EXPECT_NEAR(summary.over_time.back().utilisation, 1, 1e-9);
}

TEST(Simulate, CountsFreeGpusBesideUsedOnes) {
  const Workload workload = OnNodes("2x4", {MakeJob("a", 0, 100, 1, 3)});
  const Summary summary = Summarise(workload, Simulate(workload, Policy::kMuster));
  EXPECT_NEAR(summary.utilisation, 3.0 / 8, 1e-9);
  EXPECT_NEAR(summary.fragmentation, 1.0 / 8, 1e-9);
}

TEST(Simulate, EndsComeBeforeArrivalsOfTheSameMoment) {
  EXPECT_EQ(Starts(OnNodes("1x4", {MakeJob("a", 0, 10, 1, 4), MakeJob("b", 10, 10, 1, 4)}),
                   Policy::kFifo),
            (Seconds{0, 10}));
}

TEST(Simulate, PodsKeepApartAsTheySay) {
  const std::string pod = R"(
kind: Pod
metadata: {name: a, namespace: team, labels: {app: x}, annotations: {muster.dev/run-seconds: "10"}}
spec:
  containers: [{name: c, resources: {requests: {cpu: "1"}}}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}
)";
  const auto jobs = ReadJobs("f", pod + "---" + pod + "---" + pod);
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message();
  EXPECT_EQ(Starts(OnNodes("2x8", *jobs), Policy::kMuster), (Seconds{0, 0, 10}));
}

// `waits` wants to be beside a pod that comes 10 s later; nothing ends in between.
TEST(Simulate, AJobStartsWhenItsNeighbourDoes) {
  const auto jobs = ReadJobs("f", R"(
kind: Pod
metadata: {name: waits, creationTimestamp: "2026-01-01T00:00:00Z",
           annotations: {muster.dev/run-seconds: "5"}}
spec:
  containers: [{name: c, resources: {requests: {cpu: "1"}}}]
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}
---
kind: Pod
metadata: {name: x, labels: {app: x}, creationTimestamp: "2026-01-01T00:00:10Z",
           annotations: {muster.dev/run-seconds: "100"}}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
)");
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message();
  for (const Policy policy : {Policy::kMuster, Policy::kBackfill, Policy::kShortestFirst})
    EXPECT_EQ(Starts(OnNodes("2x8", *jobs), policy), (Seconds{10, 10}));
  // In the order of arrival, whom it waits for stands behind it.
  EXPECT_EQ(Starts(OnNodes("2x8", *jobs), Policy::kFifo), (Seconds{-1, -1}));
}

TEST(Simulate, PriorityCountsForMusterOnly) {
  Workload workload = OnNodes(
      "1x4", {MakeJob("a", 0, 10, 1, 4), MakeJob("b", 1, 10, 1, 4), MakeJob("c", 2, 10, 1, 4)});
  workload.jobs[2].priority = 5;
  EXPECT_EQ(Starts(workload, Policy::kMuster), (Seconds{0, 20, 10}));
  EXPECT_EQ(Starts(workload, Policy::kBackfill), (Seconds{0, 10, 20}));
}

TEST(Simulate, SaysWhyAJobIsNeverPlaced) {
  const Workload workload = OnNodes(
      "2x4", {MakeJob("big", 0, 10, 1, 5), MakeJob("gang", 0, 10, 3, 4), MakeJob("c", 1, 5, 1, 1)});
  const Outcome outcome = Simulate(workload, Policy::kMuster);
  EXPECT_TRUE(outcome.jobs[2].placed);
  ASSERT_EQ(outcome.never_placed.size(), 2u);
  EXPECT_EQ(outcome.never_placed[0].job, 0u);
  EXPECT_NE(outcome.never_placed[0].why.find("2 Insufficient nvidia.com/gpu"), std::string::npos)
      << outcome.never_placed[0].why;
  EXPECT_EQ(outcome.never_placed[1].job, 1u);
  const Outcome blocked = Simulate(workload, Policy::kFifo);
  ASSERT_EQ(blocked.never_placed.size(), 3u);
  EXPECT_EQ(blocked.never_placed[2].why, "a job before it in the queue never fits");
  const Summary summary = Summarise(workload, outcome);
  EXPECT_NE(ToText(workload, outcome, summary).find("never placed: big: 0/2 nodes"),
            std::string::npos);
}

TEST(Simulate, SameInputSameOutcomeAndNothingIsUsedTwice) {
  std::vector<Job> jobs;
  for (int i = 0; i < 300; ++i)
    jobs.push_back(MakeJob("same", i / 3, 20 + i * 37 % 90, i % 7 == 0 ? 3 : 1, 1 + i * 5 % 4));
  const Workload workload = OnNodes("6x4", jobs);
  for (const Policy policy :
       {Policy::kMuster, Policy::kFifo, Policy::kBackfill, Policy::kShortestFirst}) {
    const Outcome outcome = Simulate(workload, policy);
    EXPECT_EQ(json::Write(ToJson(workload, outcome, Summarise(workload, outcome))),
              json::Write(ToJson(workload, Simulate(workload, policy),
                                 Summarise(workload, Simulate(workload, policy)))));
    EXPECT_TRUE(outcome.never_placed.empty());
    for (const Sample& sample : outcome.samples) {
      EXPECT_LE(sample.gpus_used, 24);
      EXPECT_GE(sample.gpus_stranded, 0);
    }
    EXPECT_EQ(outcome.samples.back().gpus_used, 0);
    EXPECT_EQ(outcome.samples.back().gpus_stranded, 0);
    EXPECT_EQ(outcome.samples.back().jobs_waiting, 0);
  }
}

// Which the plan of only what is fresh relies on: nobody waits at an arrival who would fit.
TEST(Simulate, NoJobWaitsBesideRoomForIt) {
  std::vector<Job> jobs;
  for (int i = 0; i < 200; ++i) jobs.push_back(MakeJob("j", i, 50 + i * 31 % 70, 1, 1));
  const Outcome outcome = Simulate(OnNodes("3x4", jobs), Policy::kMuster);
  for (const Sample& sample : outcome.samples)
    EXPECT_TRUE(sample.jobs_waiting == 0 || sample.gpus_used == 12);
}

TEST(ToText, NamesAFewThatAreNeverPlaced) {
  const Workload workload =
      OnNodes("1x1", std::vector<Job>(kMaxNeverPlacedNamed + 2, MakeJob("j", 0, 1, 1, 2)));
  const Outcome outcome = Simulate(workload, Policy::kMuster);
  const Summary summary = Summarise(workload, outcome);
  EXPECT_NE(ToText(workload, outcome, summary).find("and 2 more"), std::string::npos);
  EXPECT_EQ(ToJson(workload, outcome, summary)["neverPlaced"].size(), kMaxNeverPlacedNamed + 2);
}

}  // namespace
}  // namespace muster::simulator
