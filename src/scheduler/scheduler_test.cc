#include "scheduler/scheduler_test_base.h"

namespace muster::scheduler {
namespace {

TEST_F(SchedulerTest, BindsAPodWithItsDevicesAndSaysSo) {
  AddNode("n1", 2);
  AddPod("p", 2);
  Settle();
  EXPECT_EQ(NodeOf("p"), "n1");
  EXPECT_EQ(
      (*api_.Find(kPods, "default", "p"))["metadata"]["annotations"]["muster.dev/assigned-devices"]
          .AsString(),
      R"({"main":{"nvidia.com/gpu":["n1-g0","n1-g1"]}})");
  EXPECT_EQ(Events("Scheduled", "Successfully assigned default/p to n1"), 1);
  EXPECT_EQ(pod_status_writes_, 0);
}

// What a pod may open of its gang's: all that the gang has on the node, whoever is bound first.
TEST_F(SchedulerTest, TellsPodsThatShareASandboxOfTheGangsDevices) {
  AddNode("n1", 4);
  AddPod("other", 1);
  Settle();
  for (const bool shared : {true, false}) {
    const std::string gang = shared ? "shared" : "plain";
    AddGroup(gang, 1);
    for (int i = 0; i < 2; ++i) {
      json::Value pod = MakePod(fmt::format("{}-{}", gang, i), 1, gang);
      if (shared)
        pod = pod.SetPath({"metadata", "annotations", "muster.dev/gang-sandbox"}, "shared");
      api_.Put(kPods, pod);
    }
    Settle();
    for (int i = 0; i < 2; ++i) {
      const json::Value* pod = api_.Find(kPods, "default", fmt::format("{}-{}", gang, i));
      EXPECT_EQ((*pod)["spec"]["nodeName"].AsString(), "n1") << gang << i;
      const cluster::DeviceLists devices = cluster::PodGangDevices(*pod);
      if (shared) {
        EXPECT_EQ(devices, (cluster::DeviceLists{{"nvidia.com/gpu", {"n1-g1", "n1-g2"}}}));
      } else {
        EXPECT_TRUE(devices.empty());
      }
    }
    for (int i = 0; i < 2; ++i) api_.Remove(kPods, "default", fmt::format("{}-{}", gang, i));
    api_.Remove(kGroups, "default", gang);
    Settle();
  }
}

TEST_F(SchedulerTest, SaysWhyAPodWaitsOnceAndBindsItWhenANodeComes) {
  AddNode("small", 1);
  AddPod("p", 2);
  Settle();
  EXPECT_EQ(Condition("p")["status"].AsString(), "False");
  EXPECT_EQ(Condition("p")["reason"].AsString(), "Unschedulable");
  EXPECT_TRUE(Condition("p")["message"].AsString().starts_with(
      "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. It does not fit even an empty "
      "cluster"));
  EXPECT_EQ(Events("FailedScheduling", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu"),
            1);
  EXPECT_EQ(scheduler_->ExplainPod("default", "p")["why"].AsString(), "NeverFits");
  EXPECT_EQ(pod_status_writes_, 1);
  AddNode("large", 4);
  Settle();
  EXPECT_EQ(NodeOf("p"), "large");
  EXPECT_TRUE(scheduler_->ExplainPod("default", "p").IsNull());
}

TEST_F(SchedulerTest, AGangWaitsWholeWhileASmallerPodRunsThenStartsWhole) {
  AddNode("n1", 4);
  AddGang("a", 3, 1);
  Settle();
  EXPECT_EQ(BoundOf("a", 3), 3);
  AddGang("b", 4, 1);
  Settle();
  EXPECT_EQ(BoundOf("b", 4), 0);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NE(Condition(fmt::format("b-{}", i))["message"].AsString().find(
                  "gang b: 4 pods x 1 nvidia.com/gpu need 4 at once, 1 of 4 free (3 held by "
                  "pytorchjob default/a); fits "
                  "when pytorchjob default/a ends."),
              std::string_view::npos);
  }
  AddPod("c", 1);
  Settle();
  EXPECT_EQ(NodeOf("c"), "n1");
  SetPhase("c", "Succeeded");
  for (int i = 0; i < 3; ++i) SetPhase(fmt::format("a-{}", i), "Succeeded");
  Settle();
  EXPECT_EQ(BoundOf("b", 4), 4);
  ExpectDevicesOwnedOnce();
}

TEST_F(SchedulerTest, PodGroupStatusFollowsTheGang) {
  AddNode("n1", 2);
  AddGroup("g", 2);
  Settle();
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Pending");
  api_.Put(kPods, MakePod("g-0", 2, "g"));
  Settle();
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Pending");
  EXPECT_EQ(GroupStatus("g")["conditions"].At(0)["reason"].AsString(), "NotEnoughTasks");
  EXPECT_EQ(Condition("g-0")["message"].AsString(),
            "1/2 pods of the gang exist: gang g waits for 1 more.");
  api_.Put(kPods, MakePod("g-1", 2, "g"));
  Settle();
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Inqueue");
  EXPECT_EQ(GroupStatus("g")["conditions"].At(0)["reason"].AsString(), "NotEnoughResources");
  EXPECT_EQ(scheduler_->ExplainGroup("default", "g")["kind"].AsString(), "PodGroup");
  AddNode("n2", 2);
  Settle();
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Running");
  EXPECT_EQ(GroupStatus("g")["conditions"].At(0)["status"].AsString(), "False");
  EXPECT_EQ(GroupStatus("g")["conditions"].At(1)["type"].AsString(), "Scheduled");
  SetPhase("g-0", "Running");
  SetPhase("g-1", "Running");
  Settle();
  EXPECT_EQ(GroupStatus("g")["running"].AsInt(), 2);
  SetPhase("g-0", "Succeeded");
  SetPhase("g-1", "Succeeded");
  Settle();
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Completed");
  EXPECT_EQ(GroupStatus("g")["succeeded"].AsInt(), 2);
}

// Found by simulation (gang-start/store/after/47): after five refusals it was left as it was.
TEST_F(SchedulerTest, SchedulerPluginsPodGroupsAreGangsToo) {
  AddNode("n1", 2);
  api_.Put(kPluginsGroups, json::ParseYaml("{metadata: {namespace: default, name: g}, spec: "
                                           "{minMember: 2, scheduleTimeoutSeconds: 1}}")
                               .value()[0]);
  const auto status = [&] { return (*api_.Find(kPluginsGroups, "default", "g"))["status"]; };
  const auto put = [&](const std::string& name) {
    api_.Put(kPods, MakePod(name, 2, "g")
                        .SetPath({"metadata", "annotations"}, nullptr)
                        .SetPath({"metadata", "labels"},
                                 json::Obj({{"scheduling.x-k8s.io/pod-group", "g"}})));
  };
  put("g-0");
  Settle();
  EXPECT_EQ(NodeOf("g-0"), "");
  EXPECT_EQ(status()["phase"].AsString(), "Pending");
  put("g-1");
  Settle();
  EXPECT_EQ(BoundOf("g", 2), 0);
  EXPECT_EQ(status()["phase"].AsString(), "Scheduling");
  EXPECT_EQ(status()["occupiedBy"].AsString(), "default/g");
  EXPECT_FALSE(status()["scheduleStartTime"].IsNull());
  AddNode("n2", 2);
  Settle();
  EXPECT_EQ(BoundOf("g", 2), 2);
  SetPhase("g-0", "Running");
  SetPhase("g-1", "Running");
  Settle();
  EXPECT_EQ(status()["phase"].AsString(), "Running");
  EXPECT_EQ(status()["running"].AsInt(), 2);
  SetPhase("g-0", "Failed");
  Settle();
  EXPECT_EQ(status()["phase"].AsString(), "Failed");
  SetPhase("g-0", "Succeeded");
  SetPhase("g-1", "Succeeded");
  Settle();
  EXPECT_EQ(status()["phase"].AsString(), "Finished");
}

TEST_F(SchedulerTest, TheStatusNamesTheSubGroupThatLacksPods) {
  AddNode("n1", 4);
  api_.Put(kGroups,
           json::ParseYaml("{metadata: {namespace: default, name: g}, spec: {minMember: 1, "
                           "subGroupPolicy: [{name: blocks, subGroupSize: 2, minSubGroups: 1, "
                           "matchLabelKeys: [block]}]}}")
               .value()[0]);
  const auto put = [&](const std::string& name, const std::string& block) {
    api_.Put(kPods, MakePod(name, 1, "g").SetPath({"metadata", "labels", "block"}, block));
  };
  put("g-0", "a");
  put("g-1", "b");
  Settle();
  EXPECT_EQ(BoundOf("g", 2), 0);
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Pending");
  const json::Value waits = GroupStatus("g")["conditions"].At(0);
  EXPECT_EQ(waits["reason"].AsString(), "NotEnoughPodsOfSubGroup");
  EXPECT_EQ(waits["message"].AsString(),
            "1/2 pods of sub-group a of policy blocks exist: gang g waits for 1 more.");
  put("g-2", "b");
  Settle();
  EXPECT_EQ(BoundOf("g", 3), 2);
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Running");
}

TEST_F(SchedulerTest, TheStatusNamesTheTaskThatLacksPods) {
  AddNode("n1", 4);
  api_.Put(kGroups,
           json::ParseYaml("{metadata: {namespace: default, name: g}, spec: {minMember: 2, "
                           "minTaskMember: {ps: 1, worker: 1}}}")
               .value()[0]);
  const auto put = [&](const std::string& name, const std::string& task) {
    api_.Put(
        kPods,
        MakePod(name, 1, "g").SetPath({"metadata", "annotations", "volcano.sh/task-spec"}, task));
  };
  put("g-0", "worker");
  put("g-1", "worker");
  Settle();
  EXPECT_EQ(BoundOf("g", 2), 0);
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Pending");
  EXPECT_EQ(GroupStatus("g")["conditions"].At(0)["reason"].AsString(), "NotEnoughPodsOfTask");
  put("g-2", "ps");
  Settle();
  EXPECT_EQ(BoundOf("g", 3), 3);
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Running");
}

TEST_F(SchedulerTest, AStatusIsWrittenHoweverLongTheServerWasAway) {
  AddNode("n1", 2);
  AddGang("g", 2, 1);
  refuse_group_status = true;
  loop_.RunFor(minutes(10));
  EXPECT_TRUE(GroupStatus("g").IsNull());
  refuse_group_status = false;
  loop_.RunFor(kMaxRewriteInterval + seconds(1));
  EXPECT_EQ(GroupStatus("g")["phase"].AsString(), "Running");
}

// Found by simulation (seed 205): a write of the scheduler's former life, made before it knew the
// pods, came after the right one.
TEST_F(SchedulerTest, AStatusThatIsOvertakenIsPutRight) {
  AddNode("n1", 2);
  AddGang("g", 2, 1);
  Settle();
  SetPhase("g-0", "Running");
  SetPhase("g-1", "Running");
  Settle();
  const json::Value right = GroupStatus("g");
  ASSERT_EQ(right["running"].AsInt(), 2);
  const json::Value group = *api_.Find(kGroups, "default", "g");
  api_.Put(kGroups,
           group.SetPath({"status", "running"}, 0).SetPath({"status", "phase"}, "Pending"));
  Settle();
  EXPECT_EQ(GroupStatus("g"), right);
}

TEST_F(SchedulerTest, AClockThatIsSetBackHoldsNoStatusUp) {
  AddNode("n1", 2);
  AddGang("g", 2, 1);
  Settle();
  SetPhase("g-0", "Running");
  loop_.RunReady();
  SetPhase("g-1", "Running");  // waits for the pace of status writes
  loop_.RunReady();
  loop_.JumpClock(-hours(1));
  SetPhase("g-0", "Succeeded");
  loop_.RunFor(kMaxRewriteInterval + seconds(1));
  EXPECT_EQ(GroupStatus("g")["running"].AsInt(), 1);
  EXPECT_EQ(GroupStatus("g")["succeeded"].AsInt(), 1);
}

TEST_F(SchedulerTest, AGangWhosePodsComeOneByOneIsNotToldOfEachThatIsMissing) {
  AddNode("n1", 4);
  AddGroup("g", 4);
  for (int i = 0; i < 4; ++i) {
    api_.Put(kPods, MakePod(fmt::format("g-{}", i), 1, "g"));
    loop_.RunFor(milliseconds(20));
  }
  Settle();
  EXPECT_EQ(BoundOf("g", 4), 4);
  EXPECT_EQ(pod_status_writes_, 0);
  EXPECT_EQ(Events("FailedScheduling", ""), 0);
  EXPECT_EQ(GroupStatus("g")["conditions"].size(), 1u);
}

TEST_F(SchedulerTest, PlansOnlyWhenSomethingRelevantChanged) {
  AddNode("n1", 1);
  AddPod("p", 2);
  Settle();
  const uint64_t plans = scheduler_->metrics().plans;
  loop_.RunFor(hours(1));
  EXPECT_EQ(scheduler_->metrics().plans, plans);
  // A heartbeat of the node and a label on the waiting pod change nothing that could help.
  json::Value node = *api_.Find(kNodes, "", "n1");
  api_.Put(kNodes,
           node.SetPath({"status", "conditions"}, json::List({json::Obj({{"type", "Ready"}})})));
  json::Value pod = *api_.Find(kPods, "default", "p");
  api_.Put(kPods, pod.SetPath({"metadata", "labels"}, json::Obj({{"a", "b"}})));
  Settle();
  EXPECT_EQ(scheduler_->metrics().plans, plans);
  EXPECT_EQ(scheduler_->metrics().pending_unschedulable, 1u);
}

TEST_F(SchedulerTest, WhatChangesDuringAPlanIsPlannedAgain) {
  AddNode("n1", 2);
  AddNode("n2", 2);
  Settle();
  pool_.hold = true;
  AddPod("p", 1);
  AddGang("g", 2, 1);
  loop_.RunFor(milliseconds(50));
  json::Value cordoned = api_.Find(kNodes, "", "n1")->SetPath({"spec", "unschedulable"}, true);
  api_.Put(kNodes, cordoned);
  api_.Remove(kPods, "default", "g-1");
  loop_.RunFor(milliseconds(50));
  pool_.Release();
  Settle();
  EXPECT_EQ(NodeOf("p"), "n2");
  EXPECT_EQ(NodeOf("g-0"), "");
  EXPECT_EQ(Condition("g-0")["message"].AsString(),
            "1/2 pods of the gang exist: gang g waits for 1 more.");
}

TEST_F(SchedulerTest, ARemadePodIsNotBoundByThePlanOfItsPredecessor) {
  AddNode("n1", 4);
  Settle();
  pool_.hold = true;
  AddPod("p", 1);
  loop_.RunFor(milliseconds(50));
  api_.Remove(kPods, "default", "p");
  AddPod("p", 3);
  loop_.RunFor(milliseconds(50));
  pool_.Release();
  Settle();
  EXPECT_EQ(NodeOf("p"), "n1");
  EXPECT_EQ(cluster::PodAssignedDevices(*api_.Find(kPods, "default", "p"))["main"]["nvidia.com/gpu"]
                .size(),
            3u);
}

TEST_F(SchedulerTest, APodWaitsForItsNeighbourAndForTheLabelsOfItsNamespace) {
  AddNode("n1", 1);
  api_.Put(kNodes, api_.Find(kNodes, "", "n1")->SetPath({"metadata", "labels", "zone"}, "z"));
  const json::Value term = *json::Parse(R"({"topologyKey": "zone", "labelSelector": {}})");
  const json::Value labels = *json::Parse(R"({"a": "b"})");
  const char* kHard = "requiredDuringSchedulingIgnoredDuringExecution";
  const auto near = json::List({term.SetPath({"namespaceSelector", "matchLabels"}, labels)});
  api_.Put(kPods, MakePod("p", 0).SetPath({"spec", "affinity", "podAffinity", kHard}, near));
  const json::Value other = MakePod("other", 0).SetPath({"metadata", "namespace"}, "e");
  api_.Put(kPods, other.SetPath({"spec", "nodeName"}, "n1"));
  Settle();
  EXPECT_EQ(NodeOf("p"), "");
  const json::Value ns = json::Obj({{"metadata", json::Obj({{"name", "e"}, {"labels", labels}})}});
  api_.Put("/api/v1/namespaces", ns);
  Settle();
  EXPECT_EQ(NodeOf("p"), "n1");
}

TEST_F(SchedulerTest, GatedPodsWaitForTheirGates) {
  AddNode("n1", 1);
  api_.Put(kPods, MakePod("p", 1).SetPath({"spec", "schedulingGates"},
                                          json::List({json::Obj({{"name", "x"}})})));
  Settle();
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_EQ(Condition("p")["reason"].AsString(), "SchedulingGated");
  EXPECT_EQ(Events("FailedScheduling", ""), 0);
  EXPECT_EQ(scheduler_->metrics().pending_gated, 1u);
  api_.Put(kPods, api_.Find(kPods, "default", "p")->RemovePath({"spec", "schedulingGates"}));
  Settle();
  EXPECT_EQ(NodeOf("p"), "n1");
}

TEST_F(SchedulerTest, LeavesOthersPodsAndDeletedPodsAlone) {
  AddNode("n1", 4);
  api_.Put(kPods, MakePod("theirs", 1).SetPath({"spec", "schedulerName"}, "someone-else"));
  api_.Put(
      kPods,
      MakePod("leaving", 1).SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z"));
  api_.Put(kPods, MakePod("volcano", 1).SetPath({"spec", "schedulerName"}, "volcano"));
  Settle();
  EXPECT_EQ(NodeOf("theirs"), "");
  EXPECT_EQ(NodeOf("leaving"), "");
  EXPECT_EQ(NodeOf("volcano"), "n1");
}

}  // namespace
}  // namespace muster::scheduler
