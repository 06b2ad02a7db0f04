#include "controllers/persistentvolume/persistent_volume_controller.h"

#include <set>

#include "controllers/persistentvolume/storage_test_base.h"
#include "controllers/persistentvolume/volume_pass.h"

namespace muster::controllers {
namespace {

class PersistentVolumeTest : public StorageTest {
 protected:
  void ExpectFixpoint() { EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u); }
};

// -- Which volume.

TEST_F(PersistentVolumeTest, AClaimGetsTheSmallestVolumeThatSuits) {
  PutVolume("large", "10Gi");
  PutVolume("small", "2Gi");
  PutVolume("tiny", "1Gi");
  PutVolume("other-class", "2Gi", ", storageClassName: x");
  PutVolume("block", "2Gi", "");
  Change(kVolumes, Volume("block"), {"spec", "volumeMode"}, "Block");
  PutVolume("modes", "2Gi", "", "", "ReadOnlyMany");
  StartAll();
  EXPECT_EQ(PhaseOf(Volume("small")), "Available");
  PutClaim("c", "1500Mi", ", storageClassName: ''");
  Settle();
  ExpectBound("c", "small");
  EXPECT_TRUE(IsChosenByController(Claim("c")));
  EXPECT_TRUE(IsChosenByController(Volume("small")));
  EXPECT_EQ(Volume("small")["spec"]["claimRef"]["kind"].Str(), "PersistentVolumeClaim");
  for (const char* other : {"large", "tiny", "other-class", "block", "modes"})
    EXPECT_EQ(PhaseOf(Volume(other)), "Available") << other;
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, FewerAccessModesGoBeforeSize) {
  PutVolume("many", "1Gi", "", "", "ReadWriteOnce, ReadWriteMany");
  PutVolume("one", "5Gi");
  PutClaim("c", "1Gi", ", storageClassName: ''");
  StartAll();
  ExpectBound("c", "one");
  PutClaim("shared", "1Gi", ", storageClassName: ''", "", "ReadWriteMany");
  Settle();
  ExpectBound("shared", "many");
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, ASelectorChoosesByLabels) {
  PutVolume("a", "1Gi");
  PutVolume("b", "5Gi", "", ", labels: {disk: fast}");
  PutClaim("c", "1Gi", ", storageClassName: '', selector: {matchLabels: {disk: fast}}");
  StartAll();
  ExpectBound("c", "b");
  PutClaim("d", "1Gi", ", storageClassName: '', selector: {matchLabels: {disk: fast}}");
  Settle();
  EXPECT_EQ(PhaseOf(Claim("d")), "Pending");
  Change(kVolumes, Volume("a"), {"metadata", "labels"}, json::Obj({{"disk", "fast"}}));
  ExpectBound("d", "a");
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, OfManyClaimsEachGetsAVolumeOfItsOwn) {
  for (int i = 0; i < 20; ++i) PutVolume(fmt::format("v{}", i), "1Gi");
  for (int i = 0; i < 20; ++i) PutClaim(fmt::format("c{}", i), "1Gi", ", storageClassName: ''");
  // No other controller's pass comes in between, so that the cache is behind.
  Start(std::make_unique<PersistentVolumeController>());
  loop_.RunFor(minutes(1));
  std::set<std::string> volumes;
  for (int i = 0; i < 20; ++i) {
    const std::string claim = fmt::format("c{}", i);
    ExpectBound(claim, VolumeOf(claim));
    volumes.insert(VolumeOf(claim));
  }
  EXPECT_EQ(volumes.size(), 20u);
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, AClaimWaitsForAVolume) {
  PutClaim("c", "1Gi", ", storageClassName: ''");
  StartAll();
  EXPECT_EQ(PhaseOf(Claim("c")), "Pending");
  EXPECT_TRUE(HasEvent(
      "FailedBinding no persistent volumes available for this claim and no storage class is set"));
  PutVolume("v", "1Gi");
  Settle();
  ExpectBound("c", "v");
  ExpectFixpoint();
}

// -- One side names the other.

TEST_F(PersistentVolumeTest, AVolumeKeptForAClaimIsItsAlone) {
  PutVolume("v", "9Gi", ", claimRef: {namespace: d, name: mine}");
  StartAll();
  EXPECT_EQ(PhaseOf(Volume("v")), "Available");
  PutClaim("other", "1Gi", ", storageClassName: ''");
  PutVolume("small", "1Gi");
  Settle();
  ExpectBound("other", "small");
  PutClaim("mine", "1Gi", ", storageClassName: ''");
  Settle();
  ExpectBound("mine", "v");
  EXPECT_FALSE(IsChosenByController(Volume("v")));
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, AClaimMayNameItsVolume) {
  PutVolume("v", "2Gi");
  PutVolume("smaller", "1Gi");
  PutClaim("c", "1Gi", ", storageClassName: '', volumeName: v");
  StartAll();
  ExpectBound("c", "v");
  EXPECT_FALSE(IsChosenByController(Claim("c")));
  EXPECT_TRUE(IsChosenByController(Volume("v")));
  PutClaim("late", "1Gi", ", storageClassName: '', volumeName: v");
  PutClaim("absent", "1Gi", ", storageClassName: '', volumeName: w");
  Settle();
  EXPECT_EQ(PhaseOf(Claim("late")), "Pending");
  EXPECT_TRUE(HasEvent("FailedBinding volume \"v\" already bound to a different claim."));
  EXPECT_EQ(PhaseOf(Claim("absent")), "Pending");
  PutVolume("w", "1Gi");
  Settle();
  ExpectBound("absent", "w");
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, ANamedVolumeMustSuit) {
  struct Row {
    const char* volume;
    const char* modes;
    const char* spec;
    const char* why;
  };
  const Row rows[] = {
      {"1Gi", "ReadWriteOnce", "", "requested PV is too small"},
      {"2Gi", "ReadWriteOnce", ", storageClassName: x", "storageClassName does not match"},
      {"2Gi", "ReadOnlyMany", "", "incompatible accessMode"},
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    const std::string name = fmt::format("v{}", i);
    PutVolume(name, rows[i].volume, rows[i].spec, "", rows[i].modes);
    PutClaim("c" + name, "2Gi", ", storageClassName: '', volumeName: " + name);
  }
  StartAll();
  for (size_t i = 0; i < std::size(rows); ++i) {
    EXPECT_EQ(PhaseOf(Claim(fmt::format("cv{}", i))), "Pending");
    EXPECT_TRUE(HasEvent(
        fmt::format("VolumeMismatch Cannot bind to requested volume \"v{}\": {}", i, rows[i].why)));
  }
  ExpectFixpoint();
}

// -- Classes.

TEST_F(PersistentVolumeTest, ALocalVolumeIsMadeOnTheSelectedNode) {
  PutLocalClass();
  PutNode("n1", ", annotations: {muster.dev/local-volumes: /data/volumes}");
  PutClaim("c", "3Gi", ", storageClassName: local-path");
  StartAll();
  EXPECT_TRUE(
      HasEvent("WaitForFirstConsumer waiting for first consumer to be created before binding"));
  EXPECT_EQ(api_.Count(kVolumes), 0u);
  SelectNode("c", "n1");
  const std::string name = "pvc-" + Claim("c")["metadata"]["uid"].Str();
  ExpectBound("c", name);
  const json::Value volume = Volume(name);
  EXPECT_EQ(volume["spec"].Remove("claimRef"), Yaml(fmt::format(R"(
capacity: {{storage: 3Gi}}
accessModes: [ReadWriteOnce]
persistentVolumeReclaimPolicy: Delete
storageClassName: local-path
volumeMode: Filesystem
local: {{path: "/data/volumes/{}_d_c"}}
nodeAffinity:
  required:
    nodeSelectorTerms:
    - matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [host-n1]}}]
)",
                                                                name)));
  EXPECT_EQ(volume["metadata"]["finalizers"],
            Yaml("[kubernetes.io/pv-protection, muster.dev/local-path]"));
  EXPECT_EQ(volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"].Str(),
            "muster.dev/local-path");
  EXPECT_TRUE(HasEvent(fmt::format(
      "ProvisioningSucceeded Successfully provisioned volume {} using muster.dev/local-path",
      name)));
  EXPECT_EQ(Claim("c")["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"].Str(),
            "muster.dev/local-path");
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, ANodeThatSaysNothingHasTheUsualDirectory) {
  PutLocalClass();
  PutNode("n1");
  PutClaim(std::string(250, 'c'), "1Gi", ", storageClassName: local-path");
  PutClaim("c", "1Gi", ", storageClassName: local-path");
  StartAll();
  for (const std::string& name : {std::string("c"), std::string(250, 'c')}) SelectNode(name, "n1");
  const auto path = [this](const std::string& claim) {
    return Volume(VolumeOf(claim))["spec"]["local"]["path"].Str();
  };
  EXPECT_EQ(path("c"), fmt::format("/var/lib/muster/volumes/{}_d_c", VolumeOf("c")));
  // No file has so long a name.
  const std::string longest(250, 'c');
  EXPECT_EQ(path(longest), "/var/lib/muster/volumes/" + VolumeOf(longest));
}

