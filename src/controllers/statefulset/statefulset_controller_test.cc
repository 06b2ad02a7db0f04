#include "controllers/statefulset/statefulset_controller.h"

#include <algorithm>

#include "controllers/controller_test_base.h"
#include "controllers/history/history.h"
#include "controllers/pods/pod_facts.h"

namespace muster::controllers {
namespace {

class StatefulSetTest : public ControllerTest {
 protected:
  StatefulSetTest() { Start(std::make_unique<StatefulSetController>()); }

  void PutSet(int replicas, const std::string& extra = "") {
    Put(kStatefulSets, fmt::format(R"(
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, namespace: d, uid: s1, generation: 1}}
spec:
  replicas: {}
  serviceName: db
  selector: {{matchLabels: {{app: db}}}}
  podManagementPolicy: OrderedReady
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{partition: 0}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec: {{containers: [{{name: c, image: v1}}], volumes: [{{name: data}}, {{name: other}}]}}
{}
)",
                                   replicas, extra));
    Settle();
  }
  void Change(std::initializer_list<std::string_view> path, json::Value value) {
    api_.Put(kStatefulSets, Get(kStatefulSets, "d", "db").SetPath(path, std::move(value)));
    Settle();
  }
  void SetImage(const std::string& image) {
    Change({"spec", "template", "spec", "containers"},
           json::List({json::Obj({{"name", "c"}, {"image", image}})}));
  }
  // "db-0 db-1*": those that there are, with a star where one is ready.
  std::string Pods() const {
    std::string out;
    for (const json::Value& pod : All(kPods))
      out += (out.empty() ? "" : " ") + NameOf(pod) + (IsReady(pod) ? "*" : "");
    return out;
  }
  std::string Images() const {
    std::string out;
    for (const json::Value& pod : All(kPods))
      out += (out.empty() ? "" : " ") + pod["spec"]["containers"].At(0)["image"].Str();
    return out;
  }
  json::Value Pod(int ordinal) { return Get(kPods, "d", fmt::format("db-{}", ordinal)); }
  void Ready(int ordinal) {
    MakeReady(Pod(ordinal));
    Settle();
  }
  // Whatever comes up becomes ready, one after another.
  void AllReady() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const json::Value& pod : All(kPods)) {
        if (IsReady(pod)) continue;
        MakeReady(pod);
        Settle();
        changed = true;
        break;
      }
    }
  }
  json::Value Status() { return Get(kStatefulSets, "d", "db")["status"]; }
  bool HasEvent(const std::string& text) const {
    const std::vector<std::string> events = Events();
    return std::find(events.begin(), events.end(), text) != events.end();
  }
};

