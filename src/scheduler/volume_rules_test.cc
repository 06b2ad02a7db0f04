// Each rule about claims and volumes with kube-scheduler's exact text, what we add to it, and which
// volume is chosen.

#include "scheduler/volume_rules.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"
#include "scheduler/volume_test_support.h"

namespace muster::scheduler {
namespace {

class VolumeRulesTest : public testing::Test {
 protected:
  VolumeRulesTest() {
    cluster.AddNodes(3, {{"cpu", 8000}});
    cluster.cache.KeepStorage();
    Add(MakeClass("local", kNoProvisioner, true));
    Add(MakeClass("cloud", "csi.example.com", true));
    Add(MakeClass("now", "csi.example.com", false));
  }

  void Add(const json::Value& object) {
    if (object.Has("provisioner")) {
      cluster.cache.UpsertStorageClass(cluster::ToStorageClassInfo(object));
    } else if (object["spec"].Has("capacity")) {
      cluster.cache.UpsertVolume(cluster::ToVolumeInfo(object));
    } else {
      cluster.cache.UpsertClaim(cluster::ToClaimInfo(object));
    }
  }

  cluster::PodInfo MakePod(const std::string& name, const std::vector<std::string>& claims) {
    cluster::PodInfo pod = cluster.MakePod(name, {{"cpu", 100}});
    for (const std::string& claim : claims)
      pod.constraints.claims.push_back({{"default", claim}, "", ""});
    return pod;
  }
  void AddPod(const std::string& name, const std::vector<std::string>& claims) {
    cluster.AddPod(MakePod(name, claims));
  }
  void SetZone(const std::string& node, const std::string& label, const std::string& zone) {
    cluster::NodeInfo info = cluster.cache.snapshot().Node(cluster.cache.FindNode(node));
    info.labels[label] = zone;
    cluster.cache.UpsertNode(info);
  }
  // The message of a pod with this claim alone, which fits nowhere.
  std::string MessageFor(const std::string& claim) {
    AddPod("p", {claim});
    EXPECT_EQ(cluster.Plan(), 0u);
    const std::string message = cluster.Message("p");
    cluster.Remove("p");
    return message;
  }
  std::string VolumeOf(const std::string& pod) {
    const auto& choices = cluster.cache.AssumedVolumes({"default", pod});
    return choices.empty() ? "none" : choices[0].volume;
  }

