#include "simulation/claim_chapter.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "client/storage_resources.h"
#include "cluster/volumes.h"
#include "controllers/finalizers.h"
#include "controllers/persistentvolume/storage_facts.h"
#include "controllers/persistentvolume/volume_pass.h"
#include "simulation/fake_node.h"
#include "simulation/gang_oracle.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;
using controllers::ClassOf;
using controllers::HostOf;
using controllers::IsLocalPathVolume;

constexpr char kClaims[] = "/registry/core/persistentvolumeclaims/";
constexpr char kVolumes[] = "/registry/core/persistentvolumes/";
constexpr char kPods[] = "/registry/core/pods/";
constexpr char kNodes[] = "/registry/core/nodes/";

constexpr std::string_view kClaimNames[] = {"c0", "c1", "c2", "c3", "c4"};
// "kept" is local-path with Retain; volumes of the others are made by hand.
constexpr std::string_view kClasses[] = {"local-path", "local-path", "local-path",
                                         "kept",       "manual",     "by-node"};

bool IsBound(const json::Value& object) { return object["status"]["phase"].AsString() == "Bound"; }
std::string VolumeName(const json::Value& claim) { return claim["spec"]["volumeName"].Str(); }
int64_t Gibibytes(const json::Value& quantity) {
  return ParseInt(Split(quantity.AsString(), 'G').front()).value_or(0);
}

}  // namespace

ClaimChapter::ClaimChapter(const Tale& tale) : Chapter(tale) {
  Oracles& oracles = world_.oracles();
  oracles.Listen(kClaims, [this](const std::string&, const json::Value& object, bool deleted) {
    OnClaim(NameOf(object), object, deleted);
  });
  oracles.Listen(kVolumes, [this](const std::string&, const json::Value& object, bool deleted) {
    OnVolume(object, deleted);
  });
  oracles.Listen(kPods, [this](const std::string&, const json::Value& object, bool deleted) {
    OnPod(object, deleted);
  });
  oracles.Listen(kNodes, [this](const std::string&, const json::Value& object, bool deleted) {
    if (deleted) node_gone_[object["metadata"]["name"].Str()] = world_.loop().Steady();
  });
}

// ---- what is told ----

