#include "scheduler/scheduler.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/strings.h"
#include "client/api_client.h"
#include "client/fake_api.h"
#include "client/in_process_transport.h"
#include "client/informer.h"
#include "json/parse.h"
#include "loop/sim_loop.h"
#include "scheduler/binder.h"
#include "scheduler/status_publisher.h"

namespace muster::scheduler {
namespace {

const char kPods[] = "/api/v1/pods";
const char kNodes[] = "/api/v1/nodes";
const char kGroups[] = "/apis/scheduling.volcano.sh/v1beta1/podgroups";

// Runs work at once; while `hold` is set, its results come only with Release().
class HeldPool final : public Pool {
 public:
  void Run(Task work, Loop& loop, Task done) override {
    work();
    if (!hold) return loop.Post(std::move(done));
    held_.push_back(std::move(done));
  }
  void Release() {
    hold = false;
    for (Task& done : std::exchange(held_, {})) done();
  }
  bool hold = false;

 private:
  std::vector<Task> held_;
};

// The scheduler on a FakeApi that also knows what the fake does not: pods/binding, and conditions
// that merge by type.
class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest()
      : api_(loop_), transport_(loop_, api_, {}), client_(loop_, transport_, "scheduler") {
    api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
      return BeforeHandle(request, writer);
    };
    StartScheduler();
  }

  void StartScheduler() {
    scheduler_ = nullptr;
    informers_ = std::make_unique<client::InformerSet>(client_);
    scheduler_ = std::make_unique<Scheduler>(client_, *informers_, pool_);
    scheduler_->Start();
    informers_->Start();
  }