TEST_F(PersistentVolumeTest, TheSchedulerGetsTheClaimBackWhenItsNodeIsGone) {
  PutLocalClass();
  PutClaim("c", "1Gi", ", storageClassName: local-path");
  StartAll();
  SelectNode("c", "n9");
  EXPECT_TRUE(HasEvent("ProvisioningFailed failed to get target node: nodes \"n9\" not found"));
  EXPECT_FALSE(Claim("c")["metadata"]["annotations"].Has("volume.kubernetes.io/selected-node"));
  EXPECT_EQ(api_.Count(kVolumes), 0u);
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, WhatTheProvisionerCannotDoIsSaid) {
  PutLocalClass();
  PutClass("at-once", "muster.dev/local-path");
  PutClass("options", "muster.dev/local-path", "Immediate", ", mountOptions: [ro, sync]");
  PutClass("none", "kubernetes.io/no-provisioner");
  PutNode("n1");
  const std::string selected = ", annotations: {volume.kubernetes.io/selected-node: n1}";
  PutClaim("now", "1Gi", ", storageClassName: at-once");
  PutClaim("options", "1Gi", ", storageClassName: options", selected);
  PutClaim("labels", "1Gi", ", storageClassName: local-path, selector: {}", selected);
  PutClaim("copy", "1Gi", ", storageClassName: local-path, dataSource: {kind: X, name: y}",
           selected);
  PutClaim("absent", "1Gi", ", storageClassName: nowhere");
  PutClaim("static", "1Gi", ", storageClassName: none");
  PutClaim("block", "1Gi", ", storageClassName: local-path", selected);
  Change(kClaims, Claim("block"), {"spec", "volumeMode"}, "Block");
  StartAll();
  for (const char* why :
       {"muster.dev/local-path makes a directory on the node of the claim's first pod, and "
        "StorageClass \"at-once\" does not wait for it: claim of a class with volumeBindingMode "
        "WaitForFirstConsumer, such as local-path",
        "Mount options are not supported by the provisioner but StorageClass \"options\" has mount "
        "options [ro sync]",
        "claim.Spec.Selector is not supported for dynamic provisioning",
        "plugin \"muster.dev/local-path\" is not a CSI plugin. Only CSI plugin can provision a "
        "claim with a datasource",
        "storageclass.storage.k8s.io \"nowhere\" not found",
        "no volume plugin matched name: kubernetes.io/no-provisioner",
        "muster.dev/local-path does not support block volume provisioning"}) {
    EXPECT_TRUE(HasEvent(fmt::format("ProvisioningFailed {}", why))) << why;
  }
  EXPECT_EQ(api_.Count(kVolumes), 0u);
  PutClass("nowhere", "muster.dev/local-path", "WaitForFirstConsumer");
  SelectNode("absent", "n1");
  EXPECT_EQ(PhaseOf(Claim("absent")), "Bound");
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, OthersMakeTheVolumesOfTheirClasses) {
  PutClass("csi", "csi.example.com");
  PutClaim("c", "1Gi", ", storageClassName: csi");
  StartAll();
  const json::Value annotations = Claim("c")["metadata"]["annotations"];
  EXPECT_EQ(annotations["volume.kubernetes.io/storage-provisioner"].Str(), "csi.example.com");
  EXPECT_EQ(annotations["volume.beta.kubernetes.io/storage-provisioner"].Str(), "csi.example.com");
  EXPECT_TRUE(HasEvent(
      "ExternalProvisioning Waiting for a volume to be created either by the external provisioner "
      "'csi.example.com' or manually by the system administrator. If volume creation is delayed, "
      "please verify that the provisioner is running and correctly registered."));
  PutVolume("made", "1Gi",
            fmt::format(", storageClassName: csi, persistentVolumeReclaimPolicy: Delete, claimRef: "
                        "{{namespace: d, name: c, uid: {}}}",
                        Claim("c")["metadata"]["uid"].AsString()),
            ", annotations: {pv.kubernetes.io/provisioned-by: csi.example.com}");
  Settle();
  ExpectBound("c", "made");
  DeleteClaim("c");
  EXPECT_EQ(PhaseOf(Volume("made")), "Released");
  EXPECT_FALSE(IsGoing(Volume("made")));
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, AClaimWithoutAClassGetsTheDefaultWhenThereIsOne) {
  PutNode("n1");
  PutClaim("none", "1Gi", ", storageClassName: ''");
  PutClaim("c", "1Gi");
  StartAll();
  EXPECT_EQ(PhaseOf(Claim("c")), "Pending");
  PutLocalClass();
  Settle();
  EXPECT_FALSE(Claim("c")["spec"].Has("storageClassName"));
  Change(kStorageClasses, Get(kStorageClasses, "", "local-path"),
         {"metadata", "annotations", "storageclass.kubernetes.io/is-default-class"}, "true");
  EXPECT_EQ(Claim("c")["spec"]["storageClassName"].Str(), "local-path");
  EXPECT_EQ(Claim("none")["spec"]["storageClassName"].Str(), "");
  EXPECT_TRUE(
      HasEvent("WaitForFirstConsumer waiting for first consumer to be created before binding"));
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, AClaimSaysWhichPodsAreToBeScheduledFirst) {
  PutLocalClass();
  PutNode("n1", ", annotations: {muster.dev/local-volumes: /data/volumes}");
  PutClaim("c", "3Gi", ", storageClassName: local-path");
  const auto put_pod = [&](const std::string& name, const std::string& more = "") {
    Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {0}, namespace: d, uid: "
                           "{0}}}, spec: {{volumes: [{{name: v, persistentVolumeClaim: "
                           "{{claimName: c}}}}]}}{1}}}",
                           name, more));
    Settle();
  };
  StartAll();
  put_pod("done", ", status: {phase: Succeeded}");
  EXPECT_FALSE(HasEvent("WaitForPodScheduled waiting for pod done to be scheduled"));
  put_pod("a");
  EXPECT_TRUE(HasEvent("WaitForPodScheduled waiting for pod a to be scheduled"));
  put_pod("b");
  EXPECT_TRUE(HasEvent("WaitForPodScheduled waiting for pods a,b to be scheduled"));
  ExpectFixpoint();
  for (char name = 'd'; name < 'o'; ++name) put_pod(std::string(1, name));
  EXPECT_TRUE(
      HasEvent("WaitForPodScheduled waiting for pods a,b,d,e,f,g,h,i,j,k,... to be scheduled"));
  SelectNode("c", "n1");
  ExpectBound("c", "pvc-" + Claim("c")["metadata"]["uid"].Str());
  const size_t told = Events().size();
  put_pod("late");
  EXPECT_EQ(Events().size(), told) << "one that has its volume waits for nobody";
  ExpectFixpoint();
}