  TestCluster cluster;
};

// -- What keeps a pod from every node.

TEST_F(VolumeRulesTest, AMissingClaim) {
  EXPECT_EQ(MessageFor("data"),
            "0/3 nodes are available: persistentvolumeclaim \"data\" not found. Storage: it waits "
            "for somebody to create PersistentVolumeClaim default/data.");
}

TEST_F(VolumeRulesTest, NothingIsSaidOfAmountsWhileAClaimIsMissing) {
  cluster::PodInfo pod = MakePod("p", {"data"});
  cluster::AddTo(pod.constraints.requests, {{"cpu", 100'000}});
  cluster.AddPod(pod);
  cluster.Plan();
  EXPECT_TRUE(cluster.WhyNot("p").resource.empty());
  EXPECT_EQ(cluster.WhyNot("p").failed_by_rule,
            (std::vector<RuleCount>{{"persistentvolumeclaim \"data\" not found", 3}}));
}

TEST_F(VolumeRulesTest, AClaimThatIsBeingDeleted) {
  Add(MakeClaim("data", "local", "", ", deletionTimestamp: '2026-01-01T00:00:00Z'"));
  EXPECT_EQ(MessageFor("data"),
            "0/3 nodes are available: persistentvolumeclaim \"data\" is being deleted. Storage: "
            "PersistentVolumeClaim default/data must be gone and be created again.");
}

TEST_F(VolumeRulesTest, ALostClaim) {
  Add(MakeBoundClaim("data", "local", "v").Set("status", json::Obj({{"phase", "Lost"}})));
  EXPECT_EQ(MessageFor("data"),
            "0/3 nodes are available: persistentvolumeclaim \"data\" bound to non-existent "
            "persistentvolume \"v\". Storage: PersistentVolume v is gone: PersistentVolumeClaim "
            "default/data must be created again.");
}

TEST_F(VolumeRulesTest, AnUnboundClaimThatWaitsForNoPod) {
  const std::string unbound =
      "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. Storage: "
      "PersistentVolumeClaim default/data is not bound: ";
  Add(MakeClaim("data", "now"));
  EXPECT_EQ(MessageFor("data"),
            unbound + "it waits for csi.example.com, the provisioner of its StorageClass now.");
  Add(MakeClaim("data", ""));
  EXPECT_EQ(MessageFor("data"), unbound +
                                    "it names no StorageClass, so it waits for somebody to create "
                                    "a PersistentVolume of 5Gi.");
  Add(MakeClaim("data", "fast"));
  EXPECT_EQ(MessageFor("data"), unbound +
                                    "its StorageClass fast does not exist, so it waits for "
                                    "somebody to create a PersistentVolume of 5Gi.");
  // A user chose the volume; nobody made the two agree yet.
  Add(MakeClaim("data", "local", ", volumeName: v"));
  EXPECT_EQ(MessageFor("data"), unbound + "it waits for PersistentVolume v, which does not exist.");
}

TEST_F(VolumeRulesTest, AnEphemeralVolumeHasAClaimOfItsPod) {
  const auto add = [&](const std::string& name) {
    cluster::PodInfo pod = cluster.MakePod(name, {{"cpu", 100}});
    pod.constraints.claims = cluster::ToClaimUses(Yaml(
        "{metadata: {namespace: default, name: " + name + ", uid: uid-" + name +
        "}, spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}]}}"));
    cluster.AddPod(pod);
  };
  add("p");
  cluster.Plan();
  EXPECT_EQ(NodesAvailableText(cluster.WhyNot("p")),
            "0/3 nodes are available: waiting for ephemeral volume controller to create the "
            "persistentvolumeclaim \"p-scratch\".");
  Add(MakeClaim("p-scratch", "cloud"));
  cluster.Plan();
  EXPECT_EQ(NodesAvailableText(cluster.WhyNot("p")),
            "0/3 nodes are available: PVC default/p-scratch was not created for pod default/p (pod "
            "is not owner).");
  Add(MakeClaim("p-scratch", "cloud", "",
                ", ownerReferences: [{kind: Pod, name: p, uid: uid-p, controller: true}]"));
  EXPECT_EQ(cluster.Plan(), 1u);
}

// -- What keeps a pod from some nodes.

TEST_F(VolumeRulesTest, TheVolumeIsNotReachedFromTheNode) {
  Add(MakeBoundClaim("data", "local", "v"));
  Add(MakeVolume("v", "local", "5Gi", OnlyOnHost("n1")));
  AddPod("fits", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(cluster.NodeOf("fits"), "n1");
  Add(MakeVolume("v", "local", "5Gi", OnlyOnHost("gone")));
  EXPECT_EQ(MessageFor("data"),
            "0/3 nodes are available: 3 node(s) had volume node affinity conflict. Storage: "
            "PersistentVolume v of PersistentVolumeClaim default/data can be used on none of the 3 "
            "nodes.");
}

TEST_F(VolumeRulesTest, SaysWhereTheVolumeCouldBeUsed) {
  Add(MakeBoundClaim("data", "local", "v"));
  Add(MakeVolume("v", "local", "5Gi", OnlyOnHost("n1")));
  cluster.AddRunning("full", "n1", 0, {{"cpu", 8000}});
  EXPECT_EQ(MessageFor("data"),
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had volume node affinity "
            "conflict. Waits for 100m cpu: 16 of 24 free (8 held by pod default/full), at most 8 "
            "on one node; fits when pod default/full ends. Storage: PersistentVolume v of "
            "PersistentVolumeClaim default/data can be used only on n1 of 3 nodes.");
}

TEST_F(VolumeRulesTest, TheVolumeIsGone) {
  Add(MakeBoundClaim("data", "local", "v"));
  EXPECT_EQ(MessageFor("data"),
            "0/3 nodes are available: 3 node(s) unavailable due to one or more pvc(s) bound to "
            "non-existent pv(s). Storage: PersistentVolume v, to which PersistentVolumeClaim "
            "default/data is bound, does not exist.");
}

TEST_F(VolumeRulesTest, TheVolumeIsInAnotherZone) {
  Add(MakeBoundClaim("data", "local", "v"));
  const std::string label = "topology.kubernetes.io/zone";
  Add(MakeVolume("v", "local", "5Gi", "", ", labels: {" + label + ": 'a__b'}"));
  // A node without any zone is everywhere.
  for (const char* node : {"n0", "n1", "n2"}) SetZone(node, label, "c");
  EXPECT_EQ(NodesAvailableText((MessageFor("data"), cluster.WhyNot("p"))),
            "0/3 nodes are available: 3 node(s) had no available volume zone.");
  SetZone("n2", label, "b");
  AddPod("q", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(cluster.NodeOf("q"), "n2");
}

TEST_F(VolumeRulesTest, AZoneOfOldIsTheZoneOfToday) {
  Add(MakeBoundClaim("data", "local", "v"));
  Add(MakeVolume("v", "local", "5Gi", "", ", labels: {failure-domain.beta.kubernetes.io/zone: a}"));
  SetZone("n0", "topology.kubernetes.io/zone", "b");
  SetZone("n1", "topology.kubernetes.io/zone", "a");
  SetZone("n2", "failure-domain.beta.kubernetes.io/zone", "b");
  AddPod("p", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

TEST_F(VolumeRulesTest, OnePodAloneMayHaveAReadWriteOncePodClaim) {
  Add(MakeVolume("v", "local"));
  json::Value claim = MakeBoundClaim("data", "local", "v");
  claim = claim.SetPath({"spec", "accessModes"}, json::List({"ReadWriteOncePod"}));
  Add(claim);
  AddPod("a", {"data"});
  AddPod("b", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(cluster.NodeOf("a"), "n0");
  EXPECT_EQ(cluster.Message("b"),
            "0/3 nodes are available: 3 node has pod using PersistentVolumeClaim with the same "
            "name and ReadWriteOncePod access mode. It fits when pod default/a ends. Storage: "
            "PersistentVolumeClaim default/data is ReadWriteOncePod, and another pod has it.");
  cluster.Remove("a");
  EXPECT_EQ(cluster.Plan(), 1u);
}

TEST_F(VolumeRulesTest, PreemptsWhoHasAReadWriteOncePodClaim) {
  Add(MakeVolume("v", "local"));
  json::Value claim = MakeBoundClaim("data", "local", "v");
  Add(claim.SetPath({"spec", "accessModes"}, json::List({"ReadWriteOncePod"})));
  cluster::PodInfo low = MakePod("low", {"data"});
  low.node_name = "n1";
  low.phase = cluster::PodPhase::kRunning;
  cluster.AddPod(low);
  cluster::PodInfo high = MakePod("high", {"data"});
  high.priority = 10;
  cluster.AddPod(high);
  EXPECT_EQ(cluster.Plan(), 0u);
  EXPECT_EQ(cluster.VictimsOf("high"), std::set<std::string>{"low"});
  EXPECT_EQ(cluster.NominationsOf("high").at("high"), "n1");
}

TEST_F(VolumeRulesTest, AReadWriteOnceClaimIsNotBoundToOneNode) {
  Add(MakeBoundClaim("data", "local", "v"));
  Add(MakeVolume("v", "local"));
  cluster.AddRunning("full", "n0", 0, {{"cpu", 7950}});
  for (const char* pod : {"a", "b", "c"}) {
    cluster::PodInfo info = MakePod(pod, {"data"});
    cluster::AddTo(info.constraints.requests, {{"cpu", 5000}});
    cluster.AddPod(info);
  }
  EXPECT_EQ(cluster.Plan(), 2u);
}

// -- Claims that wait for their first pod.

TEST_F(VolumeRulesTest, TakesTheSmallestVolumeThatSuits) {
  Add(MakeClaim("data", "local"));
  Add(MakeVolume("large", "local", "20Gi"));
  Add(MakeVolume("right", "local", "6Gi"));
  Add(MakeVolume("small", "local", "4Gi"));
  Add(MakeVolume("other-class", "cloud", "5Gi"));
  Add(MakeVolume("device", "local", "5Gi", ", volumeMode: Block"));
  Add(MakeVolume("used", "local", "5Gi", ", claimRef: {namespace: default, name: x, uid: u}"));
  Add(MakeVolume("read-only", "local", "5Gi")
          .SetPath({"spec", "accessModes"}, json::List({"ReadOnlyMany"})));
  Add(MakeVolume("released", "local", "5Gi").SetPath({"status", "phase"}, "Released"));
  Add(MakeVolume("going", "local", "5Gi", "", ", deletionTimestamp: '2026-01-01T00:00:00Z'"));
  AddPod("p", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(VolumeOf("p"), "right");
}

TEST_F(VolumeRulesTest, TakesAVolumeWithTheLabelsThatTheClaimSelects) {
  Add(MakeClaim("data", "local", ", selector: {matchLabels: {disk: ssd}}"));
  Add(MakeVolume("hdd", "local", "5Gi", "", ", labels: {disk: hdd}"));
  Add(MakeVolume("ssd", "local", "9Gi", "", ", labels: {disk: ssd}"));
  AddPod("p", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(VolumeOf("p"), "ssd");
}

TEST_F(VolumeRulesTest, AVolumeThatIsReservedForTheClaimGoesFirst) {
  Add(MakeClaim("data", "local"));
  Add(MakeVolume("a", "local", "5Gi"));
  Add(MakeVolume("own", "local", "50Gi",
                 ", claimRef: {namespace: default, name: data}" + OnlyOnHost("n2")));
  AddPod("p", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(VolumeOf("p"), "own");
  EXPECT_EQ(cluster.NodeOf("p"), "n2");
}

TEST_F(VolumeRulesTest, NoVolumeIsFree) {
  Add(MakeClaim("data", "local"));
  const std::string none =
      "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind. "
      "Storage: PersistentVolumeClaim default/data wants a PersistentVolume of class local with "
      "5Gi: ";
  EXPECT_EQ(MessageFor("data"), none + "none is free.");
  Add(MakeVolume("small", "local", "4Gi"));
  EXPECT_EQ(MessageFor("data"), none + "1 free, too small.");
  Add(MakeVolume("elsewhere", "local", "9Gi", OnlyOnHost("n9")));
  EXPECT_EQ(MessageFor("data"),
            none + "1 free and large enough, to be used on none of the 3 nodes.");
}

TEST_F(VolumeRulesTest, MakesAVolumeWhereNoneIsFree) {
  Add(MakeClaim("data", "cloud"));
  AddPod("p", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  ASSERT_EQ(cluster.cache.AssumedVolumes({"default", "p"}).size(), 1u);
  EXPECT_EQ(cluster.cache.AssumedVolumes({"default", "p"})[0],
            (cluster::VolumeChoice{{"default", "data"}, "", cluster.NodeOf("p")}));
}

TEST_F(VolumeRulesTest, MakesNoVolumeOutsideOfTheAllowedTopologies) {
  Add(MakeClass("zonal", "csi.example.com", true,
                ", allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a, b]}]}]"));
  Add(MakeClaim("data", "zonal"));
  EXPECT_EQ(MessageFor("data"),
            "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind. "
            "Storage: StorageClass zonal makes volumes for PersistentVolumeClaim default/data on "
            "none of the 3 nodes.");
  SetZone("n2", "zone", "b");
  AddPod("q", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(cluster.NodeOf("q"), "n2");
}

TEST_F(VolumeRulesTest, GoesWhereTheVolumeIsBeingMade) {
  Add(MakeClaim("data", "cloud", "", ", annotations: {volume.kubernetes.io/selected-node: n2}"));
  Add(MakeVolume("free", "cloud"));
  AddPod("p", {"data"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(cluster.NodeOf("p"), "n2");
  EXPECT_EQ(VolumeOf("p"), "");
}

TEST_F(VolumeRulesTest, TwoClaimsOfAPodGetTwoVolumes) {
  Add(MakeClaim("a", "local"));
  Add(MakeClaim("b", "local"));
  Add(MakeVolume("v0", "local", "5Gi", OnlyOnHost("n0")));
  Add(MakeVolume("v1", "local", "5Gi", OnlyOnHost("n1")));
  Add(MakeVolume("v2", "local", "6Gi", OnlyOnHost("n1")));
  AddPod("p", {"a", "b"});
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
  const auto& choices = cluster.cache.AssumedVolumes({"default", "p"});
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_NE(choices[0].volume, choices[1].volume);
}

// -- Many pods.

TEST_F(VolumeRulesTest, TwoPodsOfOnePlanNeverGetOneVolume) {
  Add(MakeVolume("v", "local"));
  Add(MakeClaim("a", "local"));
  Add(MakeClaim("b", "local"));
  AddPod("p", {"a"});
  AddPod("q", {"b"});
  EXPECT_EQ(cluster.Plan(), 1u);
  // The next plan remembers it before anybody has written it.
  EXPECT_EQ(cluster.Plan(), 0u);
  EXPECT_EQ(cluster.refused, 0u);
  // Given back, it is the other one's.
  cluster.Remove("p");
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_EQ(VolumeOf("q"), "v");
}

TEST_F(VolumeRulesTest, PodsThatShareAClaimShareItsVolume) {
  Add(MakeVolume("v", "local", "5Gi", OnlyOnHost("n1")));
  Add(MakeVolume("w", "local", "6Gi", OnlyOnHost("n2")));
  Add(MakeClaim("shared", "local"));
  for (const char* pod : {"p", "q", "r"}) AddPod(pod, {"shared"});
  EXPECT_EQ(cluster.Plan(), 3u);
  for (const char* pod : {"p", "q", "r"}) {
    EXPECT_EQ(VolumeOf(pod), VolumeOf("p"));
    EXPECT_EQ(cluster.NodeOf(pod), cluster.NodeOf("p"));
  }
  // It stays theirs until the last one is gone.
  Add(MakeClaim("other", "local"));
  AddPod("s", {"other"});
  cluster.Remove("p");
  cluster.Remove("q");
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_NE(VolumeOf("s"), VolumeOf("r"));
}

TEST_F(VolumeRulesTest, AGangOfTwoDoesNotStartWithOneVolume) {
  Add(MakeVolume("v", "local"));
  cluster.AddGang("g", 2, 0, {});
  for (const char* name : {"g-0", "g-1"}) {
    Add(MakeClaim(name, "local"));
    cluster::PodInfo pod = MakePod(name, {name});
    pod.group = "g";
    cluster.AddPod(pod);
  }
  EXPECT_EQ(cluster.Plan(), 0u);
  EXPECT_EQ(cluster.Message("g"),
            "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind. "
            "gang g: 1 of the 2 pods that must start at once fit. Storage: PersistentVolumeClaim "
            "default/g-1 wants a PersistentVolume of class local with 5Gi: none is free.");
  EXPECT_TRUE(cluster.cache.snapshot().Storage()->decided.empty());
  Add(MakeVolume("w", "local"));
  EXPECT_EQ(cluster.Plan(), 2u);
  EXPECT_NE(VolumeOf("g-0"), VolumeOf("g-1"));
}

TEST_F(VolumeRulesTest, AChoiceThatDoesNotHoldAnyMoreIsNotTakenOver) {
  Add(MakeVolume("v", "local"));
  Add(MakeClaim("a", "local"));
  AddPod("p", {"a"});
  const std::vector<cluster::VolumeChoice> choice = {{{"default", "a"}, "v", "n0"}};
  Add(MakeVolume("v", "local", "5Gi", ", claimRef: {namespace: other, name: a, uid: x}"));
  EXPECT_FALSE(cluster.cache.Assume({"default", "p"}, "n0", {}, choice));
  Add(MakeVolume("v", "local"));
  EXPECT_TRUE(cluster.cache.Assume({"default", "p"}, "n0", {}, choice));
}

TEST_F(VolumeRulesTest, WithoutStorageClaimsAreNoMatter) {
  TestCluster plain;
  plain.AddNodes(1, {{"cpu", 8000}});
  plain.AddPod(MakePod("p", {"data"}));
  EXPECT_EQ(plain.Plan(), 1u);
}

TEST_F(VolumeRulesTest, ChangesOfStorageWakeOnlyThoseWhoWaitForIt) {
  EXPECT_FALSE(
      cluster.cache.UpsertClaim(cluster::ToClaimInfo(MakeClaim("x", "local"))).capacity_grew);
  AddPod("p", {"data"});
  const cluster::ClaimInfo claim = cluster::ToClaimInfo(MakeClaim("data", "cloud"));
  EXPECT_TRUE(cluster.cache.UpsertClaim(claim).capacity_grew);
  EXPECT_FALSE(cluster.cache.UpsertClaim(claim).changed);
  EXPECT_TRUE(
      cluster.cache.UpsertVolume(cluster::ToVolumeInfo(MakeVolume("v", "cloud"))).capacity_grew);
  EXPECT_EQ(cluster.Plan(), 1u);
  EXPECT_FALSE(cluster.cache.RemoveVolume("v").capacity_grew);
  EXPECT_FALSE(cluster.cache.RemoveClaim({"default", "data"}).capacity_grew);
  EXPECT_FALSE(cluster.cache.RemoveStorageClass("cloud").capacity_grew);
}

}  // namespace
}  // namespace muster::scheduler
