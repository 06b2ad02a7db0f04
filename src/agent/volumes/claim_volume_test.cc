#include "agent/volumes/claim_volume.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/runtime/files.h"
#include "agent/volumes/local_volumes.h"
#include "agent/volumes/volume_plan.h"
#include "json/parse.h"

namespace muster::agent {
namespace {

class Claims : public testing::Test {
 protected:
  Claims() {
    char path[] = "/tmp/agent-claims-XXXXXX";
    dir_ = mkdtemp(path);
  }
  ~Claims() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  json::Value& Volume() { return volume_; }
  Result<ClaimVolume> Resolve() {
    return ResolveClaim(pod_, Volume(), claim_, persistent_volume_, node_);
  }
  std::string Fault() {
    const Result<ClaimVolume> found = Resolve();
    return found ? found->fault : found.error().message();
  }
  std::string ClaimFault() {
    const Result<std::string> found = VolumeOfClaim(pod_, Volume(), claim_);
    return found ? "" : found.error().message();
  }
  // What is planned and prepared of it; or why not.
  Result<VolumePlan> Plan() {
    PodInputs inputs;
    inputs.claims.emplace("v", Resolve());
    const json::Value pod = pod_.SetPath({"spec", "volumes"}, json::List({Volume()}));
    Result<VolumePlan> plan = PlanVolumes(pod, inputs, {}, dir_ + "/data/pods/u");
    if (!plan) return plan;
    const Status status = PrepareVolumes(*plan, dir_ + "/data");
    if (!status.ok()) return std::unexpected(status);
    return plan;
  }
  std::string PlanFault() {
    const Result<VolumePlan> plan = Plan();
    return plan ? "" : plan.error().message();
  }
  void SetSource(const std::string& kind, const std::string& path) {
    persistent_volume_ = persistent_volume_.RemovePath({"spec", "local"})
                             .RemovePath({"spec", "hostPath"})
                             .SetPath({"spec", kind, "path"}, path);
  }

  std::string dir_;
  json::Value pod_ = *json::Parse(
      R"({"metadata":{"name":"p","namespace":"d","uid":"pod-1"},"spec":{"containers":[{"name":"c",)"
      R"("volumeMounts":[{"name":"v","mountPath":"/v"}]}]}})");
  json::Value volume_ =
      *json::Parse(R"({"name":"v","persistentVolumeClaim":{"claimName":"data"}})");
  json::Value claim_ = *json::Parse(
      R"({"metadata":{"name":"data","namespace":"d","uid":"claim-1"},"spec":{"volumeName":"pv1"},)"
      R"("status":{"phase":"Bound"}})");
  json::Value persistent_volume_ = *json::Parse(
      R"({"metadata":{"name":"pv1"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{},)"
      R"("claimRef":{"namespace":"d","name":"data","uid":"claim-1"},"local":{"path":"/mnt/x"},)"
      R"("nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[)"
      R"({"key":"kubernetes.io/hostname","operator":"In","values":["n1"]}]}]}}}})");
  json::Value node_ =
      *json::Parse(R"({"metadata":{"name":"n1","labels":{"kubernetes.io/hostname":"n1"}}})");
};

TEST_F(Claims, LeadToTheirVolume) {
  EXPECT_EQ(*VolumeOfClaim(pod_, Volume(), claim_), "pv1");
  const Result<ClaimVolume> found = Resolve();
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_EQ(found->fault, "");
  EXPECT_EQ(found->path, "/mnt/x");
  EXPECT_EQ(found->folder, "") << "not the node's own";
  EXPECT_FALSE(found->read_only);
  const std::vector<ClaimVolume> all = {*found};
  EXPECT_EQ(ClaimVolumesFromJson(ToJson(all)), all);
}

TEST_F(Claims, LeadToWhatAServerKeeps) {
  persistent_volume_ =
      persistent_volume_.RemovePath({"spec", "local"})
          .RemovePath({"spec", "nodeAffinity"})
          .SetPath({"spec", "nfs"}, json::Obj({{"server", "files"}, {"path", "/export"}}))
          .SetPath({"spec", "mountOptions"}, json::Strings({"nfsvers=4.1", "hard"}));
  const Result<ClaimVolume> found = Resolve();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->fault, "");
  const std::vector<ClaimVolume> all = {*found};
  EXPECT_EQ(ClaimVolumesFromJson(ToJson(all)), all);
  const Result<VolumePlan> plan = Plan();
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  EXPECT_TRUE(plan->host_paths.empty());
  ASSERT_EQ(plan->network_volumes.size(), 1u);
  const NetworkVolume& volume = plan->network_volumes[0];
  EXPECT_EQ(volume.shown, "pv1");
  EXPECT_EQ(volume.source, "files:/export");
  EXPECT_EQ(volume.target, dir_ + "/data/pods/u/volumes/kubernetes.io~nfs/v");
  EXPECT_EQ(plan->sources.at("v"), volume.target);
  EXPECT_EQ(volume.options, (std::vector<std::string>{"hard", "nfsvers=4.1"}));
  EXPECT_FALSE(plan->read_only.contains("v"));
  EXPECT_FALSE(PathExists(volume.target)) << "made when it is mounted";

