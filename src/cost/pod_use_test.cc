#include "cost/pod_use.h"

#include <gtest/gtest.h>

#include "cost/cost_test_support.h"

namespace muster::cost {
namespace {

constexpr char kH100[] = "NVIDIA H100 80GB HBM3";

PodUse Use(const json::Value& pod, const json::Value& node = GpuNode(),
           const json::Value& name_space = nullptr) {
  return PodUseOf(pod, NodeFactsOf(node), name_space, CostKeys());
}

json::Value Given(const json::Value& pod, const std::string& ids) {
  return pod.SetPath({"metadata", "annotations", "muster.dev/assigned-devices"},
                     fmt::format(R"({{"main":{{"nvidia.com/gpu":[{}]}}}})", ids));
}

TEST(NodeFacts, GpusOfTheListOrOfTheLabels) {
  const NodeFacts facts = NodeFactsOf(GpuNode());
  EXPECT_EQ(facts.machine.gpus, (std::map<std::string, int64_t>{{kH100, 4}}));
  EXPECT_EQ(facts.machine.cpu_milli, 8000);
  EXPECT_EQ(facts.gpu_units, 4);
  // A node of another distribution, each of its two GPUs shared by four pods.
  const NodeFacts other = NodeFactsOf(Yaml(R"(
metadata:
  name: n
  labels: {nvidia.com/gpu.product: NVIDIA-A10G-SHARED, nvidia.com/gpu.count: "2",
           node.kubernetes.io/instance-type: g5.12xlarge, eks.amazonaws.com/capacityType: SPOT}
  annotations: {muster.dev/hourly-price: "1.5"}
status: {capacity: {cpu: "4", memory: 16Gi, nvidia.com/gpu: "8"}})"));
  EXPECT_EQ(other.machine.gpus, (std::map<std::string, int64_t>{{"NVIDIA-A10G", 2}}));
  EXPECT_EQ(other.gpu_units, 8);
  EXPECT_TRUE(other.machine.spot);
  EXPECT_EQ(other.machine.instance_type, "g5.12xlarge");
  EXPECT_EQ(other.machine.hourly_price, "1.5");
  EXPECT_EQ(MachineFromJson(ToJson(other.machine)), other.machine);
  EXPECT_TRUE(NodeFactsOf(Yaml("{metadata: {name: n}, status: {capacity: {cpu: '4'}}}"))
                  .machine.gpus.empty());
}

TEST(PodUse, WhatWasAskedForSinceTheStart) {
  const PodUse use = Use(Pod("a"));
  EXPECT_EQ(use.ns, "d");
  EXPECT_EQ(use.workload, "pod/a");
  EXPECT_EQ(use.cpu_milli, 2000);
  EXPECT_EQ(use.memory_bytes, int64_t{4} << 30);
  EXPECT_EQ(use.from, At("01:00:00"));
  EXPECT_EQ(use.to, std::nullopt);
  EXPECT_TRUE(use.gpu_milli.empty());
}

TEST(PodUse, EndsWithItsLastContainer) {
  const json::Value pod = Pod("a").Set("status", Yaml(R"(
phase: Failed
startTime: '2026-01-02T01:00:00Z'
containerStatuses:
- state: {terminated: {finishedAt: '2026-01-02T02:00:00Z'}}
- state: {terminated: {finishedAt: '2026-01-02T03:00:00Z'}})"));
  EXPECT_EQ(Use(pod).to, At("03:00:00"));
  // Its node was lost: nobody saw its containers end.
  const json::Value lost = Pod("a").Set("status", Yaml(R"(
phase: Failed
startTime: '2026-01-02T01:00:00Z'
containerStatuses: [{state: {running: {}}}]
conditions:
- {type: Ready, status: 'False', lastTransitionTime: '2026-01-02T05:00:00Z'}
- {type: PodScheduled, status: 'True', lastTransitionTime: '2026-01-02T00:59:00Z'})"));
  EXPECT_EQ(Use(lost).to, At("05:00:00"));
  // Refused by its node: no container ever ran.
  const json::Value refused =
      pod.SetPath({"status", "containerStatuses"}, json::Value(json::Array()));
  EXPECT_EQ(Use(refused).to, At("01:00:00"));
}

TEST(PodUse, GpusWholeSharedAndOfWhichNobodySaidWhichTheyAre) {
  EXPECT_EQ(Use(Given(Pod("a", "nvidia.com/gpu: '2'"), R"("GPU-n1-0","GPU-n1-1")")).gpu_milli,
            (std::map<std::string, int64_t>{{kH100, 2000}}));
  EXPECT_EQ(Use(Given(Pod("a", "muster.dev/gpu-milli: '300'"), R"("GPU-n1-0")")).gpu_milli,
            (std::map<std::string, int64_t>{{kH100, 300}}));
  EXPECT_EQ(Use(Pod("a", "nvidia.com/gpu: '3'")).gpu_milli,
            (std::map<std::string, int64_t>{{kH100, 3000}}));
}

// opencost #2447: four pods on one GPU are not four GPUs.
TEST(PodUse, TheSharesOfOneGpuComeToOneGpu) {
  std::string devices;
  for (int gpu = 0; gpu < 2; ++gpu) {
    for (int share = 0; share < 4; ++share)
      devices += fmt::format(R"({}{{"id":"GPU-{}::{}","index":{},"model":"M"}})",
                             devices.empty() ? "" : ",", gpu, share, gpu);
  }
  const json::Value node = GpuNode()
                               .SetPath({"metadata", "annotations", "muster.dev/devices"},
                                        fmt::format(R"({{"nvidia.com/gpu":[{}]}})", devices))
                               .SetPath({"status", "capacity", "nvidia.com/gpu"}, "8");
  EXPECT_EQ(NodeFactsOf(node).machine.gpus, (std::map<std::string, int64_t>{{"M", 2}}));
  EXPECT_EQ(Use(Given(Pod("a", "nvidia.com/gpu: '1'"), R"("GPU-1::2")"), node).gpu_milli,
            (std::map<std::string, int64_t>{{"M", 250}}));
  EXPECT_EQ(Use(Pod("a", "nvidia.com/gpu: '1'"), node).gpu_milli,
            (std::map<std::string, int64_t>{{"M", 250}}));
}

TEST(PodUse, WhomItConcerns) {
  const json::Value name_space =
      Yaml("metadata: {labels: {team: of-namespace, project: of-namespace}}");
  const json::Value pod = Pod("a", "",
                              ", annotations: {cost-center: ml, owner: annotated, secret: x}, "
                              "labels: {owner: labelled, team: of-pod}");
  EXPECT_EQ(Use(pod, GpuNode(), name_space).labels,
            (std::map<std::string, std::string>{{"cost-center", "ml"},
                                                {"owner", "annotated"},
                                                {"project", "of-namespace"},
                                                {"team", "of-pod"}}));
}

TEST(PodUse, WhoMadeIt) {
  const auto workload = [](const std::string& more) { return Use(Pod("a", "", more)).workload; };
  EXPECT_EQ(workload(", ownerReferences: [{kind: PyTorchJob, name: digits, controller: true}]"),
            "pytorchjob/digits");
  EXPECT_EQ(workload(", labels: {pod-template-hash: 7d}, "
                     "ownerReferences: [{kind: ReplicaSet, name: web-7d, controller: true}]"),
            "deployment/web");
  EXPECT_EQ(workload(", ownerReferences: [{kind: ReplicaSet, name: rs, controller: true}]"),
            "replicaset/rs");
  EXPECT_EQ(workload(", labels: {jobset.sigs.k8s.io/jobset-name: s}, "
                     "ownerReferences: [{kind: Job, name: s-w-0, controller: true}]"),
            "jobset/s");
  EXPECT_EQ(workload(", ownerReferences: [{kind: Thing, name: t}]"), "pod/a");
}

// What the fields that are asked of the informers leave is all that is read.
TEST(PodUse, ReadsNothingButItsFields) {
  const json::Value pod =
      Given(Pod("a", "nvidia.com/gpu: '1'",
                ", labels: {team: t}, annotations: {cost-center: ml, big: text}, "
                "ownerReferences: [{kind: Job, name: j, controller: true}]"),
            R"("GPU-n1-0")");
  json::Fields fields{{"metadata", "name"},
                      {"metadata", "namespace"},
                      {"metadata", "uid"},
                      {"metadata", "ownerReferences"}};
  fields.Add(PodUseFields());
  const PodUse whole = Use(pod), part = Use(fields.Project(pod));
  EXPECT_EQ(whole.labels, part.labels);
  EXPECT_EQ(whole.workload, part.workload);
  EXPECT_EQ(whole.gpu_milli, part.gpu_milli);
  EXPECT_EQ(whole.cpu_milli, part.cpu_milli);
  EXPECT_EQ(whole.from, part.from);
  json::Fields of_node{{"metadata", "name"}, {"metadata", "uid"}};
  of_node.Add(NodeFactsFields());
  EXPECT_EQ(NodeFactsOf(of_node.Project(GpuNode())), NodeFactsOf(GpuNode()));
}

}  // namespace
}  // namespace muster::cost
