#include "simulator/trace_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::simulator {
namespace {

std::string JobsFault(std::string_view text) {
  const auto jobs = ReadJobs("f", text);
  return jobs ? "" : jobs.error().message();
}
std::string NodesFault(std::string_view text) {
  const auto nodes = ReadNodes("f", text);
  return nodes ? "" : nodes.error().message();
}

constexpr const char* kOpenbHeader =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n";

TEST(ReadNodes, Openb) {
  const auto nodes = ReadNodes("f",
                               "sn,cpu_milli,memory_mib,gpu,model\r\n"
                               "n-0,64000,262144,2,P100\r\n\r\nn-1,96000,1024,0,\r\n");
  ASSERT_TRUE(nodes.has_value()) << nodes.error().message();
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ((*nodes)[0].name, "n-0");
  EXPECT_EQ((*nodes)[0].labels.at("nvidia.com/gpu.product"), "P100");
  EXPECT_EQ((*nodes)[0].devices.size(), 2u);
  EXPECT_EQ(cluster::AmountOf((*nodes)[0].allocatable, "memory"), int64_t{262144} << 20);
  EXPECT_EQ(cluster::AmountOf((*nodes)[1].allocatable, "cpu"), 96000);
}

TEST(ReadNodes, SaysWhatIsWrong) {
  const std::string header = "sn,cpu_milli,memory_mib,gpu,model\n";
  EXPECT_EQ(NodesFault(header + "n,1,1,129,\n"),
            "f:2: gpu: expected a whole number from 0 to 128, got \"129\"");
  EXPECT_EQ(NodesFault(header + "n,-1,1,1,\n"),
            "f:2: cpu_milli: expected a whole number from 0 to 1125899906842624, got \"-1\"");
  EXPECT_EQ(NodesFault(header + "n,1,1,1,\n\nm,1\n"),
            "f:4: expected 5 fields as in the header, got 2");
  EXPECT_EQ(NodesFault(header + "n,1,1,1,\nn,1,1,1,\n"), "f: node \"n\" is there twice");
  EXPECT_EQ(NodesFault(header + ",1,1,1,\n"), "f:2: sn: expected a name, got \"\"");
  EXPECT_EQ(NodesFault(header), "f: no node");
  EXPECT_EQ(NodesFault("sn,cpu_milli,gpu\n"), "f:1: the header has no column \"memory_mib\"");
  EXPECT_NE(NodesFault("kind: Pod").find("object 1: kind: expected Node"), std::string::npos);
  EXPECT_NE(NodesFault("{").find("f: "), std::string::npos);
  EXPECT_EQ(NodesFault(""), "f: no node");
}

TEST(ReadNodes, Kubernetes) {
  const auto nodes = ReadNodes("f", R"(
apiVersion: v1
kind: List
items:
- {kind: Node, metadata: {name: a, labels: {zone: z}}, status: {allocatable: {cpu: "2"}}}
- {metadata: {name: b}, status: {allocatable: {nvidia.com/gpu: "8"}}}
)");
  ASSERT_TRUE(nodes.has_value()) << nodes.error().message();
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ((*nodes)[0].labels.at("zone"), "z");
  EXPECT_EQ(cluster::AmountOf((*nodes)[1].allocatable, "nvidia.com/gpu"), 8);
}

TEST(NodesOfShape, Bounds) {
  EXPECT_TRUE(IsNodeShape("100x8"));
  for (const char* text : {"nodes.csv", "x", "1x", "x8", "1x2x3", "-"})
    EXPECT_FALSE(IsNodeShape(text)) << text;
  EXPECT_EQ(NodesOfShape("3x2")->size(), 3u);
  for (const char* text : {"0x8", "-1x8", "100001x8", "1x129", "1x-1"})
    EXPECT_FALSE(NodesOfShape(text).has_value()) << text;
}

TEST(ReadJobs, Openb) {
  const auto jobs = ReadJobs("f", std::string(kOpenbHeader) +
                                      "late,1000,1,1,460,P100|T4,LS,Running,100,400,150\n"
                                      "never-ran,1,1,0,0,,LS,Pending,50,50,\n"
                                      "early,1000,1,2,1000,,LS,Running,90,100,\n");
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message();
  ASSERT_EQ(jobs->size(), 2u);
  const Job& early = (*jobs)[0];
  const Job& late = (*jobs)[1];
  EXPECT_EQ(early.name, "early");
  EXPECT_EQ(early.arrival, seconds(0));
  EXPECT_EQ(early.run_time, seconds(10));
  EXPECT_EQ(early.Gpus(), 2);
  EXPECT_EQ(late.arrival, seconds(10));
  EXPECT_EQ(late.run_time, seconds(250));
  EXPECT_EQ(late.Gpus(), 1) << "a share counts as a whole one";
  ASSERT_EQ(late.pods[0].constraints.affinity.terms.size(), 1u);
  EXPECT_EQ(late.pods[0].constraints.affinity.terms[0].expressions[0].values,
            (std::vector<std::string>{"P100", "T4"}));
}

TEST(ReadJobs, PhillyMakesGangs) {
  const auto jobs = ReadJobs("f",
                             "timestamp,duration,num_gpus,gpu_time,cluster\n"
                             "2017-10-09 07:01:55,66.5,1,66.0,a\n"
                             "2017-10-09 07:01:45,10.0,12,1,a\n"
                             "2017-10-09 07:02:00,10.0,16,1,a\n"
                             "2017-10-09 07:02:00,10.0,0,1,a\n");
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message();
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].PodCount(), 2);
  EXPECT_EQ((*jobs)[0].pods[0].GpusPerPod(), 6);
  EXPECT_EQ((*jobs)[1].arrival, seconds(10));
  EXPECT_EQ((*jobs)[1].run_time, milliseconds(66500));
  EXPECT_EQ((*jobs)[2].PodCount(), 2);
  EXPECT_EQ((*jobs)[2].pods[0].GpusPerPod(), 8);
}