void ClaimChapter::Plan() {
  const auto make_class = [this](std::string_view name, std::string_view provisioner,
                                 std::string_view policy, std::string_view mode) {
    CreateUntilTaken(world_, resources::kStorageClasses,
                     Yaml(fmt::format(R"(
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {}}}
provisioner: {}
reclaimPolicy: {}
volumeBindingMode: {}
)",
                                      name, provisioner, policy, mode)));
  };
  make_class("kept", "muster.dev/local-path", "Retain", "WaitForFirstConsumer");
  make_class("manual", "kubernetes.io/no-provisioner", "Delete", "Immediate");
  make_class("by-node", "kubernetes.io/no-provisioner", "Delete", "WaitForFirstConsumer");
  for (int64_t i = rng_.Between(0, 4); i > 0; --i)
    world_.At(trouble_.UpTo(60'000), [this, i] { MakeVolume(i); });
  for (int64_t i = rng_.Between(2, 6); i > 0; --i)
    world_.At(trouble_.UpTo(60'000), [this] { MakeClaim(); });
  for (int64_t i = rng_.Between(2, 6); i > 0; --i)
    world_.At(trouble_.UpTo(80'000), [this] { MakePod(); });
  trouble_.Perhaps(0.3, [this] { MakeStatefulSet(); });
  trouble_.Sometimes(1, 4, [this] { DeleteClaim(); });
  trouble_.Sometimes(0, 3, [this] { DeletePod(); });
  trouble_.Sometimes(0, 2, [this] { DeleteVolume(); });
}

void ClaimChapter::MakeClaim() {
  const std::string_view name = OneOf(kClaimNames);
  const std::string_view storage_class = OneOf(kClasses);
  Tell("make a claim", fmt::format("{} of {}", name, storage_class));
  CreateUntilTaken(world_, resources::kPersistentVolumeClaims,
                   Yaml(fmt::format(R"(
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {}, namespace: default}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: {}
  resources: {{requests: {{storage: {}Gi}}}}
)",
                                    name, storage_class, rng_.Between(1, 3))));
}

void ClaimChapter::MakeVolume(int64_t number) {
  const bool by_node = rng_.Chance(0.5);
  const std::string place = by_node
                                ? fmt::format(R"(local: {{path: /mnt/v{}}}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{}]}}])",
                                              number, world_.node_name(rng_.Below(world_.nodes())))
                                : fmt::format("hostPath: {{path: /mnt/v{}}}", number);
  Tell("make a volume", fmt::format("v{}", number));
  CreateUntilTaken(world_, resources::kPersistentVolumes,
                   Yaml(fmt::format(R"(
apiVersion: v1
kind: PersistentVolume
metadata: {{name: v{}}}
spec:
  capacity: {{storage: {}Gi}}
  accessModes: [ReadWriteOnce]
  storageClassName: {}
  persistentVolumeReclaimPolicy: {}
  {}
)",
                                    number, rng_.Between(1, 3), by_node ? "by-node" : "manual",
                                    rng_.Chance(0.5) ? "Retain" : "Delete", place)));
}

void ClaimChapter::MakePod() {
  const std::string name = fmt::format("user-{}", ++made_);
  std::string volumes;
  const bool ephemeral = rng_.Chance(0.3);
  if (ephemeral) {
    Tell("make a pod with an ephemeral volume", name);
    volumes =
        "- {name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], "
        "storageClassName: local-path, resources: {requests: {storage: 1Gi}}}}}}\n";
  }
  if (!ephemeral || rng_.Chance(0.3))
    volumes += fmt::format("  - {{name: data, persistentVolumeClaim: {{claimName: {}}}}}",
                           OneOf(kClaimNames));
  Tell("make a pod with a claim", name);
  CreateUntilTaken(world_, resources::kPods,
                   Yaml(fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: {}, namespace: default, labels: {{chapter: claims}}, annotations: {{{}: "{}"}}}}
spec:
  containers: [{{name: main, image: v1}}]
  volumes:
  {}
)",
                                    name, kRunsForAnnotation, kForEverMs, Trim(volumes))));
}

void ClaimChapter::MakeStatefulSet() {
  Tell("make a StatefulSet with claims", "keeper");
  CreateUntilTaken(world_, resources::kStatefulSets,
                   Yaml(fmt::format(R"(
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: keeper, namespace: default}}
spec:
  replicas: {}
  serviceName: keeper
  selector: {{matchLabels: {{app: keeper}}}}
  template:
    metadata: {{labels: {{app: keeper, chapter: claims}}, annotations: {{{}: "{}"}}}}
    spec: {{containers: [{{name: main, image: v1}}]}}
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
)",
                                    rng_.Between(1, 3), kRunsForAnnotation, kForEverMs)));
}

void ClaimChapter::DeleteClaim() {
  const std::string name(OneOf(kClaimNames));
  Tell("delete a claim", name);
  Delete({resources::kPersistentVolumeClaims, "default", name, ""});
}

void ClaimChapter::DeletePod() {
  if (users_.empty()) return;
  auto it = users_.begin();
  std::advance(it, static_cast<ptrdiff_t>(rng_.Below(users_.size())));
  Tell("delete a claim's pod", it->second.key);
  const auto parts = Split(it->second.key, '/');
  world_.oracles().workloads().Excuse(it->first);
  Delete({resources::kPods, std::string(parts[0]), std::string(parts[1]), ""});
}

void ClaimChapter::DeleteVolume() {
  if (volumes_.empty()) return;
  auto it = volumes_.begin();
  std::advance(it, static_cast<ptrdiff_t>(rng_.Below(volumes_.size())));
  Tell("delete a volume", it->first);
  Delete({resources::kPersistentVolumes, "", it->first, ""});
}