// -- The scheduler chose a volume that exists.

TEST_F(PersistentVolumeTest, OfClassesThatWaitOnlyTheSchedulerGivesAwayVolumes) {
  PutClass("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
  PutVolume("v", "1Gi", ", storageClassName: static");
  PutClaim("c", "1Gi", ", storageClassName: static");
  StartAll();
  EXPECT_EQ(PhaseOf(Claim("c")), "Pending");
  EXPECT_EQ(PhaseOf(Volume("v")), "Available");
  const json::Value reference = Yaml(
      fmt::format("{{apiVersion: v1, kind: PersistentVolumeClaim, namespace: d, name: c, uid: {}}}",
                  Claim("c")["metadata"]["uid"].AsString()));
  Change(kVolumes, Volume("v"), {"spec", "claimRef"}, reference);
  ExpectBound("c", "v");
  ExpectFixpoint();
}

// -- The end.

TEST_F(PersistentVolumeTest, ARetainedVolumeIsReleasedAndStays) {
  PutVolume("v", "1Gi", ", persistentVolumeReclaimPolicy: Retain");
  PutClaim("c", "1Gi", ", storageClassName: ''");
  StartAll();
  DeleteClaim("c");
  EXPECT_TRUE(Claim("c").IsNull());
  EXPECT_EQ(PhaseOf(Volume("v")), "Released");
  // Another claim of that name is another claim.
  PutClaim("c", "1Gi", ", storageClassName: ''");
  Settle();
  EXPECT_EQ(PhaseOf(Claim("c")), "Pending");
  EXPECT_EQ(PhaseOf(Volume("v")), "Released");
  // Until somebody says that it may be had again.
  Change(kVolumes, Volume("v"), {"spec", "claimRef"}, json::Value());
  ExpectBound("c", "v");
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, ALocalVolumeGoesWithItsClaimOnceTheDirectoryIsGone) {
  PutLocalClass();
  PutNode("n1");
  PutClaim("c", "1Gi", ", storageClassName: local-path");
  StartAll();
  SelectNode("c", "n1");
  const std::string name = VolumeOf("c");
  DeleteClaim("c");
  EXPECT_TRUE(IsGoing(Volume(name)));
  EXPECT_EQ(Volume(name)["metadata"]["finalizers"], Yaml("[muster.dev/local-path]"));
  loop_.RunFor(2 * kVolumeNodeQuarantine);
  EXPECT_FALSE(Volume(name).IsNull()) << "its agent removes the directory first";
  ExpectFixpoint();
  // The node is no more: nobody will.
  api_.Remove(kNodes, "", "n1");
  Settle();
  EXPECT_TRUE(Volume(name).IsNull());
}

TEST_F(PersistentVolumeTest, ANodeThatComesBackInTimeRemovesTheDirectory) {
  PutLocalClass();
  PutNode("n1");
  PutClaim("c", "1Gi", ", storageClassName: local-path");
  StartAll();
  SelectNode("c", "n1");
  const std::string name = VolumeOf("c");
  api_.Remove(kNodes, "", "n1");
  DeleteClaim("c");
  loop_.RunFor(kVolumeNodeQuarantine - seconds(10));
  EXPECT_FALSE(Volume(name).IsNull());
  PutNode("n1");
  loop_.RunFor(2 * kVolumeNodeQuarantine);
  EXPECT_FALSE(Volume(name).IsNull());
}

// Its node comes back, and the claim's pod goes on with it: then somebody is to remove the
// directory after all.
TEST_F(PersistentVolumeTest, AVolumeThatAClaimHoldsWaitsForItsNode) {
  PutLocalClass();
  PutNode("n1");
  PutClaim("c", "1Gi", ", storageClassName: local-path");
  StartAll();
  SelectNode("c", "n1");
  const std::string name = VolumeOf("c");
  DeleteVolume(name);
  api_.Remove(kNodes, "", "n1");
  loop_.RunFor(2 * kVolumeNodeQuarantine);
  EXPECT_EQ(Volume(name)["metadata"]["finalizers"],
            Yaml("[kubernetes.io/pv-protection, muster.dev/local-path]"));
  PutNode("n1");
  DeleteClaim("c");
  loop_.RunFor(2 * kVolumeNodeQuarantine);
  EXPECT_EQ(Volume(name)["metadata"]["finalizers"], Yaml("[muster.dev/local-path]"));
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, ANodeHasItsTimeFromTheMomentAtWhichTheClaimLetGo) {
  PutLocalClass();
  PutNode("n1");
  PutClaim("c", "1Gi", ", storageClassName: local-path");
  StartAll();
  SelectNode("c", "n1");
  const std::string name = VolumeOf("c");
  DeleteVolume(name);
  loop_.RunFor(2 * kVolumeNodeQuarantine);
  api_.Remove(kNodes, "", "n1");
  // The API server says so when the phase changes.
  Change(kVolumes, Volume(name), {"status", "lastPhaseTransitionTime"}, FormatTime(loop_.Now()));
  DeleteClaim("c");
  loop_.RunFor(kVolumeNodeQuarantine - seconds(10));
  EXPECT_EQ(Volume(name)["metadata"]["finalizers"], Yaml("[muster.dev/local-path]"));
  loop_.RunFor(seconds(20));
  EXPECT_TRUE(Volume(name).IsNull()) << "nobody else will remove the directory";
}

// Whoever wants to keep the bytes says Retain before he deletes.
TEST_F(PersistentVolumeTest, AVolumeThatIsToBeRetainedLosesTheFinalizer) {
  PutLocalClass();
  PutNode("n1");
  PutClaim("c", "1Gi", ", storageClassName: local-path");
  StartAll();
  SelectNode("c", "n1");
  const std::string name = VolumeOf("c");
  Change(kVolumes, Volume(name), {"spec", "persistentVolumeReclaimPolicy"}, "Retain");
  EXPECT_EQ(Volume(name)["metadata"]["finalizers"], Yaml("[kubernetes.io/pv-protection]"));
  Change(kVolumes, Volume(name), {"spec", "persistentVolumeReclaimPolicy"}, "Delete");
  EXPECT_EQ(Volume(name)["metadata"]["finalizers"],
            Yaml("[kubernetes.io/pv-protection, muster.dev/local-path]"));
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, WhatNobodyCanDeleteFails) {
  PutVolume("v", "1Gi", ", persistentVolumeReclaimPolicy: Delete");
  PutVolume("w", "2Gi", ", persistentVolumeReclaimPolicy: Recycle");
  PutClaim("c", "1Gi", ", storageClassName: ''");
  PutClaim("d", "2Gi", ", storageClassName: ''");
  StartAll();
  ExpectBound("c", "v");
  ExpectBound("d", "w");
  DeleteClaim("c");
  DeleteClaim("d");
  constexpr char kWhy[] =
      "error getting deleter volume plugin for volume \"v\": no deletable volume plugin matched";
  EXPECT_EQ(PhaseOf(Volume("v")), "Failed");
  EXPECT_EQ(Volume("v")["status"]["message"].AsString(), kWhy);
  EXPECT_TRUE(HasEvent(fmt::format("VolumeFailedDelete {}", kWhy)));
  EXPECT_EQ(PhaseOf(Volume("w")), "Failed");
  EXPECT_TRUE(HasEvent("VolumeFailedRecycle No recycler plugin found for the volume!"));
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, ABoundClaimWithoutItsVolumeIsLost) {
  PutVolume("v", "1Gi");
  PutClaim("c", "1Gi", ", storageClassName: ''");
  StartAll();
  api_.Remove(kVolumes, "", "v");
  Settle();
  EXPECT_EQ(PhaseOf(Claim("c")), "Lost");
  EXPECT_FALSE(Claim("c")["status"].Has("capacity"));
  EXPECT_TRUE(
      HasEvent("ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!"));
  ExpectFixpoint();
}

TEST_F(PersistentVolumeTest, TwoClaimsOfOneVolume) {
  PutVolume("v", "1Gi");
  PutClaim("c", "1Gi", ", storageClassName: ''");
  PutClaim("thief", "1Gi", ", storageClassName: '', volumeName: v",
           ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}");
  Change(kVolumes, Volume("v"), {"spec", "claimRef"},
         Yaml(fmt::format("{{namespace: d, name: c, uid: {}}}",
                          Claim("c")["metadata"]["uid"].AsString())));
  StartAll();
  ExpectBound("c", "v");
  EXPECT_EQ(PhaseOf(Claim("thief")), "Lost");
  EXPECT_TRUE(HasEvent(
      "ClaimMisbound Two claims are bound to the same volume, this one is bound incorrectly"));
  ExpectFixpoint();
}

// Its claim took another volume meanwhile.
TEST_F(PersistentVolumeTest, AVolumeWhoseClaimWentElsewhereIsFreeAgain) {
  PutVolume("v", "1Gi");
  PutVolume("w", "5Gi", ", claimRef: {namespace: d, name: c}");
  PutClaim("c", "1Gi", ", storageClassName: '', volumeName: v");
  StartAll();
  ExpectBound("c", "v");
  const json::Value uid = Claim("c")["metadata"]["uid"];
  Change(kVolumes, Volume("w"), {"spec", "claimRef", "uid"}, uid);
  EXPECT_EQ(PhaseOf(Volume("w")), "Available");
  EXPECT_EQ(Volume("w")["spec"]["claimRef"], Yaml("{namespace: d, name: c}"));
  Change(kVolumes,
         Volume("w").SetPath({"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"},
                             "yes"),
         {"spec", "claimRef", "uid"}, uid);
  EXPECT_FALSE(Volume("w")["spec"].Has("claimRef"));
  EXPECT_EQ(PhaseOf(Volume("w")), "Available");
  ExpectFixpoint();
}

// The two come by different watches.
TEST_F(PersistentVolumeTest, NothingIsReleasedOnTheWordOfTheCache) {
  std::vector<std::string> asked;
  api_.before_handle = [&](const net::Request& request, const net::ResponseWriterPtr& writer) {
    if (request.target != "/api/v1/namespaces/d/persistentvolumeclaims/late") return true;
    asked.push_back(request.method);
    writer->Send({200, {}, R"({"kind":"PersistentVolumeClaim","metadata":{"uid":"u1"}})"});
    return false;
  };
  PutVolume(
      "v", "1Gi",
      ", persistentVolumeReclaimPolicy: Delete, claimRef: {namespace: d, name: late, uid: u1}",
      ", annotations: {pv.kubernetes.io/provisioned-by: muster.dev/local-path}");
  StartAll();
  EXPECT_EQ(asked, std::vector<std::string>{"GET"});
  EXPECT_EQ(PhaseOf(Volume("v")), "Pending");
  EXPECT_FALSE(IsGoing(Volume("v")));
}

}  // namespace
}  // namespace muster::controllers
