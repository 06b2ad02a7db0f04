#include "controllers/persistentvolume/ephemeral_volume_controller.h"

#include "controllers/persistentvolume/storage_test_base.h"
#include "controllers/statefulset/statefulset_controller.h"

namespace muster::controllers {
namespace {

class EphemeralVolumeTest : public StorageTest {
 protected:
  void PutPod(const std::string& name, const std::string& phase = "Pending",
              const std::string& metadata = "") {
    Put(kPods, fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: {}, namespace: d{}}}
spec:
  volumes:
  - {{name: config, configMap: {{name: x}}}}
  - name: scratch
    ephemeral:
      volumeClaimTemplate:
        metadata: {{labels: {{a: b}}, annotations: {{k: v}}}}
        spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
status: {{phase: {}}}
)",
                           name, metadata, phase));
    Settle();
  }
};

TEST_F(EphemeralVolumeTest, APodGetsItsClaim) {
  Start(std::make_unique<EphemeralVolumeController>());
  PutPod("p");
  const json::Value claim = Claim("p-scratch");
  EXPECT_EQ(claim["spec"],
            Yaml("{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"));
  EXPECT_EQ(claim["metadata"]["labels"], Yaml("{a: b}"));
  EXPECT_EQ(claim["metadata"]["annotations"], Yaml("{k: v}"));
  EXPECT_EQ(claim["metadata"]["ownerReferences"],
            json::List({json::Obj({{"apiVersion", "v1"},
                                   {"kind", "Pod"},
                                   {"name", "p"},
                                   {"uid", Get(kPods, "d", "p")["metadata"]["uid"]},
                                   {"controller", true},
                                   {"blockOwnerDeletion", true}})}));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  // It is made again while the pod may need it.
  api_.Remove(kClaims, "d", "p-scratch");
  Settle();
  EXPECT_FALSE(Claim("p-scratch").IsNull());
}

TEST_F(EphemeralVolumeTest, PodsThatGoOrEndedGetNone) {
  Start(std::make_unique<EphemeralVolumeController>());
  PutPod("goes", "Running", ", deletionTimestamp: '2026-01-01T00:00:00Z'");
  PutPod("ended", "Succeeded");
  EXPECT_EQ(api_.Count(kClaims), 0u);
}

TEST_F(EphemeralVolumeTest, AClaimOfSomebodyElseIsNotTaken) {
  Start(std::make_unique<EphemeralVolumeController>());
  PutClaim("p-scratch", "5Gi");
  PutPod("p");
  EXPECT_TRUE(HasEvent(
      "FailedBinding ephemeral volume scratch: PVC d/p-scratch was not created for pod d/p (pod is "
      "not owner)"));
  EXPECT_FALSE(Claim("p-scratch")["metadata"].Has("ownerReferences"));
  api_.Remove(kClaims, "d", "p-scratch");
  Settle();
  EXPECT_TRUE(Claim("p-scratch")["metadata"].Has("ownerReferences"));
}

TEST_F(EphemeralVolumeTest, ItsClaimIsBoundLikeAnyOther) {
  PutVolume("v", "1Gi");
  StartAll();
  PutPod("p");
  ExpectBound("p-scratch", "v");
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

// -- A StatefulSet's claims with all controllers of storage.

class StatefulStorageTest : public StorageTest {
 protected:
  void PutSet(int replicas) {
    Put(kStatefulSets, fmt::format(R"(
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, namespace: d, uid: s1, generation: 1}}
spec:
  replicas: {}
  serviceName: db
  selector: {{matchLabels: {{app: db}}}}
  podManagementPolicy: Parallel
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{partition: 0}}}}
  persistentVolumeClaimRetentionPolicy: {{whenDeleted: Retain, whenScaled: Delete}}
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: local-path
      resources: {{requests: {{storage: 1Gi}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec: {{containers: [{{name: c, image: v1}}]}}
)",
                                   replicas));
    Settle();
  }
  // The scheduler and the agent.
  void RunPods() {
    for (const json::Value& pod : All(kPods)) {
      const std::string claim = "data-" + pod["metadata"]["name"].Str();
      if (!Claim(claim)["metadata"]["annotations"].Has("volume.kubernetes.io/selected-node"))
        SelectNode(claim, "n1");
      MakeReady(Get(kPods, "d", pod["metadata"]["name"].Str()).SetPath({"spec", "nodeName"}, "n1"));
    }
    Settle();
  }
};

TEST_F(StatefulStorageTest, EachReplicaHasItsVolumeAndFindsItAgain) {
  PutLocalClass();
  PutNode("n1");
  Add(std::make_unique<StatefulSetController>());
  StartAll();
  PutSet(2);
  RunPods();
  const std::string first = VolumeOf("data-db-0");
  const std::string second = VolumeOf("data-db-1");
  ExpectBound("data-db-0", first);
  ExpectBound("data-db-1", second);
  EXPECT_NE(first, second);
  // A pod that is made anew has the same claim.
  api_.Remove(kPods, "d", "db-0");
  Settle();
  EXPECT_EQ(Get(kPods, "d", "db-0")["spec"]["volumes"],
            Yaml("[{name: data, persistentVolumeClaim: {claimName: data-db-0}}]"));
  ExpectBound("data-db-0", first);
  RunPods();
  // Scaling down takes the claim with the pod: here the garbage collector's part is played.
  PutSet(1);
  EXPECT_EQ(Claim("data-db-1")["metadata"]["ownerReferences"].At(0)["kind"].Str(), "Pod");
  DeleteClaim("data-db-1");
  EXPECT_TRUE(Claim("data-db-1").IsNull());
  EXPECT_TRUE(IsGoing(Volume(second)));
  EXPECT_EQ(Volume(second)["metadata"]["finalizers"], Yaml("[muster.dev/local-path]"));
  // With the set itself claims stay.
  api_.Remove(kStatefulSets, "d", "db");
  Settle();
  ExpectBound("data-db-0", first);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

}  // namespace
}  // namespace muster::controllers