  // Read-only for the pod, or for everybody.
  const json::Value both = persistent_volume_;
  persistent_volume_ = both.SetPath({"spec", "nfs", "readOnly"}, true);
  EXPECT_TRUE(Plan()->read_only.contains("v"));
  EXPECT_EQ(Plan()->network_volumes[0].options,
            (std::vector<std::string>{"hard", "nfsvers=4.1", "ro"}));
  persistent_volume_ = both;
  volume_ = volume_.SetPath({"persistentVolumeClaim", "readOnly"}, true);
  EXPECT_TRUE(Plan()->read_only.contains("v"));
}

TEST_F(Claims, OfOtherKindsTakeNoMountOptions) {
  persistent_volume_ =
      persistent_volume_.SetPath({"spec", "mountOptions"}, json::Strings({"noexec"}));
  EXPECT_EQ(
      Fault(),
      "MountVolume.MountOptionSupport check failed for volume \"pv1\" : mount options are not "
      "supported for this volume type");
}

TEST_F(Claims, ThatAreNotBoundLeadNowhere) {
  const json::Value good = claim_;
  claim_ = good.SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
  EXPECT_EQ(ClaimFault(), "error processing PVC d/data: PVC is being deleted");
  for (const char* phase : {"Pending", "Lost", ""}) {
    claim_ = good.SetPath({"status", "phase"}, phase);
    EXPECT_EQ(ClaimFault(), "error processing PVC d/data: PVC is not bound") << phase;
  }
  claim_ = good.RemovePath({"spec", "volumeName"});
  EXPECT_EQ(ClaimFault(), "error processing PVC d/data: PVC has empty pvc.Spec.VolumeName");
}

TEST_F(Claims, OfEphemeralVolumesMustBeThePods) {
  volume_ = *json::Parse(R"({"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}})");
  EXPECT_EQ(ClaimOf(pod_, Volume()), "p-v");
  claim_ = claim_.SetPath({"metadata", "name"}, "p-v");
  EXPECT_EQ(ClaimFault(),
            "error processing PVC d/p-v: PVC d/p-v was not created for pod d/p (pod is not owner)");
  const auto own = [&](const std::string& uid) {
    claim_ = claim_.SetPath(
        {"metadata", "ownerReferences"},
        json::List(
            {json::Obj({{"kind", "Pod"}, {"name", "p"}, {"uid", uid}, {"controller", true}})}));
  };
  own("pod-0");
  EXPECT_NE(ClaimFault(), "") << "that of an earlier pod of this name";
  own("pod-1");
  EXPECT_EQ(ClaimFault(), "");
}

TEST_F(Claims, AndVolumesMustNameEachOther) {
  const json::Value good = persistent_volume_;
  persistent_volume_ = good.RemovePath({"spec", "claimRef"});
  EXPECT_EQ(Fault(),
            "error processing PVC d/data: found PV object pv1 with nil pvc.Spec.ClaimRef "
            "indicating it is not yet bound to the claim");
  persistent_volume_ = good.SetPath({"spec", "claimRef", "uid"}, "claim-0");
  EXPECT_EQ(Fault(),
            "error processing PVC d/data: found PV object pv1 with a pvc.Spec.ClaimRef.UID claim-0 "
            "that does not point to claim.UID claim-1");
}