  bool BeforeHandle(const net::Request& request, const net::ResponseWriterPtr& writer) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const std::vector<std::string_view> parts = SplitNonEmpty(path, '/');
    if (parts.size() == 7 && parts[6] == "binding") {
      Bind(std::string(parts[3]), std::string(parts[5]), client::FakeApi::BodyOf(request), *writer);
      return false;
    }
    if (parts.size() == 8 && parts[7] == "status" && refuse_group_status) {
      client::FakeApi::SendError(*writer, 503, "ServiceUnavailable", "away");
      return false;
    }
    if (parts.size() == 7 && parts[6] == "status" && parts[4] == "pods") ++pod_status_writes_;
    return true;
  }

  void Bind(const std::string& ns, const std::string& name, const json::Value& binding,
            net::ResponseWriter& writer) {
    ++binds_;
    if (refuse_bind && refuse_bind(name, writer)) return;
    const json::Value* pod = api_.Find(kPods, ns, name);
    if (pod == nullptr)
      return client::FakeApi::SendError(writer, 404, "NotFound", name + " not found");
    if (!(*pod)["spec"]["nodeName"].AsString().empty()) {
      ++double_binds_;
      return client::FakeApi::SendError(writer, 409, "Conflict", name + " is already assigned");
    }
    EXPECT_EQ(binding["metadata"]["uid"], (*pod)["metadata"]["uid"]);
    json::Value bound = pod->SetPath({"spec", "nodeName"}, binding["target"]["name"]);
    for (const auto& [key, value] : binding["metadata"]["annotations"].members()) {
      bound = bound.SetPath({"metadata", "annotations", key}, value);
    }
    api_.Put(kPods, bound);
    if (lose_bind_answers_-- > 0) return client::FakeApi::SendError(writer, 504, "Timeout", "lost");
    writer.Send({.status = 201,
                 .headers = {},
                 .body = R"({"kind":"Status","status":"Success"})",
                 .source = nullptr,
                 .value = {}});
  }

  void AddNode(const std::string& name, int gpus) {
    json::Array devices;
    for (int i = 0; i < gpus; ++i)
      devices.push_back(json::Obj({{"id", fmt::format("{}-g{}", name, i)}, {"index", i}}));
    const std::string text = json::Write(json::Obj({{"nvidia.com/gpu", json::Value(devices)}}));
    const json::Value amounts =
        json::Obj({{"cpu", "8"}, {"pods", "110"}, {"nvidia.com/gpu", std::to_string(gpus)}});
    api_.Put(kNodes,
             json::Obj({{"metadata",
                         json::Obj({{"name", name},
                                    {"annotations", json::Obj({{"muster.dev/devices", text}})}})},
                        {"status", json::Obj({{"allocatable", amounts}})}}));
  }

  json::Value MakePod(const std::string& name, int gpus, const std::string& gang = "") {
    json::Value pod = json::Obj(
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", json::Obj({{"namespace", "default"},
                                 {"name", name},
                                 {"creationTimestamp", "2026-01-01T00:00:00Z"}})},
         {"spec",
          json::Obj({{"containers",
                      json::List({json::Obj(
                          {{"name", "main"},
                           {"resources",
                            json::Obj({{"requests", json::Obj({{"nvidia.com/gpu",
                                                                std::to_string(gpus)}})}})}})})}})},
         {"status", json::Obj({{"phase", "Pending"}})}});
    if (gang.empty()) return pod;
    pod = pod.SetPath({"metadata", "annotations"},
                      json::Obj({{"scheduling.k8s.io/group-name", gang}}));
    return pod.SetPath(
        {"metadata", "ownerReferences"},
        json::List({json::Obj({{"kind", "PyTorchJob"}, {"name", gang}, {"controller", true}})}));
  }
  void AddPod(const std::string& name, int gpus) { api_.Put(kPods, MakePod(name, gpus)); }
  void AddGroup(const std::string& name, int min_member) {
    api_.Put(kGroups,
             json::Obj({{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                        {"kind", "PodGroup"},
                        {"metadata", json::Obj({{"namespace", "default"}, {"name", name}})},
                        {"spec", json::Obj({{"minMember", min_member}})}}));
  }
  void AddGang(const std::string& name, int members, int gpus) {
    AddGroup(name, members);
    for (int i = 0; i < members; ++i)
      api_.Put(kPods, MakePod(fmt::format("{}-{}", name, i), gpus, name));
  }
  void SetPhase(const std::string& name, const std::string& phase) {
    api_.Put(kPods, api_.Find(kPods, "default", name)->SetPath({"status", "phase"}, phase));
  }

  void Settle() {
    loop_.RunFor(seconds(120));
    EXPECT_TRUE(scheduler_->Idle());
  }

  std::string NodeOf(const std::string& name) {
    const json::Value* pod = api_.Find(kPods, "default", name);
    return pod == nullptr ? "gone" : (*pod)["spec"]["nodeName"].Str();
  }
  int BoundOf(const std::string& gang, int members) {
    int bound = 0;
    for (int i = 0; i < members; ++i)
      bound += NodeOf(fmt::format("{}-{}", gang, i)).empty() ? 0 : 1;
    return bound;
  }
  json::Value Condition(const std::string& name) {
    for (const json::Value& condition :
         (*api_.Find(kPods, "default", name))["status"]["conditions"].items()) {
      if (condition["type"].AsString() == "PodScheduled") return condition;
    }
    return {};
  }
  json::Value GroupStatus(const std::string& name) {
    return (*api_.Find(kGroups, "default", name))["status"];
  }
  int Events(const std::string& reason, const std::string& message_part) {
    int count = 0;
    for (const auto& [key, object] : api_.objects) {
      if (!key.starts_with("/api/v1/events|") || object["reason"].AsString() != reason) continue;
      if (object["message"].AsString().find(message_part) != std::string_view::npos) ++count;
    }
    return count;
  }
  // No device is in two live pods.
  void ExpectDevicesOwnedOnce() {
    std::set<std::string> seen;
    for (const auto& [key, object] : api_.objects) {
      if (!key.starts_with(std::string(kPods) + "|") ||
          object["status"]["phase"].AsString() == "Succeeded")
        continue;
      for (const auto& [container, resources] : cluster::PodAssignedDevices(object)) {
        for (const auto& [resource, ids] : resources) {
          for (const std::string& id : ids) EXPECT_TRUE(seen.insert(id).second) << id;
        }
      }
    }
  }

  SimLoop loop_;
  HeldPool pool_;
  client::FakeApi api_;
  client::InProcessTransport transport_;
  client::ApiClient client_;
  std::unique_ptr<client::InformerSet> informers_;
  std::unique_ptr<Scheduler> scheduler_;
  // Answers the binding of this pod itself and returns true, or leaves it alone.
  std::function<bool(const std::string& pod, net::ResponseWriter& writer)> refuse_bind;
  int binds_ = 0;
  int double_binds_ = 0;
  int lose_bind_answers_ = 0;
  int pod_status_writes_ = 0;
  bool refuse_group_status = false;
};

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

