#include "training/pods.h"

#include <gtest/gtest.h>

#include "training/test_jobs.h"

namespace muster::training {
namespace {

TEST(Pods, NameLabelsAnnotationsAndOwner) {
  const Job job = Parsed(DdpJob());
  const json::Value pod = MakePod(job, *job.Find("Worker"), 1, 3);
  const json::Value& metadata = pod["metadata"];
  EXPECT_EQ(metadata["name"].AsString(), "ddp-worker-1");
  EXPECT_EQ(metadata["labels"], Yaml(R"({training.kubeflow.org/job-name: ddp,
    training.kubeflow.org/operator-name: pytorchjob-controller,
    training.kubeflow.org/replica-type: worker,
    training.kubeflow.org/replica-index: "1"})"));
  EXPECT_EQ(metadata["annotations"],
            Yaml(R"({scheduling.k8s.io/group-name: ddp, volcano.sh/task-spec: worker,
    training.muster.dev/epoch: "3", training.muster.dev/members: "3"})"));
  EXPECT_EQ(metadata["ownerReferences"],
            Yaml(R"([{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: ddp, uid: u1,
    controller: true, blockOwnerDeletion: true}])"));
  EXPECT_FALSE(pod["spec"].Has("schedulerName"));
  EXPECT_FALSE(pod["spec"].Has("initContainers"));
  EXPECT_EQ(EpochOf(pod), 3);
  EXPECT_EQ(ReplicaOfPod(pod)->lower_type, "worker");
  EXPECT_EQ(ReplicaOfPod(pod)->index, 1);
}

TEST(Pods, MasterRoleIsTheMastersOrWorkerZeros) {
  const Job with = Parsed(DdpJob());
  EXPECT_EQ(LabelsOf(with, *with.Find("Master"), 0)[kJobRoleLabel].AsString(), "master");
  EXPECT_FALSE(LabelsOf(with, *with.Find("Worker"), 0).Has(kJobRoleLabel));
  const Job without = Parsed(ElasticJob());
  EXPECT_EQ(LabelsOf(without, *without.Find("Worker"), 0)[kJobRoleLabel].AsString(), "master");
  EXPECT_FALSE(LabelsOf(without, *without.Find("Worker"), 1).Has(kJobRoleLabel));
}

TEST(Pods, RestartPolicyOfThePod) {
  const struct {
    const char* of_replica;
    const char* of_pod;
  } rows[] = {
      {"Always", "Always"}, {"OnFailure", "OnFailure"}, {"Never", "Never"}, {"ExitCode", "Never"}};
  for (const auto& row : rows) {
    const Job job = Parsed(DdpJob(row.of_replica));
    EXPECT_EQ(MakePod(job, *job.Find("Master"), 0, 0)["spec"]["restartPolicy"].AsString(),
              row.of_pod);
  }
  json::Value unset = DdpJob();
  unset = unset.SetPath({"spec", "pytorchReplicaSpecs", "Master"},
                        unset["spec"]["pytorchReplicaSpecs"]["Master"].Remove("restartPolicy"));
  const Job job = Parsed(unset);
  EXPECT_EQ(MakePod(job, *job.Find("Master"), 0, 0)["spec"]["restartPolicy"].AsString(),
            "OnFailure");
}

TEST(Pods, EveryContainerGetsTheEnvironmentAndOnlyTheTrainingOneThePort) {
  json::Value object =
      DdpJob().SetPath({"spec", "pytorchReplicaSpecs", "Master", "template"}, Yaml(R"(
metadata: {labels: {mine: x}, annotations: {note: kept}}
spec:
  restartPolicy: Always
  schedulerName: volcano
  containers:
  - {name: pytorch, image: i, env: [{name: RANK, value: "9"}, {name: MINE, value: z}]}
  - {name: sidecar, image: i})"));
  const Job job = Parsed(object);
  const json::Value pod = MakePod(job, *job.Find("Master"), 0, 0);
  const json::Value& training = pod["spec"]["containers"].At(0);
  const json::Value& sidecar = pod["spec"]["containers"].At(1);
  EXPECT_EQ(pod["metadata"]["labels"]["mine"].AsString(), "x");
  EXPECT_EQ(pod["metadata"]["annotations"]["note"].AsString(), "kept");
  EXPECT_EQ(pod["spec"]["schedulerName"].AsString(), "volcano");
  EXPECT_EQ(training["ports"],
            Yaml("[{containerPort: 23456, name: pytorchjob-port, protocol: TCP}]"));
  EXPECT_FALSE(sidecar.Has("ports"));
  EXPECT_EQ(training["env"].At(0)["name"].AsString(), "MINE");
  int ranks = 0;
  for (const json::Value& entry : training["env"].items())
    ranks += entry["name"].AsString() == "RANK";
  EXPECT_EQ(ranks, 1);
  EXPECT_EQ(sidecar["env"].size() + 1, training["env"].size());
}

TEST(Pods, InheritWhomTheJobsCostConcernsUnlessTheySayIt) {
  json::Value object =
      DdpJob()
          .SetPath({"metadata", "annotations"},
                   Yaml("{cost-center: ml, owner: job, note: not inherited}"))
          .SetPath({"metadata", "labels"}, Yaml("{team: red, project: label}"))
          .SetPath({"spec", "pytorchReplicaSpecs", "Master", "template", "metadata"},
                   Yaml("{annotations: {owner: pod}, labels: {project: pod}}"));
  const Job job = Parsed(object);
  const json::Value pod = MakePod(job, *job.Find("Master"), 0, 0);
  const json::Value& annotations = pod["metadata"]["annotations"];
  EXPECT_EQ(annotations["cost-center"].AsString(), "ml");
  EXPECT_EQ(annotations["owner"].AsString(), "pod");
  EXPECT_EQ(annotations["team"].AsString(), "red");
  EXPECT_FALSE(annotations.Has("project"));
  EXPECT_FALSE(annotations.Has("note"));
}

TEST(Pods, ServiceIsHeadlessAndSelectsOnePod) {
  const Job job = Parsed(DdpJob());
  const json::Value service = MakeService(job, *job.Find("Worker"), 1);
  EXPECT_EQ(service["metadata"]["name"].AsString(), "ddp-worker-1");
  EXPECT_EQ(service["spec"]["clusterIP"].AsString(), "None");
  EXPECT_EQ(service["spec"]["selector"], LabelsOf(job, *job.Find("Worker"), 1));
  EXPECT_EQ(service["metadata"]["labels"], LabelsOf(job, *job.Find("Worker"), 1));
  EXPECT_EQ(service["spec"]["ports"],
            Yaml("[{name: pytorchjob-port, port: 23456, protocol: TCP}]"));
  EXPECT_TRUE(service["spec"]["publishNotReadyAddresses"].AsBool());
}

TEST(Pods, PodGroupCoversTheWholeJob) {
  const Job job = Parsed(DdpJob());
  const json::Value group = MakePodGroup(job);
  EXPECT_EQ(group["metadata"]["name"].AsString(), "ddp");
  EXPECT_EQ(group["spec"],
            Yaml(R"({minMember: 3, queue: default, minResources: {nvidia.com/gpu: "3"}})"));
}

TEST(Pods, SchedulingPolicyShapesThePodGroup) {
  json::Value object =
      DdpJob().SetPath({"spec", "runPolicy", "schedulingPolicy"},
                       Yaml("{minAvailable: 2, queue: team, priorityClass: high}"));
  EXPECT_EQ(MakePodGroup(Parsed(object))["spec"],
            Yaml(
                R"({minMember: 2, queue: team, priorityClassName: high, minTaskMember: {master: 1},
                      minResources: {nvidia.com/gpu: "2"}})"));
  object = object.SetPath({"spec", "runPolicy", "schedulingPolicy", "minResources"},
                          Yaml(R"({cpu: "7"})"));
  EXPECT_EQ(MakePodGroup(Parsed(object))["spec"]["minResources"], Yaml(R"({cpu: "7"})"));
}

// torchrun begins with minReplicas workers: so does the gang, and takes more as there is room.
TEST(Pods, AnElasticJobIsAnElasticGang) {
  const json::Value object =
      DdpJob().SetPath({"spec", "elasticPolicy"}, Yaml("{minReplicas: 1, maxReplicas: 4}"));
  EXPECT_EQ(MakePodGroup(Parsed(object))["spec"],
            Yaml(R"({minMember: 2, queue: default, minTaskMember: {master: 1},
                     minResources: {nvidia.com/gpu: "2"}})"));
  const json::Value more = object.SetPath({"spec", "elasticPolicy", "minReplicas"}, 3);
  EXPECT_EQ(MakePodGroup(Parsed(more))["spec"]["minMember"].AsInt(), 3);
}

TEST(Pods, SelectorTextIsSorted) {
  const Job job = Parsed(DdpJob());
  EXPECT_EQ(SelectorOf(job, *job.Find("Worker")),
            "training.kubeflow.org/job-name=ddp,training.kubeflow.org/"
            "operator-name=pytorchjob-controller,"
            "training.kubeflow.org/replica-type=worker");
}

TEST(Job, RefusesWhatCannotRun) {
  const struct {
    const char* specs;
    const char* word;
  } rows[] = {
      {"{}", "empty"},
      {"{Chief: {template: {spec: {containers: [{name: pytorch}]}}}}", "Chief"},
      {"{Master: {template: {spec: {containers: [{name: torch}]}}}}", "pytorch"},
      {"{Master: {replicas: 2, template: {spec: {containers: [{name: pytorch}]}}}}", "one master"},
      {"{Worker: {replicas: 10001, template: {spec: {containers: [{name: pytorch}]}}}}", "10000"},
      {"{worker: {template: {spec: {containers: [{name: pytorch}]}}},"
       " Worker: {template: {spec: {containers: [{name: pytorch}]}}}}",
       "twice"}};
  for (const auto& row : rows) {
    const Result<Job> job =
        ParseJob(*schema::FindTrainingKind("PyTorchJob"),
                 DdpJob().SetPath({"spec", "pytorchReplicaSpecs"}, Yaml(row.specs)));
    ASSERT_FALSE(job.has_value()) << row.specs;
    EXPECT_EQ(job.error().reason(), Reason::kInvalid);
    EXPECT_NE(job.error().message().find(row.word), std::string::npos) << job.error().message();
  }
}

TEST(Job, ReplicaTypesAreRecognisedInAnyCase) {
  const Job job = Parsed(
      DdpJob().SetPath({"spec", "pytorchReplicaSpecs"},
                       Yaml("{mAster: {template: {spec: {containers: [{name: pytorch}]}}}}")));
  ASSERT_TRUE(job.Leader() != nullptr);
  EXPECT_EQ(job.TotalReplicas(), 1);
}

TEST(Job, OthersManageTheirOwn) {
  EXPECT_FALSE(IsManagedElsewhere(DdpJob()));
  EXPECT_FALSE(IsManagedElsewhere(
      DdpJob().SetPath({"spec", "runPolicy", "managedBy"}, "kubeflow.org/training-operator")));
  EXPECT_TRUE(IsManagedElsewhere(
      DdpJob().SetPath({"spec", "runPolicy", "managedBy"}, "kueue.x-k8s.io/multikueue")));
}

}  // namespace
}  // namespace muster::training