TEST(ReadJobs, KubernetesPods) {
  const auto jobs = ReadJobs("f", R"(
kind: Pod
metadata:
  name: a
  annotations: {muster.dev/run-seconds: "60"}
  creationTimestamp: "2026-01-02T00:00:05Z"
spec: {priority: 7, containers: [{name: c, resources: {requests: {cpu: 500m}}}]}
---
kind: Pod
metadata:
  name: g-0
  annotations: {muster.dev/run-seconds: "9", scheduling.k8s.io/group-name: g}
  creationTimestamp: "2026-01-02T00:00:00Z"
spec: {containers: [{name: c}]}
---
kind: Pod
metadata:
  name: g-1
  annotations: {muster.dev/run-seconds: "9", scheduling.k8s.io/group-name: g}
  creationTimestamp: "2026-01-02T00:00:01Z"
spec: {containers: [{name: c}]}
)");
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].name, "g");
  EXPECT_EQ((*jobs)[0].PodCount(), 2);
  EXPECT_EQ((*jobs)[1].arrival, seconds(4)) << "the gang arrives with its last pod";
  EXPECT_EQ((*jobs)[1].priority, 7);
}

TEST(ReadJobs, PodsOfAGangMayDiffer) {
  const auto jobs = ReadJobs("f", R"(
kind: PodGroup
metadata: {name: g}
spec: {minMember: 5}
---
kind: Pod
metadata: {name: m, annotations: {muster.dev/run-seconds: "9", scheduling.k8s.io/group-name: g}}
spec: {containers: [{name: c}]}
---
kind: Pod
metadata: {name: w, annotations: {muster.dev/run-seconds: "12", scheduling.k8s.io/group-name: g}}
spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 4}}}]}
)");
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message();
  ASSERT_EQ(jobs->size(), 1u);
  const Job& gang = jobs->front();
  EXPECT_EQ(gang.PodCount(), 2);
  EXPECT_EQ(gang.Gpus(), 4);
  EXPECT_EQ(gang.min_member, 5);
  EXPECT_EQ(gang.run_time, seconds(12));
}