TEST_F(SchedulerTest, ATerminatingPodKeepsItsDevicesUntilItIsGone) {
  AddNode("n1", 1);
  AddPod("old", 1);
  Settle();
  api_.Put(kPods, api_.Find(kPods, "default", "old")
                      ->SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z"));
  AddPod("new", 1);
  Settle();
  EXPECT_EQ(NodeOf("new"), "");
  api_.Remove(kPods, "default", "old");
  Settle();
  EXPECT_EQ(NodeOf("new"), "n1");
}

TEST_F(SchedulerTest, ABindingWithoutAnAnswerIsRepeatedInPlace) {
  AddNode("n1", 1);
  AddNode("n2", 1);
  lose_bind_answers_ = 2;
  AddPod("p", 1);
  AddPod("q", 1);
  Settle();
  EXPECT_NE(NodeOf("p"), NodeOf("q"));
  EXPECT_FALSE(NodeOf("p").empty());
  ExpectDevicesOwnedOnce();
}

TEST_F(SchedulerTest, ARefusedPodBacksOffAndBlocksNobody) {
  AddNode("n1", 1);
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "poison") return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "not this one");
    return true;
  };
  AddPod("poison", 1);
  loop_.RunFor(milliseconds(50));
  AddPod("good", 1);
  loop_.RunFor(seconds(60));
  EXPECT_EQ(NodeOf("good"), "n1");
  EXPECT_LT(binds_, 12);
  EXPECT_GE(scheduler_->metrics().errors, 1u);
}

TEST_F(SchedulerTest, AClockThatIsSetBackDoesNotLengthenABackoff) {
  AddNode("n1", 1);
  refuse_bind = [](const std::string&, net::ResponseWriter& writer) {
    client::FakeApi::SendError(writer, 403, "Forbidden", "not now");
    return true;
  };
  AddPod("p", 1);
  loop_.RunFor(milliseconds(50));
  refuse_bind = {};
  loop_.JumpClock(-hours(1));
  loop_.RunFor(kMaxBindBackoff);
  EXPECT_EQ(NodeOf("p"), "n1");
}

TEST_F(SchedulerTest, ARefusedGangReleasesAllItsPlacesIfNoneIsBound) {
  AddNode("n1", 2);
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (!pod.starts_with("g-")) return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "quota");
    return true;
  };
  AddGang("g", 2, 1);
  loop_.RunFor(milliseconds(50));
  EXPECT_EQ(Condition("g-0")["reason"].AsString(), "SchedulerError");
  AddGang("h", 2, 1);
  loop_.RunFor(seconds(60));
  EXPECT_EQ(BoundOf("g", 2), 0);
  EXPECT_EQ(BoundOf("h", 2), 2);
}

TEST_F(SchedulerTest, AHalfBoundGangIsCompletedOnItsReservedPlace) {
  AddNode("n1", 2);
  int refusals = 3;
  refuse_bind = [&refusals](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "g-1" || refusals-- <= 0) return false;
    client::FakeApi::SendError(writer, 403, "Forbidden", "try again");
    return true;
  };
  AddGang("g", 2, 1);
  loop_.RunFor(milliseconds(50));
  EXPECT_EQ(BoundOf("g", 2), 1);
  AddPod("thief", 1);  // must not get the place that is kept
  loop_.RunFor(seconds(60));
  EXPECT_EQ(BoundOf("g", 2), 2);
  EXPECT_EQ(NodeOf("thief"), "");
}

TEST_F(SchedulerTest, AServerThatFailsABindingForEverDoesNotHoldThePlaceForEver) {
  AddNode("n1", 1);
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (pod != "poison") return false;
    client::FakeApi::SendError(writer, 500, "InternalError", "webhook failed");
    return true;
  };
  AddPod("poison", 1);
  AddPod("good", 1);
  loop_.RunFor(minutes(5));
  EXPECT_EQ(NodeOf("good"), "n1");
}

