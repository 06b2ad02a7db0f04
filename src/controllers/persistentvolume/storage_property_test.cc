// Random claims, volumes, pods, nodes and deletions, with requests that fail and watches that
// break: whatever comes, at the end both sides of every binding agree and nothing is left to do.

#include "base/rng.h"
#include "controllers/persistentvolume/storage_test_base.h"

namespace muster::controllers {
namespace {

constexpr int kSteps = 60;
constexpr const char* kClassNames[] = {"''", "fast", "waits", "local-path"};
constexpr const char* kModes[] = {"ReadWriteOnce", "ReadWriteMany", "ReadWriteOnce, ReadWriteMany"};

class StoragePropertyTest : public StorageTest, public testing::WithParamInterface<uint64_t> {
 protected:
  StoragePropertyTest() : rng_(GetParam()) {
    PutLocalClass();
    PutClass("waits", "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
    PutClass("fast", "kubernetes.io/no-provisioner");
    for (const char* node : {"n0", "n1"}) PutNode(node);
    api_.before_handle = [this](const net::Request& request, const net::ResponseWriterPtr& writer) {
      if (!faulty_ || request.method == "GET" || rng_.Between(0, 19) != 0) return true;
      client::FakeApi::SendError(*writer, 500, "InternalError", "a fault of the test");
      return false;
    };
  }

  int Pick(int count) { return static_cast<int>(rng_.Between(0, count - 1)); }
  std::string Any(const char* prefix, int count) { return prefix + std::to_string(Pick(count)); }
  std::string Size() { return std::to_string(1 + Pick(3)) + "Gi"; }

  void MakeClaim() {
    const std::string name = Any("c", 5);
    if (!Claim(name).IsNull()) return;
    std::string spec = fmt::format(", storageClassName: {}", kClassNames[Pick(4)]);
    if (Pick(6) == 0) spec += ", volumeName: " + Any("v", 6);
    PutClaim(name, Size(), spec, "", kModes[Pick(2)]);
  }
  void MakeVolume() {
    const std::string name = Any("v", 6);
    if (!Volume(name).IsNull()) return;
    std::string spec = fmt::format(", storageClassName: {}", kClassNames[Pick(3)]);
    if (Pick(4) == 0) spec += fmt::format(", claimRef: {{namespace: d, name: {}}}", Any("c", 5));
    PutVolume(name, Size(), spec + ", persistentVolumeReclaimPolicy: Retain", "", kModes[Pick(3)]);
  }
  void MakePod() {
    const std::string name = Any("p", 4);
    if (!Get(kPods, "d", name).IsNull()) return;
    Put(kPods, fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: d}}, "
                           "spec: {{nodeName: {}, volumes: [{{name: v, persistentVolumeClaim: "
                           "{{claimName: {}}}}}]}}}}",
                           name, Pick(3) == 0 ? "''" : "n0", Any("c", 5)));
  }
  // The scheduler decides about a claim that waits.
  void Schedule() {
    const json::Value claim = Claim(Any("c", 5));
    const std::string class_name = claim["spec"]["storageClassName"].Str();
    const bool waits = class_name == "waits" || class_name == "local-path";
    if (!waits || claim["spec"].Has("volumeName")) return;
    if (class_name == "local-path") {
      const std::string node = Any("n", 3);  // n2 does not exist
      api_.Put(
          kClaims,
          claim.SetPath({"metadata", "annotations", "volume.kubernetes.io/selected-node"}, node));
      return;
    }
    for (const json::Value& volume : All(kVolumes)) {
      if (!CanHave(claim, volume)) continue;
      return api_.Put(
          kVolumes,
          volume
              .SetPath({"spec", "claimRef"}, json::Obj({{"namespace", "d"},
                                                        {"name", claim["metadata"]["name"]},
                                                        {"uid", claim["metadata"]["uid"]}}))
              .SetPath({"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}, "yes"));
    }
  }
  // The agents remove directories of volumes that nobody is bound to.
  void RunAgents() {
    for (const json::Value& volume : All(kVolumes)) {
      if (IsGoing(volume) && volume["metadata"]["finalizers"] == Yaml("[muster.dev/local-path]"))
        api_.Remove(kVolumes, "", volume["metadata"]["name"].Str());
    }
  }
  void Reuse() {
    const json::Value volume = Volume(Any("v", 6));
    if (PhaseOf(volume) == "Released")
      api_.Put(kVolumes, volume.SetPath({"spec", "claimRef"}, json::Value()));
  }
  void StartDeleting(const client::Resource& resource, const std::string& ns,
                     const std::string& name) {
    client_.Delete({resource, ns, name, ""}, {}, [](Result<json::Value>) {});
  }

  void Step() {
    namespace resources = client::resources;
    switch (Pick(12)) {
      case 0:
      case 1:
      case 2:
        return MakeClaim();
      case 3:
      case 4:
        return MakeVolume();
      case 5:
        return MakePod();
      case 6:
        return Schedule();
      case 7:
        return StartDeleting(resources::kPersistentVolumeClaims, "d", Any("c", 5));
      case 8: {
        // Any of them, local ones too.
        const std::vector<json::Value> all = All(kVolumes);
        if (all.empty()) return;
        const size_t at = static_cast<size_t>(Pick(static_cast<int>(all.size())));
        return StartDeleting(resources::kPersistentVolumes, "", all[at]["metadata"]["name"].Str());
      }
      case 9:
        return api_.Remove(kPods, "d", Any("p", 4));
      case 10:
        return Pick(4) == 0 ? api_.CutWatches(Pick(2) == 0) : Reuse();
      default:
        return RunAgents();
    }
  }

  static int64_t Gigabytes(const json::Value& amount) { return amount.Str()[0] - '0'; }
  // As little as the rules say; upstream's words, another way.
  static bool CanHave(const json::Value& claim, const json::Value& volume) {
    const json::Value& wants = claim["spec"];
    const json::Value& has = volume["spec"];
    for (const json::Value& mode : wants["accessModes"].items()) {
      bool found = false;
      for (const json::Value& each : has["accessModes"].items()) found |= each == mode;
      if (!found) return false;
    }
    return !has.Has("claimRef") && volume["status"]["phase"].AsString() == "Available" &&
           !volume["metadata"].Has("deletionTimestamp") &&
           wants["storageClassName"] == has["storageClassName"] &&
           Gigabytes(has["capacity"]["storage"]) >=
               Gigabytes(wants["resources"]["requests"]["storage"]);
  }

  void CheckClaim(const json::Value& claim) {
    SCOPED_TRACE(json::Write(claim));
    const std::string name = claim["metadata"]["name"].Str();
    EXPECT_TRUE(!IsGoing(claim) || IsUsed(name));
    const std::string phase = PhaseOf(claim);
    const json::Value volume = Volume(VolumeOf(name));
    if (phase == "Bound") {
      ExpectBound(name, VolumeOf(name));
    } else if (phase == "Lost") {
      EXPECT_TRUE(volume.IsNull() || volume["spec"]["claimRef"]["uid"] != claim["metadata"]["uid"]);
    } else if (VolumeOf(name).empty() && !IsGoing(claim)) {
      const std::string class_name = claim["spec"]["storageClassName"].Str();
      if (class_name == "waits" || class_name == "local-path") return;
      for (const json::Value& each : All(kVolumes))
        EXPECT_FALSE(CanHave(claim, each)) << json::Write(each);
    }
  }
  bool IsUsed(const std::string& claim) const {
    for (const json::Value& pod : All(kPods)) {
      if (!pod["spec"]["nodeName"].AsString().empty() &&
          pod["spec"]["volumes"].At(0)["persistentVolumeClaim"]["claimName"].Str() == claim)
        return true;
    }
    return false;
  }
  void CheckVolume(const json::Value& volume) {
    SCOPED_TRACE(json::Write(volume));
    const json::Value& reference = volume["spec"]["claimRef"];
    const json::Value claim = Claim(reference["name"].Str());
    const bool is_claims = !claim.IsNull() && claim["metadata"]["uid"] == reference["uid"];
    const std::string phase = PhaseOf(volume);
    if (phase == "Bound") {
      EXPECT_TRUE(is_claims);
      EXPECT_EQ(claim["spec"]["volumeName"], volume["metadata"]["name"]);
    } else {
      EXPECT_FALSE(IsGoing(volume));
      EXPECT_TRUE(phase == "Available" ? !reference.Has("uid")
                                       : !is_claims || claim["spec"].Has("volumeName") == false)
          << phase;
    }
  }

  Rng rng_;
  bool faulty_ = true;
};

TEST_P(StoragePropertyTest, BothSidesAgreeAtTheEnd) {
  StartAll();
  for (int step = 0; step < kSteps; ++step) {
    Step();
    loop_.RunFor(milliseconds(rng_.Between(0, 20) * rng_.Between(0, 20)));
  }
  faulty_ = false;
  for (int round = 0; round < 5; ++round) {
    loop_.RunFor(minutes(30));
    RunAgents();
  }
  Settle();
  for (const json::Value& claim : All(kClaims)) CheckClaim(claim);
  for (const json::Value& volume : All(kVolumes)) CheckVolume(volume);
  EXPECT_EQ(runtime_.CountWritesOfExtraPass(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StoragePropertyTest, testing::Range<uint64_t>(1, 201));

}  // namespace
}  // namespace muster::controllers
