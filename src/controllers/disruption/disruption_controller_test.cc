#include "controllers/disruption/disruption_controller.h"

#include <algorithm>

#include "controllers/controller_test_base.h"
#include "controllers/disruption/budget.h"

namespace muster::controllers {
namespace {

constexpr char kBudgets[] = "/apis/policy/v1/poddisruptionbudgets";

class DisruptionTest : public ControllerTest {
 protected:
  DisruptionTest() {
    api_.static_answers["/apis"] = Yaml(
        "{groups: [{name: example.com, versions: [{groupVersion: example.com/v1, version: v1}], "
        "preferredVersion: {groupVersion: example.com/v1, version: v1}}]}");
    api_.static_answers["/apis/example.com/v1"] = Yaml(R"(
groupVersion: example.com/v1
resources:
- {name: clusters, kind: Cluster, namespaced: true, verbs: [list, watch, delete]}
- {name: clusters/scale, kind: Scale, group: autoscaling, version: v1, namespaced: true}
- {name: lumps, kind: Lump, namespaced: true, verbs: [list, watch, delete]}
)");
    Start(std::make_unique<DisruptionController>(discovery_));
  }

  void PutScale(const std::string& name, const std::string& uid, int replicas) {
    api_.static_answers["/apis/example.com/v1/namespaces/d/clusters/" + name + "/scale"] =
        Yaml(fmt::format("{{kind: Scale, apiVersion: autoscaling/v1, metadata: {{name: {}, "
                         "namespace: d, uid: {}}}, spec: {{replicas: {}}}}}",
                         name, uid, replicas));
  }
  static std::string OwnedBy(const std::string& kind, const std::string& name,
                             const std::string& uid) {
    return fmt::format(
        "{{apiVersion: example.com/v1, kind: {}, name: {}, uid: {}, controller: true}}", kind, name,
        uid);
  }
  std::string Refusal() {
    const json::Value condition = Status()["conditions"].At(0);
    return condition["reason"].Str() + ": " + condition["message"].Str();
  }

  void PutBudget(const std::string& spec) {
    Put(kBudgets, fmt::format(R"(
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: b, namespace: d, uid: b1, generation: 1}}
spec: {{selector: {{matchLabels: {{app: web}}}}, {}}}
)",
                              spec));
  }
  void PutOwners(int replicas) {
    Put(kDeployments, fmt::format("{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, "
                                  "namespace: d, uid: d1}}, spec: {{replicas: {}}}}}",
                                  replicas));
    Put(kReplicaSets, R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  {name: web-1, namespace: d, uid: r1,
   ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d1, controller: true}]}
spec: {replicas: 1}
)");
  }
  void PutPods(int count, const std::string& owner =
                              "{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r1, "
                              "controller: true}") {
    for (int i = 0; i < count; ++i) {
      Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: p{}, namespace: d, "
                             "labels: {{app: web}}, ownerReferences: [{}]}}}}",
                             i, owner));
      MakeReady(Get(kPods, "d", fmt::format("p{}", i)));
    }
    Settle();
  }
  json::Value Status() { return Get(kBudgets, "d", "b")["status"]; }
  std::string Counts() {
    return fmt::format("{} of {} healthy, {} wanted, {} allowed",
                       Status()["currentHealthy"].AsInt(-1), Status()["expectedPods"].AsInt(-1),
                       Status()["desiredHealthy"].AsInt(-1),
                       Status()["disruptionsAllowed"].AsInt(-1));
  }
};

