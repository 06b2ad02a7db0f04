#include "ray/cluster_pass.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ray/cluster_status.h"
#include "ray/pods.h"
#include "ray/test_objects.h"
#include "schema/conditions.h"

namespace muster::ray {
namespace {

const Time kNow = Time(seconds(1'700'000'000));

class ClusterPassTest : public testing::Test {
 protected:
  client::Reconciled Run() { return ReconcileCluster(ParseCluster(object_), children_, kNow, 1); }
  // All writes but that of the status.
  std::vector<std::string> Writes() {
    std::vector<std::string> writes = WritesOf(Run());
    std::erase(writes, "update rayclusters c/status");
    return writes;
  }
  // A head and two workers, all ready, and what belongs to them.
  void Settle() {
    const Cluster cluster = ParseCluster(object_);
    children_.pods = {ReadyPod("c-head-a", "head", kHeadGroup),
                      ReadyPod("c-small-worker-a", "worker", "small"),
                      ReadyPod("c-small-worker-b", "worker", "small")};
    children_.head_service = MakeHeadService(cluster);
    children_.pod_group = MakePodGroup(cluster);
    for (json::Value* child : {&children_.head_service, &children_.pod_group})
      *child = child->SetPath({"metadata", "uid"}, "s");
    object_ = object_.Set("status", StatusOf(Run()));
  }
  void SetSpec(std::initializer_list<std::string_view> path, json::Value value) {
    object_ = object_.Set("spec", object_["spec"].SetPath(path, std::move(value)));
  }
  void SetGroup(std::string_view member, json::Value value) {
    const json::Value groups = object_["spec"]["workerGroupSpecs"];
    SetSpec({"workerGroupSpecs"}, groups.SetAt(0, groups.At(0).Set(member, std::move(value))));
  }
  std::string State() { return ClusterStatusNow()["state"].Str(); }
  json::Value ClusterStatusNow() {
    const json::Value status = StatusOf(Run());
    return status.IsNull() ? object_["status"] : status;
  }
  bool Holds(std::string_view condition) {
    return schema::ConditionHolds(ClusterStatusNow()["conditions"], condition);
  }

  json::Value object_ = TwoWorkers();
  ClusterChildren children_;
};

TEST_F(ClusterPassTest, MakesGroupServiceHeadAndWorkers) {
  const std::vector<std::string> writes = Writes();
  ASSERT_EQ(writes.size(), 5u);
  EXPECT_EQ(writes[0], "create podgroups ray-c-pg");
  EXPECT_EQ(writes[1], "create services c-head-svc");
  EXPECT_TRUE(writes[2].starts_with("create pods c-head-")) << writes[2];
  EXPECT_TRUE(writes[3].starts_with("create pods c-small-worker-")) << writes[3];
  EXPECT_NE(writes[3], writes[4]);
  EXPECT_EQ(Writes(), writes) << "the same names again, should the answer be lost";
}

TEST_F(ClusterPassTest, ASettledClusterIsLeftAlone) {
  Settle();
  EXPECT_TRUE(WritesOf(Run()).empty());
}

TEST_F(ClusterPassTest, StatusCountsAndSaysWhatIsReady) {
  Settle();
  const json::Value& status = object_["status"];
  EXPECT_EQ(status["state"].AsString(), "ready");
  EXPECT_EQ(status["desiredWorkerReplicas"].AsInt(), 2);
  EXPECT_EQ(status["readyWorkerReplicas"].AsInt(), 2);
  EXPECT_EQ(status["minWorkerReplicas"].AsInt(), 1);
  EXPECT_EQ(status["maxWorkerReplicas"].AsInt(), 4);
  EXPECT_EQ(status["desiredCPU"].AsString(), "3");
  EXPECT_EQ(status["desiredMemory"].AsString(), "3Gi");
  EXPECT_EQ(status["desiredGPU"].AsString(), "2");
  EXPECT_EQ(status["head"]["podName"].AsString(), "c-head-a");
  EXPECT_EQ(status["head"]["serviceIP"].AsString(), "10.0.0.1");
  EXPECT_EQ(status["endpoints"]["dashboard"].AsString(), "8265");
  EXPECT_TRUE(status["stateTransitionTimes"].Has("ready"));
}

// kuberay#2188, #5088: the latched condition stays, the state does not.
TEST_F(ClusterPassTest, AClusterWithoutItsHeadIsNotReady) {
  Settle();
  children_.pods[0] = children_.pods[0].SetPath({"status", "conditions"},
                                                Yaml("[{type: Ready, status: \"False\"}]"));
  EXPECT_EQ(State(), "");
  EXPECT_TRUE(Holds(kProvisioned));
  EXPECT_FALSE(Holds(kHeadPodReady));
}

TEST_F(ClusterPassTest, WhatEndedIsDeletedAndMadeAgain) {
  Settle();
  children_.pods[0] = children_.pods[0].SetPath({"status", "phase"}, "Failed");
  children_.pods[1] = children_.pods[1].SetPath({"status", "phase"}, "Succeeded");
  const std::vector<std::string> writes = Writes();
  ASSERT_EQ(writes.size(), 3u);
  EXPECT_EQ(writes[0], "delete pods c-head-a");
  EXPECT_EQ(writes[1], "delete pods c-small-worker-a");
  EXPECT_TRUE(writes[2].starts_with("create pods c-small-worker-"));
  // The next head comes when this one is gone: two would be behind one name.
  children_.pods[0] = children_.pods[0].SetPath({"metadata", "deletionTimestamp"}, "now");
  for (const std::string& write : Writes()) EXPECT_FALSE(write.starts_with("create pods c-head"));
}

TEST_F(ClusterPassTest, ARayContainerThatEndedForGoodEndsItsPod) {
  Settle();
  children_.pods[1] = children_.pods[1].SetPath(
      {"status", "containerStatuses"},
      Yaml("[{name: ray-worker, state: {terminated: {exitCode: 1}}}]"));
  EXPECT_TRUE(Writes().empty()) << "the node starts it again";
  const json::Value pod_spec = object_["spec"]["workerGroupSpecs"].At(0)["template"]["spec"];
  SetGroup("template", json::Obj({{"spec", pod_spec.Set("restartPolicy", "Never")}}));
  const std::vector<std::string> writes = Writes();
  ASSERT_FALSE(writes.empty());
  EXPECT_EQ(writes[0], "delete pods c-small-worker-a");
}

TEST_F(ClusterPassTest, ScalesWithinItsBounds) {
  Settle();
  SetGroup("replicas", 9);
  size_t created = 0;
  for (const std::string& write : Writes()) created += write.starts_with("create pods") ? 1 : 0;
  EXPECT_EQ(created, 2u) << "maxReplicas is 4";
  SetGroup("replicas", 0);
  children_.pods[2] = children_.pods[2].SetPath({"status", "conditions"}, json::List());
  const std::vector<std::string> writes = Writes();
  EXPECT_EQ(std::ranges::count(writes, "delete pods c-small-worker-b"), 1)
      << "the one that is not ready goes, minReplicas is 1";
  EXPECT_EQ(std::ranges::count(writes, "delete pods c-small-worker-a"), 0);
}

// The autoscaler's protocol: node_provider.py of Ray.
TEST_F(ClusterPassTest, TheAutoscalerAloneSaysWhichWorkersGo) {
  SetSpec({"enableInTreeAutoscaling"}, true);
  Settle();
  for (const char* resource : {"serviceaccounts", "roles", "rolebindings"})
    children_.account.emplace(resource, json::Obj());
  SetGroup("replicas", 1);
  EXPECT_TRUE(std::ranges::none_of(Writes(), [](const std::string& write) {
    return write.starts_with("delete pods");
  })) << "no worker is chosen here";
  SetGroup("scaleStrategy", Yaml("{workersToDelete: [c-small-worker-b]}"));
  const std::vector<std::string> writes = Writes();
  EXPECT_EQ(std::ranges::count(writes, "delete pods c-small-worker-b"), 1);
  EXPECT_TRUE(std::ranges::none_of(
      writes, [](const std::string& write) { return write.starts_with("create pods"); }));
}

// kuberay#3738: a list that was not taken back kills no pod that comes later.
TEST_F(ClusterPassTest, ANameInWorkersToDeleteIsNotGivenAgain) {
  children_.pods.clear();
  std::vector<std::string> doomed;
  for (const std::string& write : Writes())
    if (write.starts_with("create pods c-small")) doomed.push_back(write.substr(12));
  ASSERT_EQ(doomed.size(), 2u);
  SetGroup("scaleStrategy", json::Obj({{"workersToDelete", json::Strings(doomed)}}));
  for (const std::string& write : Writes()) {
    for (const std::string& name : doomed) EXPECT_NE(write, "create pods " + name);
  }
}

TEST_F(ClusterPassTest, SuspendsAndResumesByTheFieldAlone) {
  Settle();
  SetSpec({"suspend"}, true);
  const std::vector<std::string> writes = Writes();
  EXPECT_EQ(std::ranges::count_if(
                writes, [](const std::string& write) { return write.starts_with("delete pods"); }),
            3);
  EXPECT_EQ(std::ranges::count(writes, "delete services c-head-svc"), 1);
  EXPECT_TRUE(Holds(kSuspending));
  EXPECT_FALSE(Holds(kClusterSuspended)) << "pods are there still";
  children_ = {};
  EXPECT_EQ(State(), "suspended");
  EXPECT_TRUE(Holds(kClusterSuspended));
  EXPECT_TRUE(Writes().empty());
  object_ = object_.Set("status", ClusterStatusNow());
  // kuberay#4686: without the field it runs, as with false.
  object_ = object_.Set("spec", object_["spec"].Remove("suspend"));
  EXPECT_EQ(Writes().size(), 5u);
  EXPECT_FALSE(Holds(kClusterSuspended));
}

TEST_F(ClusterPassTest, AGroupIsSuspendedByItselfAndOneThatWasRemovedGoes) {
  Settle();
  SetGroup("suspend", true);
  const auto deletes = [this] {
    return std::ranges::count_if(Writes(), [](const std::string& write) {
      return write.starts_with("delete pods c-small");
    });
  };
  EXPECT_EQ(deletes(), 2);
  SetSpec({"workerGroupSpecs"}, json::List());
  EXPECT_EQ(deletes(), 2);
}

TEST_F(ClusterPassTest, RecreateReplacesPodsOfAnotherTemplate) {
  SetSpec({"upgradeStrategy"}, Yaml("{type: Recreate}"));
  Settle();
  const Cluster cluster = ParseCluster(object_);
  for (json::Value& pod : children_.pods) {
    pod = pod.SetPath({"metadata", "annotations", kTemplateHashAnnotation},
                      IsHead(pod) ? HeadHash(cluster) : WorkerHash(cluster, cluster.groups[0]));
  }
  EXPECT_TRUE(Writes().empty());
  SetGroup("rayStartParams", Yaml("{num-cpus: \"1\"}"));
  std::vector<std::string> writes = Writes();
  std::erase_if(writes, [](const std::string& write) { return !write.starts_with("delete"); });
  EXPECT_EQ(writes,
            (std::vector<std::string>{"delete pods c-head-a", "delete pods c-small-worker-a",
                                      "delete pods c-small-worker-b"}));
  SetSpec({"upgradeStrategy"}, Yaml("{type: None}"));
  EXPECT_TRUE(Writes().empty());
}

TEST_F(ClusterPassTest, OnePassMakesABoundedNumberOfPods) {
  SetGroup("maxReplicas", 5000);
  SetGroup("replicas", 5000);
  size_t created = 0;
  for (const std::string& write : Writes()) created += write.starts_with("create pods") ? 1 : 0;
  EXPECT_EQ(created, kMaxNewPodsPerPass);
  SetGroup("maxReplicas", 1'000'000);
  SetGroup("replicas", 1'000'000);
  EXPECT_EQ(ClusterStatusNow()["desiredWorkerReplicas"].AsInt(), kMaxWorkersPerGroup);
}

TEST_F(ClusterPassTest, SaysThatPodsAreRefused) {
  children_.refused = Yaml("{verb: create, kind: Pod, reason: Forbidden, message: exceeded quota}");
  const json::Value status = ClusterStatusNow();
  const json::Value& failure = schema::FindCondition(status["conditions"], kReplicaFailure);
  EXPECT_EQ(failure["reason"].AsString(), "FailedCreateHeadPod");
  EXPECT_EQ(failure["message"].AsString(), "exceeded quota");
}

TEST_F(ClusterPassTest, LeavesAGroupOfSomebodyElseAlone) {
  Settle();
  children_.pod_group = children_.pod_group.SetPath({"spec", "minMember"}, 9);
  EXPECT_EQ(Writes(), (std::vector<std::string>{"patch podgroups ray-c-pg"}));
  children_.pod_group = children_.pod_group.SetPath({"metadata", "ownerReferences"}, json::List());
  EXPECT_TRUE(Writes().empty());
}

}  // namespace
}  // namespace muster::ray