TEST_F(SchedulerTest, ARestartInTheMiddleOfAGangCompletesItFirst) {
  AddNode("n1", 4);
  refuse_bind = [](const std::string& pod, net::ResponseWriter& writer) {
    if (pod == "g-0" || pod == "g-1") return false;
    client::FakeApi::SendError(writer, 503, "ServiceUnavailable", "going down");
    return true;
  };
  AddGang("g", 4, 1);
  loop_.RunFor(milliseconds(50));
  EXPECT_EQ(BoundOf("g", 4), 2);
  scheduler_ = nullptr;
  informers_ = nullptr;
  json::Value urgent = MakePod("urgent", 1).SetPath({"spec", "priority"}, 1000);
  api_.Put(kPods, urgent);
  refuse_bind = nullptr;
  StartScheduler();
  Settle();
  EXPECT_EQ(BoundOf("g", 4), 4);
  EXPECT_EQ(NodeOf("urgent"), "");
  ExpectDevicesOwnedOnce();
}

TEST_F(SchedulerTest, RestartWithNothingToDoWritesNothing) {
  AddNode("n1", 1);
  AddPod("p", 1);
  AddPod("waits", 1);
  AddGang("g", 2, 1);
  Settle();
  const uint64_t revision = api_.revision();
  StartScheduler();
  Settle();
  EXPECT_EQ(api_.revision(), revision);
}

TEST_F(SchedulerTest, WorksWithoutPodGroupsOnTheServer) {
  scheduler_ = nullptr;
  informers_ = nullptr;
  api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.target.starts_with("/apis/scheduling.volcano.sh/")) {
      client::FakeApi::SendError(*writer, 404, "NotFound",
                                 "the server could not find the requested resource");
      return false;
    }
    return BeforeHandle(request, writer);
  };
  StartScheduler();
  AddNode("n1", 1);
  AddPod("p", 1);
  Settle();
  EXPECT_EQ(NodeOf("p"), "n1");
}

TEST_F(SchedulerTest, TextsOfWaitingPodsAreRewrittenAtABoundedPace) {
  AddNode("n1", 8);
  for (int i = 0; i < 8; ++i) AddPod(fmt::format("x{}", i), 1);
  Settle();
  AddPod("waits", 8);
  Settle();
  const int before = pod_status_writes_;
  for (int i = 0; i < 7; ++i) {
    SetPhase(fmt::format("x{}", i), "Succeeded");
    loop_.RunFor(milliseconds(100));
  }
  EXPECT_LE(pod_status_writes_ - before, 2);
  Settle();
  EXPECT_NE(Condition("waits")["message"].AsString().find("7 of 8 free (1 held by pod default/x7)"),
            std::string_view::npos);
}

TEST_F(SchedulerTest, BindsAndStatusWritesInFlightAreBounded) {
  std::vector<net::ResponseWriterPtr> held;
  size_t binds = 0, statuses = 0;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    const bool is_bind = request.target.find("/binding") != std::string::npos;
    const bool is_status = request.target.find("/status") != std::string::npos;
    binds += is_bind ? 1 : 0;
    statuses += is_status ? 1 : 0;
    if (is_bind || is_status) held.push_back(writer);
    return !is_bind && !is_status;
  };
  for (int i = 0; i < 10; ++i) AddNode(fmt::format("n{}", i), 60);
  for (int i = 0; i < 600; ++i) AddPod(fmt::format("p{}", i), 1);
  for (int i = 0; i < 100; ++i) AddPod(fmt::format("waits{}", i), 61);
  loop_.RunFor(milliseconds(100));
  EXPECT_EQ(binds, kMaxBindsInFlight);
  EXPECT_EQ(statuses, kMaxStatusWritesInFlight);
  EXPECT_FALSE(scheduler_->Idle());
}