// ---- the end ----

void ClaimChapter::End() {
  ends_ = true;
  FreeWhatGoes();
}

// Pods that hold what was deleted go, and claims that hold such a volume; also those that come to
// hold it later: a pod may be on its way to its node.
void ClaimChapter::FreeWhatGoes() {
  if (!ends_) return;
  for (const auto& [name, volume] : volumes_) {
    const Known* claim = ClaimWithUid(volume.object["spec"]["claimRef"]["uid"].AsString());
    if (IsGoing(volume.object) && claim != nullptr)
      DeleteOnce(resources::kPersistentVolumeClaims, client::KeyOf(claim->object),
                 claim->object["metadata"]["uid"].Str());
  }
  for (const auto& [uid, user] : users_) {
    for (const std::string& key : user.claims) {
      const auto claim = claims_.find(key);
      if (claim == claims_.end() || !IsGoing(claim->second.object)) continue;
      world_.oracles().workloads().Excuse(uid);
      const auto parts = Split(user.key, '/');
      DeleteOnce(resources::kPods, {std::string(parts[0]), std::string(parts[1])}, uid);
    }
  }
}

void ClaimChapter::DeleteOnce(const client::Resource& resource, const client::ObjectKey& key,
                              const std::string& uid) {
  if (!freed_.insert(uid).second) return;
  client::DeleteOptions options;
  options.precondition_uid = uid;
  Delete({resource, key.ns, key.name, ""}, options);
}

std::vector<std::string> ClaimChapter::Restless() const {
  std::vector<std::string> restless;
  for (const auto& [key, claim] : claims_) {
    if (IsGoing(claim.object)) restless.push_back("claim " + key + " goes");
  }
  for (const auto& [name, volume] : volumes_) {
    if (IsGoing(volume.object)) restless.push_back("volume " + name + " goes");
  }
  for (const json::Value& pod : world_.FindAll(kPods)) {
    if (pod["metadata"]["labels"]["chapter"].AsString() != "claims") continue;
    bool may_wait = false;  // for a claim that nobody makes, or for a volume
    for (const cluster::ClaimUse& use : cluster::ToClaimUses(pod)) {
      const auto claim = claims_.find(use.claim.ToString());
      const std::string by = claim == claims_.end() ? "" : ClassOf(claim->second.object);
      may_wait |= claim == claims_.end()
                      ? !use.IsEphemeral()
                      : by != "local-path" && by != "kept" && !IsBound(claim->second.object);
    }
    const bool runs = pod["status"]["phase"].AsString() == "Running";
    if (IsGoing(pod) || (!runs && !may_wait)) restless.push_back("pod " + NameOf(pod));
  }
  return restless;
}

// ---- after every change ----

const ClaimChapter::Known* ClaimChapter::ClaimWithUid(std::string_view uid) const {
  for (const auto& [key, claim] : claims_) {
    if (claim.object["metadata"]["uid"].AsString() == uid) return &claim;
  }
  return nullptr;
}

const ClaimChapter::Known* ClaimChapter::VolumeOf(const Known& claim) const {
  const auto found = volumes_.find(VolumeName(claim.object));
  return found == volumes_.end() ? nullptr : &found->second;
}

void ClaimChapter::OnClaim(const std::string& key, const json::Value& object, bool deleted) {
  const Time now = world_.loop().Steady();
  const auto [at, is_new] = claims_.try_emplace(key);
  Known& claim = at->second;
  if (is_new) claim.created = now;
  if (!is_new && !VolumeName(claim.object).empty() &&
      VolumeName(claim.object) != VolumeName(object))
    world_.Violation(fmt::format("claim {} had {} and now {}", key, VolumeName(claim.object),
                                 VolumeName(object)));
  if (IsGoing(object) && claim.going == Time{}) claim.going = now;
  claim.object = object;
  if (!deleted) return FreeWhatGoes();
  for (const auto& [uid, user] : users_) {
    if (std::find(user.claims.begin(), user.claims.end(), key) == user.claims.end()) continue;
    if (user.finished || user.bound + kPlanAge > claim.going) continue;
    world_.Violation(fmt::format("claim {} went under {}", key, user.key));
  }
  if (claim.going != now) counts_.Add("branch: a claim's deletion took its time");
  claims_.erase(at);
}