TEST_F(Claims, AreRefusedWhereTheirVolumeCannotBeMounted) {
  const json::Value good = persistent_volume_;
  node_ = *json::Parse(R"({"metadata":{"labels":{"kubernetes.io/hostname":"n2"}}})");
  EXPECT_EQ(PlanFault(),
            "MountVolume.NodeAffinity check failed for volume \"pv1\" : no matching "
            "NodeSelectorTerms");
  node_ = *json::Parse(R"({"metadata":{"labels":{"kubernetes.io/hostname":"n1"}}})");
  persistent_volume_ = good.SetPath({"spec", "volumeMode"}, "Block");
  EXPECT_EQ(PlanFault(), "volume v has volumeMode Block, but is specified in volumeMounts");
  persistent_volume_ =
      good.RemovePath({"spec", "local"}).SetPath({"spec", "csi", "driver"}, "disk.example.com");
  EXPECT_EQ(PlanFault(),
            "MountVolume.SetUp failed for volume \"pv1\" : PersistentVolumes of kind csi are not "
            "supported on this node; use local, hostPath or nfs");
  persistent_volume_ =
      good.SetPath({"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z")
          .SetPath({"metadata", "finalizers"}, json::Strings({"muster.dev/local-path"}));
  EXPECT_EQ(PlanFault(),
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
            "failed to process volumes=[v]: error processing PVC d/data: PV pv1 is being deleted");
}

TEST_F(Claims, LocalVolumesMustBeThere) {
  ASSERT_TRUE(MakeDirs(dir_ + "/data").ok());
  SetSource("local", dir_ + "/disk");
  EXPECT_EQ(PlanFault(),
            "MountVolume.NewMounter initialization failed for volume \"pv1\" : path \"" + dir_ +
                "/disk\" does not exist");
  ASSERT_TRUE(WriteFile(dir_ + "/disk", "").ok());
  EXPECT_EQ(PlanFault(),
            "MountVolume.SetUp failed for volume \"pv1\" : hostPath type check failed: " + dir_ +
                "/disk is not a directory");
  ASSERT_EQ(unlink((dir_ + "/disk").c_str()), 0);
  ASSERT_TRUE(MakeDirs(dir_ + "/disk").ok());
  const Result<VolumePlan> plan = Plan();
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  EXPECT_EQ(plan->sources.at("v"), dir_ + "/disk");
}

TEST_F(Claims, HostPathsObeyTheRulesOfHostPathVolumes) {
  ASSERT_TRUE(MakeDirs(dir_ + "/data/pods").ok());
  SetSource("hostPath", dir_ + "/made");
  const Result<VolumePlan> plan = Plan();
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  EXPECT_TRUE(PathExists(dir_ + "/made"));
  for (const char* path :
       {"/data", "/data/pods", "/data/local-volumes/pvc-1_d_data", "/data/new"}) {
    SetSource("hostPath", dir_ + path);
    EXPECT_NE(PlanFault().find("inside muster's own data folder"), std::string::npos) << path;
  }
  EXPECT_EQ(ListDir(dir_ + "/data"), std::vector<std::string>{"pods"});
  SetSource("hostPath", dir_ + "/../x");
  EXPECT_NE(PlanFault(), "");
  SetSource("hostPath", dir_);
  ASSERT_EQ(PlanFault(), "");
  EXPECT_EQ(Plan()->hidden.at("v"), "data");
}

TEST_F(Claims, TheNodesOwnFoldersAreMade) {
  ASSERT_TRUE(MakeDirs(dir_ + "/data").ok());
  const std::string root = LocalVolumesDir(dir_ + "/data");
  SetSource("local", root + "/pv1_d_data");
  EXPECT_NE(PlanFault().find("does not exist"), std::string::npos) << "nobody provisioned it";
  persistent_volume_ = persistent_volume_.SetPath(
      {"metadata", "annotations"},
      json::Obj({{std::string(kProvisionedByAnnotation), std::string(kLocalPathProvisioner)}}));
  ASSERT_EQ(PlanFault(), "");
  EXPECT_EQ(Plan()->sources.at("v"), root + "/pv1_d_data");
  EXPECT_EQ(ListDir(root), std::vector<std::string>{"pv1_d_data"});
  ASSERT_TRUE(RemoveTree(root + "/pv1_d_data").ok());
  EXPECT_TRUE(PlanFault().starts_with("MountVolume.SetUp failed for volume \"pv1\" : " + root +
                                      "/pv1_d_data is gone with what was in it"))
      << PlanFault();
  // It is not that of another one, and leads nowhere else.
  SetSource("local", root + "/pv2_d_data");
  EXPECT_NE(PlanFault().find("does not exist"), std::string::npos);
  for (const char* path : {"", "/", "/..", "/../pods", "/pv1_d_data/sub"}) {
    SetSource("local", root + path);
    EXPECT_NE(PlanFault(), "") << path;
  }
  ASSERT_TRUE(MakeDirs(dir_ + "/data/pods").ok());
  ASSERT_EQ(symlink((dir_ + "/data/pods").c_str(), (root + "/pv3_d_data").c_str()), 0);
  SetSource("local", root + "/pv3_d_data");
  EXPECT_NE(PlanFault().find("inside muster's own data folder"), std::string::npos);
}

TEST_F(Claims, ReadOnlyOnesAreMountedSo) {
  volume_ = volume_.SetPath({"persistentVolumeClaim", "readOnly"}, true);
  VolumePlan plan;
  plan.sources["v"] = "/src";
  plan.read_only.insert("v");
  EXPECT_TRUE(Resolve()->read_only);
  const auto mounts = ContainerMounts(pod_["spec"]["containers"].At(0), plan, {});
  ASSERT_TRUE(mounts.has_value());
  EXPECT_TRUE(mounts->at(0).read_only);
}

}  // namespace
}  // namespace muster::agent