// Random arrivals, departures, refusals, lost answers, broken watches and restarts: nothing is ever
// owned twice or bound twice, gangs are whole when the world has been calm for a while.
TEST_F(SchedulerTest, KeepsItsPromisesUnderFaults) {
  int refused = 0, lost = 0, restarts = 0, watches_cut = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    api_.objects.clear();
    api_.CutWatches(/*expired=*/true);
    StartScheduler();
    refuse_bind = [&](const std::string&, net::ResponseWriter& writer) {
      if (!rng.Chance(0.15)) return false;
      ++refused;
      client::FakeApi::SendError(writer, rng.Chance(0.5) ? 403 : 503,
                                 rng.Chance(0.5) ? "Forbidden" : "ServiceUnavailable", "no");
      return true;
    };
    std::map<std::string, int> gangs;
    for (int i = 0; i < 3; ++i) AddNode(fmt::format("n{}", i), 4);
    for (int step = 0; step < 30; ++step) {
      const std::string name = fmt::format("s{}u{}", seed, step);
      const uint64_t action = rng.Below(8);
      if (action < 3) {
        gangs[name] = static_cast<int>(rng.Between(1, 6));
        AddGang(name, gangs[name], static_cast<int>(rng.Between(1, 2)));
      } else if (action == 3) {
        AddPod(name, static_cast<int>(rng.Between(1, 4)));
      } else if (action == 4 && !gangs.empty()) {
        const auto gang = std::next(gangs.begin(), static_cast<ptrdiff_t>(rng.Below(gangs.size())));
        for (int i = 0; i < gang->second; ++i)
          api_.Remove(kPods, "default", fmt::format("{}-{}", gang->first, i));
        api_.Remove(kGroups, "default", gang->first);
        gangs.erase(gang);
      } else if (action == 5 && rng.Chance(0.3)) {
        ++restarts;
        StartScheduler();
      } else if (action == 6 && rng.Chance(0.3)) {
        ++watches_cut;
        api_.CutWatches(rng.Chance(0.5));
      } else if (action == 7) {
        ++lost;
        lose_bind_answers_ = 1;
      }
      loop_.RunFor(milliseconds(rng.Between(0, 500)));
      ExpectDevicesOwnedOnce();
    }
    refuse_bind = nullptr;
    lose_bind_answers_ = 0;
    loop_.RunFor(minutes(3));
    EXPECT_TRUE(scheduler_->Idle()) << "seed " << seed;
    ExpectDevicesOwnedOnce();
    for (const auto& [gang, members] : gangs) {
      const int bound = BoundOf(gang, members);
      EXPECT_TRUE(bound == 0 || bound == members)
          << "seed " << seed << " gang " << gang << " bound " << bound;
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(lost, 0);
  EXPECT_GT(restarts, 0);
  EXPECT_GT(watches_cut, 0);
}

// Found by simulation (seed 631): the place of a bound pod was given to another.
TEST(Binder, AConflictWithItsOwnLostBindingIsNoRefusal) {
  SimLoop loop;
  client::FakeApi api(loop);
  client::InProcessTransport transport(loop, api, {});
  client::ApiClient client(loop, transport, "scheduler");
  api.Put(kPods, json::Obj({{"metadata", json::Obj({{"namespace", "d"}, {"name", "p"}})}}));
  int binds = 0;
  api.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.method != "POST") return true;
    if (++binds == 1) {
      api.Put(kPods, api.Find(kPods, "d", "p")->SetPath({"spec", "nodeName"}, "n1"));
      client::FakeApi::SendError(*writer, 504, "Timeout", "lost");
    } else {
      client::FakeApi::SendError(*writer, 409, "Conflict", "already assigned to node n1");
    }
    return false;
  };
  int bound = 0, released = 0;
  Binder binder(client,
                {.binding_of =
                     [](const cluster::PodKey&) {
                       return json::Obj({{"target", json::Obj({{"name", "n1"}})}});
                     },
                 .on_bound = [&](const cluster::PodKey&, const json::Value&) { ++bound; },
                 .on_released = [&](const cluster::PodKey&, const Status&) { ++released; }});
  binder.Bind({{"d", "p"}}, false);
  loop.RunFor(seconds(60));
  EXPECT_EQ(binds, 2);
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(released, 0);
}

TEST(Binder, BacksOffFromATenthOfASecondToTenSeconds) {
  EXPECT_EQ(BindBackoff(1), milliseconds(100));
  EXPECT_EQ(BindBackoff(2), milliseconds(200));
  EXPECT_EQ(BindBackoff(100), kMaxBindBackoff);
}

}  // namespace
}  // namespace muster::scheduler
