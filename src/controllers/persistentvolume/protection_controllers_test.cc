#include "controllers/persistentvolume/protection_controllers.h"

#include "controllers/persistentvolume/storage_test_base.h"

namespace muster::controllers {
namespace {

class ProtectionTest : public StorageTest {
 protected:
  void StartProtection() {
    Add(std::make_unique<ClaimProtectionController>());
    Start(std::make_unique<VolumeProtectionController>());
  }
  void PutUser(const std::string& name, const std::string& node, const std::string& phase,
               const std::string& claim = "c") {
    Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: d}}, "
                           "spec: {{nodeName: '{}', volumes: [{{name: v, persistentVolumeClaim: "
                           "{{claimName: {}}}}}]}}, status: {{phase: {}}}}}",
                           name, node, claim, phase));
    Settle();
  }
  bool IsThere(const std::string& claim) { return !Claim(claim).IsNull(); }
};

TEST_F(ProtectionTest, AClaimStaysWhilePodsAreThatUseIt) {
  PutClaim("c", "1Gi");
  StartProtection();
  PutUser("runs", "n1", "Running");
  PutUser("ended", "n1", "Succeeded");
  PutUser("waits", "", "Pending");
  PutUser("else", "n1", "Running", "other");
  DeleteClaim("c");
  EXPECT_TRUE(IsThere("c"));
  api_.Remove(kPods, "d", "runs");
  Settle();
  EXPECT_TRUE(IsThere("c")) << "as upstream, a pod uses it until it is gone";
  api_.Remove(kPods, "d", "ended");
  Settle();
  EXPECT_FALSE(IsThere("c"));
}

TEST_F(ProtectionTest, AClaimThatNobodyUsesGoes) {
  PutClaim("c", "1Gi");
  StartProtection();
  PutUser("waits", "", "Pending");
  DeleteClaim("c");
  EXPECT_FALSE(IsThere("c"));
}

// News of it come later than those of the claim's end.
TEST_F(ProtectionTest, APodThatWasBoundBeforeIsWaitedFor) {
  PutClaim("c", "1Gi");
  StartProtection();
  PutUser("waits", "", "Pending");
  client_.Delete({client::resources::kPersistentVolumeClaims, "d", "c", ""}, {},
                 [](Result<json::Value>) {});
  loop_.RunFor(milliseconds(1));
  EXPECT_TRUE(IsThere("c"));
  PutUser("waits", "n1", "Running");
  EXPECT_TRUE(IsThere("c"));
}

TEST_F(ProtectionTest, AnEphemeralClaimIsHeldUntilItsPodIsShutDown) {
  const auto put_pod = [this](const std::string& more) {
    Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: d, uid: u1"
                           "{}}}, spec: {{nodeName: n1, volumes: [{{name: v, ephemeral: "
                           "{{volumeClaimTemplate: {{metadata: {{name: x}}}}}}}}]}}}}",
                           more));
    Settle();
  };
  const auto put_claim = [this](const std::string& name, const std::string& uid) {
    PutClaim(name, "1Gi", "",
             fmt::format(", ownerReferences: [{{apiVersion: v1, kind: Pod, name: p, uid: {}, "
                         "controller: true}}]",
                         uid));
  };
  put_claim("p-v", "u1");
  StartProtection();
  put_pod("");
  DeleteClaim("p-v");
  EXPECT_TRUE(IsThere("p-v"));
  put_pod(", deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30");
  EXPECT_TRUE(IsThere("p-v"));
  put_pod(", deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0");
  EXPECT_FALSE(IsThere("p-v"));
  // One that another pod of the name had.
  put_claim("p-v", "u0");
  put_pod("");
  DeleteClaim("p-v");
  EXPECT_FALSE(IsThere("p-v"));
}

TEST_F(ProtectionTest, AVolumeStaysWhileItIsBound) {
  PutVolume("v", "1Gi");
  Change(kVolumes, Volume("v"), {"status", "phase"}, "Bound");
  StartProtection();
  DeleteVolume("v");
  EXPECT_TRUE(IsGoing(Volume("v")));
  Change(kVolumes, Volume("v"), {"status", "phase"}, "Released");
  EXPECT_TRUE(Volume("v").IsNull());
}

TEST_F(ProtectionTest, WhatIsOlderIsProtectedToo) {
  PutClaim("c", "1Gi");
  Change(kClaims, Claim("c"), {"metadata", "finalizers"}, Yaml("[a.example/x]"));
  PutVolume("v", "1Gi");
  Change(kVolumes, Volume("v"), {"metadata", "finalizers"}, json::Value());
  StartProtection();
  EXPECT_EQ(Claim("c")["metadata"]["finalizers"],
            Yaml("[a.example/x, kubernetes.io/pvc-protection]"));
  EXPECT_EQ(Volume("v")["metadata"]["finalizers"], Yaml("[kubernetes.io/pv-protection]"));
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
  DeleteClaim("c");
  EXPECT_EQ(Claim("c")["metadata"]["finalizers"], Yaml("[a.example/x]"));
}

}  // namespace
}  // namespace muster::controllers
