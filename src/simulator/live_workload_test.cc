#include "simulator/live_workload.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace muster::simulator {
namespace {

const Time kNow = *ParseTime("2026-01-02T00:10:00Z");

json::Value Yaml(const std::string& text) { return json::ParseYaml(text)->front(); }

// A pod of job `job` (a PyTorchJob) in gang `job`, bound to n0 since 00:00 if `runs`.
std::string Member(const std::string& job, int number, bool runs) {
  return "{metadata: {name: " + job + "-" + std::to_string(number) +
         ", namespace: d, annotations: {scheduling.k8s.io/group-name: " + job +
         "}, ownerReferences: [{kind: PyTorchJob, name: " + job + ", controller: true}]}, spec: {" +
         (runs ? "nodeName: n0, " : "") + "containers: [{name: c}]}, status: {phase: " +
         (runs ? "Running, startTime: '2026-01-02T00:00:00Z'" : "Pending") + "}}";
}

Workload Live(const std::string& pods, const std::string& groups, const std::string& owners = "") {
  scheduler::ClusterLists lists;
  lists.nodes = Yaml("{items: [{metadata: {name: n0}, status: {allocatable: {pods: '9'}}}]}");
  lists.pods = Yaml("{items: [" + pods + "]}");
  lists.namespaces = Yaml("{items: [{metadata: {name: d, labels: {a: b}}}]}");
  lists.pod_groups[0] = Yaml("{items: [" + groups + "]}");
  std::vector<json::Value> jobs;
  const json::Value list = Yaml("{items: [" + owners + "]}");
  for (const json::Value& owner : list["items"].items()) jobs.push_back(owner);
  return WorkloadOf(lists, jobs, {"default-scheduler"}, kNow);
}

std::string Group(const std::string& name, int min_member) {
  return "{metadata: {name: " + name +
         ", namespace: d}, spec: {minMember: " + std::to_string(min_member) + "}}";
}

TEST(WorkloadOf, RunTimesAreThoseOfThePodOrItsOwner) {
  const Workload live = Live(
      Member("long", 0, true) + ", " + Member("over", 0, true) + ", " + Member("silent", 0, true),
      "",
      "{kind: PyTorchJob, metadata: {name: long, namespace: d, annotations: "
      "{muster.dev/run-seconds: '1000'}}}, {kind: PyTorchJob, metadata: {name: over, namespace: d, "
      "annotations: {muster.dev/run-seconds: '600'}}}");
  ASSERT_EQ(live.running.size(), 3u);
  EXPECT_EQ(live.running[0].ends_in, seconds(400));
  EXPECT_EQ(live.running[1].ends_in, kNoKnownEnd) << "it should be over by now";
  EXPECT_EQ(live.running[2].ends_in, kNoKnownEnd);
  EXPECT_EQ(live.namespaces.at("d").at("a"), "b");
}

TEST(WorkloadOf, TheQueueBecomesJobs) {
  const Workload live =
      Live(Member("whole", 0, false) + ", " + Member("whole", 1, false) + ", " +
               Member("lacks", 0, false) + ", " + Member("grows", 0, true) + ", " +
               Member("grows", 1, false) + ", " + Member("grows", 2, false),
           Group("whole", 2) + ", " + Group("lacks", 3) + ", " + Group("grows", 1));
  std::map<std::string, std::pair<int64_t, int64_t>> jobs;
  for (const Job& job : live.jobs) jobs[job.name] = {job.PodCount(), job.min_member};
  EXPECT_EQ(jobs,
            (std::map<std::string, std::pair<int64_t, int64_t>>{
                {"whole", {2, 0}}, {"lacks", {1, 3}}, {"grows-1", {1, 0}}, {"grows-2", {1, 0}}}));
}

TEST(WorkloadOf, LeavesOutWhatIsOver) {
  const Workload live = Live(
      "{metadata: {name: done, namespace: d}, spec: {nodeName: n0, containers: [{name: c}]}, "
      "status: {phase: Succeeded}}",
      "");
  EXPECT_TRUE(live.running.empty());
  EXPECT_TRUE(live.jobs.empty());
}

}  // namespace
}  // namespace muster::simulator