TEST_F(StatefulSetTest, MakesPodsInOrderWithTheirIdentity) {
  PutSet(3);
  EXPECT_EQ(Pods(), "db-0");
  const json::Value pod = Pod(0);
  const std::string revision = NameOf(All(kRevisions).at(0));
  EXPECT_EQ(pod["metadata"]["labels"], json::Obj({{"app", "db"},
                                                  {"statefulset.kubernetes.io/pod-name", "db-0"},
                                                  {"apps.kubernetes.io/pod-index", "0"},
                                                  {"controller-revision-hash", revision}}));
  EXPECT_EQ(pod["spec"]["hostname"].AsString(), "db-0");
  EXPECT_EQ(pod["spec"]["subdomain"].AsString(), "db");
  EXPECT_TRUE(HasEvent("SuccessfulCreate create Pod db-0 in StatefulSet db successful"));
  Ready(0);
  EXPECT_EQ(Pods(), "db-0* db-1");
  Ready(1);
  EXPECT_EQ(Pods(), "db-0* db-1* db-2");
  Ready(2);
  EXPECT_EQ(Status(), json::Obj({{"replicas", 3},
                                 {"readyReplicas", 3},
                                 {"availableReplicas", 3},
                                 {"currentReplicas", 3},
                                 {"updatedReplicas", 3},
                                 {"currentRevision", revision},
                                 {"updateRevision", revision},
                                 {"collisionCount", 0},
                                 {"observedGeneration", 1}}));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(StatefulSetTest, InParallelNobodyWaits) {
  PutSet(3, "  podManagementPolicy: Parallel");
  EXPECT_EQ(Pods(), "db-0 db-1 db-2");
  Change({"spec", "replicas"}, 0);
  EXPECT_EQ(Pods(), "");
}

TEST_F(StatefulSetTest, EndsThemFromTheHighestNumber) {
  PutSet(3);
  AllReady();
  // Each takes its time to end.
  for (const json::Value& pod : All(kPods))
    api_.Put(kPods, pod.SetPath({"metadata", "finalizers"}, json::List({"test/slow"})));
  Change({"spec", "replicas"}, 1);
  EXPECT_TRUE(Pod(2)["metadata"].Has("deletionTimestamp"));
  EXPECT_FALSE(Pod(1)["metadata"].Has("deletionTimestamp"));
  api_.Remove(kPods, "d", "db-2");
  Settle();
  EXPECT_TRUE(Pod(1)["metadata"].Has("deletionTimestamp"));
  api_.Remove(kPods, "d", "db-1");
  Settle();
  EXPECT_EQ(Pods(), "db-0*");
  EXPECT_TRUE(HasEvent("SuccessfulDelete delete Pod db-1 in StatefulSet db successful"));
}

TEST_F(StatefulSetTest, ScalingDownWaitsForAPodThatIsNotReady) {
  PutSet(3);
  AllReady();
  api_.Put(kPods, Pod(0).SetPath({"status", "conditions"}, json::Array()));
  Change({"spec", "replicas"}, 1);
  EXPECT_EQ(Pods(), "db-0 db-1* db-2*");
  Ready(0);
  EXPECT_EQ(Pods(), "db-0*");
}

TEST_F(StatefulSetTest, UpdatesFromTheHighestNumberDownToThePartition) {
  PutSet(3);
  AllReady();
  const std::string first = Status()["currentRevision"].Str();
  Change({"spec", "updateStrategy", "rollingUpdate", "partition"}, 1);
  SetImage("v2");
  EXPECT_EQ(Images(), "v1 v1 v2");
  EXPECT_EQ(Pods(), "db-0* db-1* db-2");
  Ready(2);
  EXPECT_EQ(Images(), "v1 v2 v2");
  Ready(1);
  EXPECT_EQ(Images(), "v1 v2 v2");
  EXPECT_EQ(Status()["currentRevision"].AsString(), first);
  EXPECT_NE(Status()["updateRevision"].AsString(), first);
  EXPECT_EQ(Status()["updatedReplicas"].AsInt(), 2);
  // Below the partition a pod comes back as it was.
  api_.Remove(kPods, "d", "db-0");
  Settle();
  EXPECT_EQ(Images(), "v1 v2 v2");
  Ready(0);
  Change({"spec", "updateStrategy", "rollingUpdate", "partition"}, 0);
  AllReady();
  EXPECT_EQ(Images(), "v2 v2 v2");
  EXPECT_EQ(Status()["currentRevision"], Status()["updateRevision"]);
  // Back: the first revision becomes the newest.
  SetImage("v1");
  AllReady();
  EXPECT_EQ(Status()["currentRevision"].AsString(), first);
  EXPECT_EQ(Get(kRevisions, "d", first)["revision"].AsInt(), 3);
  EXPECT_EQ(All(kRevisions).size(), 2u);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(StatefulSetTest, UpdatesSeveralAtATimeInOrder) {
  PutSet(5);
  AllReady();
  Change({"spec", "updateStrategy", "rollingUpdate"}, Yaml("{partition: 1, maxUnavailable: 2}"));
  SetImage("v2");
  // Two went; they come back in order, and nobody else goes before both serve.
  EXPECT_EQ(Pods(), "db-0* db-1* db-2* db-3");
  EXPECT_EQ(Status()["currentReplicas"].AsInt(), 3);
  Ready(3);
  EXPECT_EQ(Pods(), "db-0* db-1* db-2* db-3* db-4");
  EXPECT_EQ(Images(), "v1 v1 v1 v2 v2");
  Ready(4);
  EXPECT_EQ(Pods(), "db-0* db-1 db-3* db-4*");
  AllReady();
  EXPECT_EQ(Images(), "v1 v2 v2 v2 v2");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

TEST_F(StatefulSetTest, UpdatesSeveralAtATimeInParallel) {
  PutSet(5, "  podManagementPolicy: Parallel");
  AllReady();
  Change({"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}, 2);
  SetImage("v2");
  EXPECT_EQ(Images(), "v1 v1 v1 v2 v2");
  // Each that serves again lets the next one go.
  Ready(3);
  EXPECT_EQ(Images(), "v1 v1 v2 v2 v2");
  EXPECT_EQ(Pods(), "db-0* db-1* db-2 db-3* db-4");
  AllReady();
  EXPECT_EQ(Images(), "v2 v2 v2 v2 v2");
  EXPECT_EQ(Status()["currentRevision"], Status()["updateRevision"]);
}

// What serves nobody is not one of those that may become unavailable, and goes at once.
TEST_F(StatefulSetTest, InParallelBrokenReplicasAreMendedFirst) {
  PutSet(4, "  podManagementPolicy: Parallel");
  for (const int ordinal : {1, 2, 3}) Ready(ordinal);
  api_.Put(kPods, Pod(1).SetPath({"status", "conditions"}, json::Array()));
  Settle();
  ASSERT_EQ(Pods(), "db-0 db-1 db-2* db-3*");
  Change({"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}, 2);
  SetImage("v2");
  EXPECT_EQ(Images(), "v2 v2 v1 v1");
  EXPECT_EQ(Pods(), "db-0 db-1 db-2* db-3*");
  Ready(0);
  EXPECT_EQ(Images(), "v2 v2 v1 v2");
}

TEST_F(StatefulSetTest, SharesOfTheReplicasAreRoundedDownToAtLeastOne) {
  PutSet(5, "  podManagementPolicy: Parallel");
  AllReady();
  Change({"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}, "59%");
  SetImage("v2");
  EXPECT_EQ(Images(), "v1 v1 v1 v2 v2");
  AllReady();
  Change({"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}, "1%");
  SetImage("v3");
  EXPECT_EQ(Images(), "v2 v2 v2 v2 v3");
}

// Ready is not enough: it must have been so for minReadySeconds.
TEST_F(StatefulSetTest, WhoIsNotYetAvailableCountsAsMissing) {
  PutSet(3, "  podManagementPolicy: Parallel\n  minReadySeconds: 10");
  AllReady();
  loop_.RunFor(seconds(11));
  Settle();
  Change({"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}, 1);
  SetImage("v2");
  Ready(2);
  EXPECT_EQ(Images(), "v1 v1 v2");
  loop_.RunFor(seconds(11));
  Settle();
  EXPECT_EQ(Images(), "v1 v2 v2");
}

TEST_F(StatefulSetTest, OnDeleteWaitsForSomebodyToDelete) {
  PutSet(2, "  updateStrategy: {type: OnDelete}");
  AllReady();
  SetImage("v2");
  EXPECT_EQ(Images(), "v1 v1");
  api_.Remove(kPods, "d", "db-0");
  Settle();
  EXPECT_EQ(Images(), "v2 v1");
}

TEST_F(StatefulSetTest, RecreatesAPodThatFailed) {
  PutSet(2);
  AllReady();
  const std::string uid = Pod(0)["metadata"]["uid"].Str();
  api_.Put(kPods, Pod(0).SetPath({"status", "phase"}, "Failed"));
  Settle();
  EXPECT_NE(Pod(0)["metadata"]["uid"].AsString(), uid);
  EXPECT_TRUE(HasEvent("RecreatingFailedPod StatefulSet d/db is recreating failed Pod db-0"));
}

TEST_F(StatefulSetTest, EachReplicaKeepsItsClaims) {
  PutSet(2, R"(
  volumeClaimTemplates:
  - {metadata: {name: data, labels: {tier: x}}, spec: {resources: {requests: {storage: 1Gi}}}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Delete}
)");
  AllReady();
  EXPECT_EQ(Pod(0)["spec"]["volumes"],
            Yaml("[{name: data, persistentVolumeClaim: {claimName: data-db-0}}, {name: other}]"));
  const json::Value claim = Get(kClaims, "d", "data-db-1");
  EXPECT_EQ(claim["metadata"]["labels"], Yaml("{tier: x, app: db}"));
  EXPECT_EQ(claim["spec"], Yaml("{resources: {requests: {storage: 1Gi}}}"));
  EXPECT_FALSE(claim["metadata"].Has("ownerReferences"));
  EXPECT_TRUE(
      HasEvent("SuccessfulCreate create Claim data-db-1 Pod db-1 in StatefulSet db success"));
  // The claim goes with the pod that goes for good.
  api_.Put(kPods, Pod(1).SetPath({"metadata", "finalizers"}, json::List({"test/slow"})));
  Change({"spec", "replicas"}, 1);
  EXPECT_EQ(Get(kClaims, "d", "data-db-1")["metadata"]["ownerReferences"].At(0)["uid"],
            Pod(1)["metadata"]["uid"]);
  EXPECT_FALSE(Get(kClaims, "d", "data-db-0")["metadata"].Has("ownerReferences"));
  // Unless it is wanted again.
  Change({"spec", "persistentVolumeClaimRetentionPolicy"},
         Yaml("{whenDeleted: Delete, whenScaled: Retain}"));
  EXPECT_EQ(Get(kClaims, "d", "data-db-0")["metadata"]["ownerReferences"].At(0)["uid"].AsString(),
            "s1");
}

TEST_F(StatefulSetTest, NumbersStartWhereTheyAreToldTo) {
  PutSet(2, "  ordinals: {start: 5}");
  AllReady();
  EXPECT_EQ(Pods(), "db-5* db-6*");
}

// Deleted with --cascade=orphan and made again: the history goes on.
TEST_F(StatefulSetTest, AdoptsItsHistory) {
  PutSet(2);
  AllReady();
  SetImage("v2");
  AllReady();
  ASSERT_EQ(All(kRevisions).size(), 2u);
  api_.Remove(kStatefulSets, "d", "db");
  for (const char* collection : {kRevisions, kPods}) {
    for (const json::Value& object : All(collection))
      api_.Put(collection, object.RemovePath({"metadata", "ownerReferences"}));
  }
  Settle();
  PutSet(2);
  AllReady();
  SetImage("v2");
  AllReady();
  ASSERT_EQ(All(kRevisions).size(), 2u);
  std::set<int64_t> numbers;
  for (const json::Value& revision : All(kRevisions)) {
    EXPECT_EQ(client::ControllerOf(revision)["uid"].AsString(), "s1");
    numbers.insert(revision["revision"].AsInt());
  }
  EXPECT_EQ(numbers, (std::set<int64_t>{3, 4}));
  EXPECT_EQ(Pods(), "db-0* db-1*");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// Deleted in the foreground: what the collector removed must not come back.
TEST_F(StatefulSetTest, ASetThatGoesMakesNoHistory) {
  PutSet(1);
  api_.Put(kStatefulSets,
           Get(kStatefulSets, "d", "db")
               .SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z")
               .SetPath({"metadata", "finalizers"}, json::List({"foregroundDeletion"})));
  Settle();
  api_.Remove(kRevisions, "d", NameOf(All(kRevisions)[0]));
  Settle();
  EXPECT_TRUE(All(kRevisions).empty());
}

TEST_F(StatefulSetTest, KeepsSoMuchHistory) {
  PutSet(1, "  revisionHistoryLimit: 1");
  AllReady();
  for (const char* image : {"v2", "v3", "v4"}) {
    SetImage(image);
    AllReady();
  }
  EXPECT_EQ(All(kRevisions).size(), 2u);  // the present one, and one
}

}  // namespace
}  // namespace muster::controllers