TEST(ReadJobs, PyTorchJobsAndBatchJobs) {
  const auto jobs = ReadJobs("f", R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train, namespace: team, annotations: {muster.dev/run-seconds: "600"}}
spec:
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: pytorch}]}}}
    Worker:
      replicas: 3
      template:
        metadata: {labels: {a: b}}
        spec: {containers: [{name: pytorch, resources: {limits: {nvidia.com/gpu: 2}}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: sweep, annotations: {muster.dev/run-seconds: "10"}}
spec:
  parallelism: 2
  completions: 5
  template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}
)");
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message();
  ASSERT_EQ(jobs->size(), 3u);
  const Job& train = (*jobs)[0];
  EXPECT_EQ(train.ns, "team");
  EXPECT_EQ(train.PodCount(), 4);
  EXPECT_EQ(train.Gpus(), 6);
  EXPECT_EQ(cluster::FindLabel(train.pods[1].labels, "a"), "b");
  EXPECT_EQ(cluster::FindLabel(train.pods[1].labels, "training.kubeflow.org/job-name"), "train");
  EXPECT_EQ((*jobs)[1].name, "sweep-0");
  EXPECT_EQ((*jobs)[1].run_time, seconds(30));
  EXPECT_EQ((*jobs)[2].run_time, seconds(20));
}

TEST(ReadJobs, TheRunTimeMayBeUnknownWhereThatIsAllowed) {
  const auto jobs =
      ReadJobs("f", "kind: Pod\nmetadata: {name: a}\nspec: {priorityClassName: high}\n",
               {RunTime::kOptional, {{"high", 7}}});
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message();
  EXPECT_EQ(jobs->front().run_time, kNoKnownEnd);
  EXPECT_EQ(jobs->front().priority, 7);
}

TEST(ReadJobs, SaysWhatIsWrong) {
  const std::string philly = "timestamp,duration,num_gpus,gpu_time,cluster\n";
  EXPECT_EQ(JobsFault(philly + "yesterday,1,1,1,a\n"),
            "f:2: timestamp: expected a time like 2017-10-09 07:01:55, got \"yesterday\"");
  EXPECT_EQ(JobsFault(philly + "2017-10-09 07:01:55,nan,1,1,a\n"),
            "f:2: duration: expected a number from 0 to 3155760000, got \"nan\"");
  EXPECT_EQ(JobsFault(philly + "2017-10-09 07:01:55,1,8193,1,a\n"),
            "f:2: num_gpus: expected a whole number from 0 to 8192, got \"8193\"");
  EXPECT_EQ(JobsFault(philly), "f: no job with a run time");
  EXPECT_NE(JobsFault(philly + "1700-01-01 00:00:00,1,1,1,a\n2017-10-09 07:01:55,1,1,1,a\n"), "");
  EXPECT_EQ(JobsFault("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"),
            "f:1: the header has no column \"creation_time\"");
  EXPECT_EQ(JobsFault(std::string(kOpenbHeader) + "a,1,1,1,1,,,,1,9,x\n"),
            "f:2: scheduled_time: expected a number from 0 to 3155760000, got \"x\"");
  EXPECT_EQ(JobsFault("kind: Pod\nmetadata: {name: a}\n"),
            "f: pod \"a\": annotation muster.dev/run-seconds: expected seconds from 1 to "
            "3155760000, got \"\"");
  EXPECT_NE(JobsFault("kind: Node\nmetadata: {name: a}\n").find("expected Pod"), std::string::npos);
  EXPECT_EQ(JobsFault("kind: PyTorchJob\nmetadata: {name: a}\n"),
            "f: pytorchjob \"a\": annotation muster.dev/run-seconds: expected seconds from 1 to "
            "3155760000, got \"\"");
  const std::string annotated =
      "metadata: {name: a, annotations: {muster.dev/run-seconds: \"9\"}}\n";
  EXPECT_EQ(JobsFault("kind: PyTorchJob\n" + annotated),
            "f: pytorchjob \"a\": spec.pytorchReplicaSpecs: expected a Master or a Worker, got "
            "\"\"");
  EXPECT_EQ(JobsFault("kind: PyTorchJob\n" + annotated +
                      "spec: {pytorchReplicaSpecs: {Worker: {replicas: 50001}}}\n"),
            "f: pytorchjob \"a\": spec.pytorchReplicaSpecs.Worker.replicas: expected 0 to 50000, "
            "got \"50001\"");
}

TEST(ReadJobs, AtMostAMillion) {
  std::string text = "timestamp,duration,num_gpus\n";
  for (size_t i = 0; i < kMaxSimulatedJobs; ++i) text += "2017-10-09 07:01:55,1,1\n";
  text += "2017-10-09 07:01:55,1,1\n";
  EXPECT_EQ(JobsFault(text), "f: more than 1000000 jobs");
}

}  // namespace
}  // namespace muster::simulator