void ClaimChapter::OnVolume(const json::Value& object, bool deleted) {
  const Time now = world_.loop().Steady();
  const std::string name = object["metadata"]["name"].Str();
  const auto [at, is_new] = volumes_.try_emplace(name);
  Known& volume = at->second;
  const json::Value before = std::exchange(volume.object, object);
  if (is_new) volume.created = now;
  if (IsGoing(object) && volume.going == Time{}) volume.going = now;
  const std::string_view had = before["spec"]["claimRef"]["uid"].AsString();
  const std::string_view has = object["spec"]["claimRef"]["uid"].AsString();
  if (!had.empty() && !has.empty() && had != has)
    world_.Violation(fmt::format("volume {} was given from {} to {}", name, had, has));
  if (!had.empty() && has.empty()) counts_.Add("branch: a volume was let go of");
  if (is_new && IsLocalPathVolume(object)) counts_.Add("branch: a volume was made for a claim");
  if (!deleted) return FreeWhatGoes();
  const Known* claim = has.empty() ? nullptr : ClaimWithUid(has);
  if (claim != nullptr && VolumeName(claim->object) == name)
    world_.Violation(fmt::format("volume {} went under {}", name, NameOf(claim->object)));
  const std::string host = HostOf(object);
  for (size_t i = 0; i < world_.nodes(); ++i) {
    if (!IsLocalPathVolume(object) || world_.node_name(i) != host) continue;
    if (object["spec"]["persistentVolumeReclaimPolicy"].AsString() == "Retain") {
      abandoned_.insert(name);
    } else if (!world_.machine(i).folders().contains(name)) {
      counts_.Add("oracle: a volume went after its folder");
    } else if (WasLost(host)) {
      counts_.Add("branch: a volume went without its node");
      abandoned_.insert(name);
    } else {
      world_.Violation(fmt::format("volume {} went and its folder is still on {}", name, host));
    }
  }
  volumes_.erase(at);
}

// So that nobody could have removed its folders, as a controller may have seen it.
bool ClaimChapter::WasLost(const std::string& node) const {
  const auto found = node_gone_.find(node);
  if (found == node_gone_.end()) return false;
  return world_.loop().Steady() - found->second < controllers::kVolumeNodeQuarantine + kPlanAge ||
         world_.Find(kNodes + node).IsNull();
}

void ClaimChapter::OnPod(const json::Value& object, bool deleted) {
  const std::string uid = object["metadata"]["uid"].Str();
  if (deleted) {
    users_.erase(uid);
    return;
  }
  const std::string node = object["spec"]["nodeName"].Str();
  const std::vector<cluster::ClaimUse> uses = cluster::ToClaimUses(object);
  if (node.empty() || uses.empty()) return;
  const auto [at, is_new] = users_.try_emplace(uid);
  User& user = at->second;
  const std::string_view phase = object["status"]["phase"].AsString();
  user.finished = phase == "Succeeded" || phase == "Failed";
  if (!is_new) return;
  user.key = NameOf(object);
  user.node = node;
  user.bound = world_.loop().Steady();
  for (const cluster::ClaimUse& use : uses) user.claims.push_back(use.claim.ToString());
  CheckPlace(user);
  FreeWhatGoes();
}