TEST_F(DisruptionTest, RowsOfTheContract) {
  PutOwners(4);
  PutPods(4);
  const struct {
    const char* spec;
    const char* counts;
  } rows[] = {{"minAvailable: 3", "4 of 4 healthy, 3 wanted, 1 allowed"},
              {"minAvailable: 9", "4 of 4 healthy, 9 wanted, 0 allowed"},
              {"minAvailable: 30%", "4 of 4 healthy, 2 wanted, 2 allowed"},
              {"maxUnavailable: 1", "4 of 4 healthy, 3 wanted, 1 allowed"},
              {"maxUnavailable: 30%", "4 of 4 healthy, 2 wanted, 2 allowed"},
              {"maxUnavailable: 9", "4 of 4 healthy, 0 wanted, 4 allowed"}};
  for (const auto& row : rows) {
    PutBudget(row.spec);
    Settle();
    EXPECT_EQ(Counts(), row.counts) << row.spec;
  }
  const json::Value condition = Status()["conditions"].At(0);
  EXPECT_EQ(condition["type"].AsString(), "DisruptionAllowed");
  EXPECT_EQ(condition["reason"].AsString(), "SufficientPods");
  EXPECT_EQ(condition["observedGeneration"].AsInt(), 1);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(DisruptionTest, PodsThatAreNotReadyOrLeaveDoNotCount) {
  PutOwners(3);
  PutPods(3);
  PutBudget("maxUnavailable: 1");
  Settle();
  EXPECT_EQ(Counts(), "3 of 3 healthy, 2 wanted, 1 allowed");
  api_.Put(
      kPods,
      Get(kPods, "d", "p0").SetPath({"metadata", "deletionTimestamp"}, FormatTime(loop_.Now())));
  Settle();
  EXPECT_EQ(Counts(), "2 of 3 healthy, 2 wanted, 0 allowed");
  EXPECT_EQ(Status()["conditions"].At(0)["reason"].AsString(), "InsufficientPods");
}

TEST_F(DisruptionTest, AGrantedEvictionCountsUntilItsTimeIsUp) {
  PutOwners(3);
  PutPods(3);
  PutBudget("minAvailable: 1");
  Settle();
  api_.Put(kBudgets, Get(kBudgets, "d", "b")
                         .SetPath({"status", "disruptedPods"},
                                  json::Obj({{"p0", FormatTime(loop_.Now())},
                                             {"gone", FormatTime(loop_.Now())}})));
  Settle();
  EXPECT_EQ(Counts(), "2 of 3 healthy, 1 wanted, 1 allowed");
  EXPECT_TRUE(Status()["disruptedPods"].Has("p0"));
  EXPECT_FALSE(Status()["disruptedPods"].Has("gone"));
  loop_.RunFor(kEvictionGracePeriod);
  EXPECT_EQ(Counts(), "3 of 3 healthy, 1 wanted, 2 allowed");
  EXPECT_FALSE(Status().Has("disruptedPods"));
  const std::vector<std::string> events = Events();
  EXPECT_EQ(std::count(events.begin(), events.end(),
                       "NotDeleted Pod was expected by PDB d/b to be deleted but it wasn't"),
            1);
}

TEST_F(DisruptionTest, ACustomKindIsAskedForItsScale) {
  PutScale("c", "c1", 4);
  PutPods(3, OwnedBy("Cluster", "c", "c1"));
  PutBudget("maxUnavailable: 1");
  Settle();
  EXPECT_EQ(Counts(), "3 of 4 healthy, 3 wanted, 0 allowed");
  // What the scale says counts as of the next change of a pod.
  PutScale("c", "c1", 2);
  MakeReady(Get(kPods, "d", "p0"));
  Settle();
  EXPECT_EQ(Counts(), "3 of 2 healthy, 1 wanted, 2 allowed");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  // One question for each controller and change, not for each pod.
  const size_t asked = Requests("GET /apis/example.com/v1/namespaces/d/clusters/c/scale");
  MakeReady(Get(kPods, "d", "p1"));
  Settle();
  EXPECT_EQ(Requests("GET /apis/example.com/v1/namespaces/d/clusters/c/scale"), asked + 1);
}

TEST_F(DisruptionTest, ScalesOfSeveralControllersAddUp) {
  PutOwners(2);
  PutScale("c", "c1", 4);
  PutPods(2);
  Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: q, namespace: d, labels: "
                         "{{app: web}}, ownerReferences: [{}]}}}}",
                         OwnedBy("Cluster", "c", "c1")));
  PutBudget("minAvailable: 50%");
  Settle();
  EXPECT_EQ(Counts(), "2 of 6 healthy, 3 wanted, 0 allowed");
}

TEST_F(DisruptionTest, SaysWhyAScaleTellsNothing) {
  // A kind without one.
  PutPods(1, OwnedBy("Lump", "l", "l1"));
  PutBudget("maxUnavailable: 1");
  Settle();
  EXPECT_EQ(Refusal(), "SyncFailed: lumps.example.com does not implement the scale subresource");
  // The controller is gone, or is another one by now.
  PutPods(1, OwnedBy("Cluster", "c", "c1"));
  EXPECT_EQ(Refusal(), "SyncFailed: found no controllers for pod \"p0\"");
  PutScale("c", "c2", 4);
  MakeReady(Get(kPods, "d", "p0"));
  Settle();
  EXPECT_EQ(Refusal(), "SyncFailed: found no controllers for pod \"p0\"");
  EXPECT_EQ(Status()["disruptionsAllowed"].AsInt(-1), 0);
}

TEST_F(DisruptionTest, SaysWhatItCannotCount) {
  PutPods(2, "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: j, uid: j1, controller: true}");
  PutBudget("maxUnavailable: 1");
  Settle();
  const json::Value condition = Status()["conditions"].At(0);
  EXPECT_EQ(condition["status"].AsString(), "False");
  EXPECT_EQ(condition["reason"].AsString(), "SyncFailed");
  EXPECT_EQ(condition["message"].AsString(),
            "no matches for kind \"PyTorchJob\" in version \"kubeflow.org/v1\"");
  // Pods of nobody are in no number of replicas.
  api_.Remove(kPods, "d", "p0");
  api_.Remove(kPods, "d", "p1");
  Put(kPods,
      "{apiVersion: v1, kind: Pod, metadata: {name: lone, namespace: d, labels: {app: web}}}");
  Settle();
  EXPECT_EQ(Counts(), "0 of 0 healthy, 0 wanted, 0 allowed");
  const std::vector<std::string> events = Events();
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const std::string& event) {
    return event.starts_with(
        "UnmanagedPods Pods selected by this PodDisruptionBudget (selector: "
        "app=web) were found to be unmanaged.");
  }));
}

}  // namespace
}  // namespace muster::controllers