void ClaimChapter::CheckPlace(const User& user) {
  for (const std::string& key : user.claims) {
    const auto found = claims_.find(key);
    // One that went meanwhile; another of its name.
    if (found == claims_.end()) continue;
    if (IsGoing(found->second.object)) {
      if (user.bound - found->second.going > kPlanAge)
        world_.Violation(fmt::format("{} was bound and {} had long been going", user.key, key));
      continue;
    }
    if (world_.loop().Steady() - found->second.created < kPlanAge &&
        VolumeName(found->second.object).empty())
      continue;
    counts_.Add("oracle: pod bound where its volume is");
    const Known* volume = VolumeOf(found->second);
    if (volume == nullptr) {
      world_.Violation(fmt::format("{} was bound and {} is not", user.key, key));
      continue;
    }
    const std::string host = HostOf(volume->object);
    if (!host.empty() && host != user.node)
      world_.Violation(
          fmt::format("{} was bound to {}, its claim {} is on {}", user.key, user.node, key, host));
  }
}

// ---- at rest ----

void ClaimChapter::JudgeClaim(const json::Value& claim, std::set<std::string>& taken) {
  const std::string key = NameOf(claim);
  const std::string name = VolumeName(claim);
  if (IsBound(claim) == name.empty())
    world_.Violation(fmt::format("claim {} with volume '{}' is {}", key, name,
                                 claim["status"]["phase"].AsString()));
  if (!controllers::HasFinalizer(claim, schema::kClaimProtection))
    world_.Violation(fmt::format("claim {} rests unprotected", key));
  if (name.empty()) {
    if (ClassOf(claim) != "manual") return;
    for (const auto& [volume_name, volume] : volumes_) {
      if (ClassOf(volume.object) == "manual" && controllers::IsFree(volume.object) &&
          Gibibytes(volume.object["spec"]["capacity"]["storage"]) >=
              Gibibytes(claim["spec"]["resources"]["requests"]["storage"]))
        world_.Violation(fmt::format("claim {} waits and {} is free", key, volume_name));
    }
    return;
  }
  counts_.Add("branch: claim rests bound");
  if (!taken.insert(name).second)
    world_.Violation(fmt::format("volume {} is bound to {} and to another claim", name, key));
  const auto volume = volumes_.find(name);
  if (volume == volumes_.end() || !IsBound(volume->second.object) ||
      volume->second.object["spec"]["claimRef"]["uid"] != claim["metadata"]["uid"])
    world_.Violation(fmt::format("claim {} is bound to {}, which does not say so", key, name));
}

void ClaimChapter::JudgeVolume(const json::Value& volume) {
  const std::string name = volume["metadata"]["name"].Str();
  const std::string_view uid = volume["spec"]["claimRef"]["uid"].AsString();
  const std::string_view phase = volume["status"]["phase"].AsString();
  const Known* claim = uid.empty() ? nullptr : ClaimWithUid(uid);
  const bool held = claim != nullptr && VolumeName(claim->object) == name;
  if (held != (phase == "Bound")) world_.Violation(fmt::format("volume {} is {}", name, phase));
  if (held) return;
  if (!uid.empty() && phase != "Released" && phase != "Failed")
    world_.Violation(fmt::format("volume {} of a claim that is gone is {}", name, phase));
  const bool is_kept = volume["spec"]["persistentVolumeReclaimPolicy"].AsString() == "Retain";
  if (IsLocalPathVolume(volume) && !is_kept)
    world_.Violation(fmt::format("volume {} was made for a claim that is gone", name));
  if (is_kept && !uid.empty()) counts_.Add("branch: a volume is kept after its claim");
}

void ClaimChapter::Judge() {
  std::set<std::string> taken;
  for (const auto& [key, claim] : claims_) JudgeClaim(claim.object, taken);
  for (const auto& [name, volume] : volumes_) JudgeVolume(volume.object);
  for (size_t i = 0; i < world_.nodes(); ++i) {
    for (const std::string& folder : world_.machine(i).folders()) {
      if (!volumes_.contains(folder) && !abandoned_.contains(folder))
        world_.Violation(
            fmt::format("{} has a folder of {}, which is gone", world_.node_name(i), folder));
    }
  }
}

}  // namespace muster::simulation
