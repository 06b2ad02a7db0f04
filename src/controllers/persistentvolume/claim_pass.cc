#include "controllers/persistentvolume/claim_pass.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/persistentvolume/local_path.h"
#include "controllers/persistentvolume/storage_facts.h"
#include "controllers/persistentvolume/volume_matching.h"

namespace muster::controllers {
namespace {

using client::EventType;
namespace resources = client::resources;

// Names of probes.
constexpr char kVolume[] = "volume";
constexpr char kNode[] = "node";

// An event names no more of those that wait for a claim: upstream names all.
constexpr size_t kMaxPodsNamed = 10;

json::Value Annotate(std::string_view key, json::Value value) {
  return json::Obj({}).SetPath({"metadata", "annotations", key}, std::move(value));
}

class Pass {
 public:
  Pass(const client::View& view, const client::Observations& observations, const json::Value& claim,
       client::Reconciled& out)
      : volumes_(view.Of(resources::kPersistentVolumes)),
        classes_(view.Of(resources::kStorageClasses)),
        nodes_(view.Of(resources::kNodes)),
        pods_(view.Of(resources::kPods)),
        observations_(observations),
        claim_(claim),
        out_(out) {}

  void Run() {
    if (claim_["metadata"]["annotations"].Has(cluster::kBindCompletedAnnotation)) {
      SyncBound();
    } else if (!VolumeName().empty()) {
      SyncNamed();
    } else {
      SyncUnbound();
    }
  }

 private:
  std::string VolumeName() const { return claim_["spec"]["volumeName"].Str(); }
  std::string_view SelectedNode() const {
    return claim_["metadata"]["annotations"][cluster::kSelectedNodeAnnotation].AsString();
  }

  // -- What it was bound to must still be there.

  void SyncBound() {
    const std::string name = VolumeName();
    if (name.empty()) {
      return Lose(
          "ClaimLost",
          "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
    }
    const json::Value* volume = volumes_.Find({"", name});
    if (volume == nullptr) {
      const auto answer = observations_.find(kVolume);
      if (answer == observations_.end())
        return out_.Ask(kVolume, {resources::kPersistentVolumes, "", name, ""});
      if (!answer->second.IsNull()) return;  // the informer will show it
      return Lose("ClaimLost",
                  "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    }
    const json::Value& reference = (*volume)["spec"]["claimRef"];
    if (reference.IsNull() || reference["uid"].AsString() == claim_["metadata"]["uid"].AsString()) {
      return Bind(*volume);
    }
    Lose("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");
  }

  void Lose(const char* reason, const char* message) {
    if (SetStatus("Lost", json::Value(), json::Value()))
      out_.Event(claim_, EventType::kWarning, reason, message);
  }

  // -- Somebody named the volume that it is to have.

  void SyncNamed() {
    const std::string name = VolumeName();
    const json::Value* volume = volumes_.Find({"", name});
    if (volume == nullptr) return Pend();
    if ((*volume)["spec"]["claimRef"].IsNull()) {
      const std::string mismatch = MismatchOf(*volume, claim_);
      if (mismatch.empty()) return Bind(*volume);
      out_.Event(claim_, EventType::kWarning, "VolumeMismatch",
                 fmt::format("Cannot bind to requested volume \"{}\": {}", name, mismatch));
    } else if (IsFor(*volume, claim_)) {
      return Bind(*volume);
    } else {
      out_.Event(claim_, EventType::kWarning, "FailedBinding",
                 fmt::format("volume \"{}\" already bound to a different claim.", name));
    }
    Pend();
  }

  // -- It has none yet.

  void SyncUnbound() {
    const std::string class_name = ClassOf(claim_);
    const json::Value* storage_class =
        class_name.empty() ? nullptr : classes_.Find({"", class_name});
    const bool waits = storage_class != nullptr && SelectedNode().empty() &&
                       (*storage_class)["volumeBindingMode"].AsString() == "WaitForFirstConsumer";
    if (const json::Value* volume = FindVolumeFor(claim_, volumes_, waits)) return Bind(*volume);
    if (IsBeingDeleted(claim_)) return;
    if (!NamesClass(claim_)) {
      if (const json::Value* found = DefaultClass(classes_)) return Assign(*found);
    }
    if (class_name.empty()) {
      out_.Event(claim_, EventType::kNormal, "FailedBinding",
                 "no persistent volumes available for this claim and no storage class is set");
    } else if (waits) {
      SayWhoWaits();
    } else if (storage_class == nullptr) {
      FailProvisioning(fmt::format("storageclass.storage.k8s.io \"{}\" not found", class_name));
    } else {
      Provision(*storage_class);
    }
    Pend();
  }

  void SayWhoWaits() {
    std::vector<std::string> pods = UnscheduledPodsOf(pods_, client::KeyOf(claim_));
    if (pods.empty()) {
      return out_.Event(claim_, EventType::kNormal, "WaitForFirstConsumer",
                        "waiting for first consumer to be created before binding");
    }
    const char* what = pods.size() == 1 ? "pod" : "pods";
    if (pods.size() > kMaxPodsNamed) {
      pods.resize(kMaxPodsNamed);
      pods.emplace_back("...");
    }
    out_.Event(claim_, EventType::kNormal, "WaitForPodScheduled",
               fmt::format("waiting for {} {} to be scheduled", what, Join(pods, ",")));
  }

  // Of a claim that was made before there was a default.
  void Assign(const json::Value& storage_class) {
    const json::Value spec = json::Obj({{"storageClassName", storage_class["metadata"]["name"]}});
    Patch(json::Obj({{"spec", spec}}));
  }

  void FailProvisioning(std::string why) {
    out_.Event(claim_, EventType::kWarning, "ProvisioningFailed", std::move(why));
  }

  void Provision(const json::Value& storage_class) {
    const std::string provisioner = storage_class["provisioner"].Str();
    if (provisioner == schema::kLocalPathProvisioner) return ProvisionLocal(storage_class);
    if (provisioner.starts_with("kubernetes.io/")) {
      return FailProvisioning(fmt::format("no volume plugin matched name: {}", provisioner));
    }
    NameProvisioner(provisioner);
    out_.Event(claim_, EventType::kNormal, "ExternalProvisioning",
               fmt::format("Waiting for a volume to be created either by the external provisioner "
                           "'{}' or manually by the system administrator. If volume creation is "
                           "delayed, please verify that the provisioner is running and correctly "
                           "registered.",
                           provisioner));
  }

  // Drivers look for it.
  void NameProvisioner(const std::string& provisioner) {
    json::Value wanted = json::Obj({});
    for (const std::string_view key : {kProvisionerAnnotation, kProvisionerBetaAnnotation}) {
      if (claim_["metadata"]["annotations"][key].AsString() != provisioner)
        wanted = std::move(wanted).Set(key, provisioner);
    }
    if (!wanted.empty())
      Patch(json::Obj({{"metadata", json::Obj({{"annotations", std::move(wanted)}})}}));
  }

  void ProvisionLocal(const json::Value& storage_class) {
    if (std::string why = WhyNotLocal(claim_, storage_class); !why.empty())
      return FailProvisioning(std::move(why));
    const std::string name = LocalVolumeName(claim_);
    // If it is one that goes, another follows it.
    if (volumes_.Find({"", name}) != nullptr) return;
    const std::string node_name(SelectedNode());
    const json::Value* node = nodes_.Find({"", node_name});
    if (node == nullptr) {
      const auto answer = observations_.find(kNode);
      if (answer == observations_.end())
        return out_.Ask(kNode, {resources::kNodes, "", node_name, ""});
      if (answer->second.IsNull()) return Reschedule(node_name);
      node = &answer->second;
    }
    if (HostnameOf(*node).empty()) {
      return FailProvisioning(
          fmt::format("node \"{}\" has no label {}, by which volumes name their node: add it",
                      node_name, cluster::kHostnameLabel));
    }
    NameProvisioner(std::string(schema::kLocalPathProvisioner));
    out_.Create({resources::kPersistentVolumes, "", name, ""},
                MakeLocalVolume(claim_, storage_class, *node));
    out_.subject = claim_;
    out_.Event(claim_, EventType::kNormal, "ProvisioningSucceeded",
               fmt::format("Successfully provisioned volume {} using {}", name,
                           schema::kLocalPathProvisioner));
  }

  // The scheduler may select another node.
  void Reschedule(const std::string& node) {
    Patch(Annotate(cluster::kSelectedNodeAnnotation, json::Value()));
    FailProvisioning(fmt::format("failed to get target node: nodes \"{}\" not found", node));
  }

  // -- The two sides of a binding.

  void Bind(const json::Value& volume) {
    BindVolume(volume);
    json::Value patch = json::Obj({});
    const json::Value& annotations = claim_["metadata"]["annotations"];
    const auto annotate = [&](std::string_view key) {
      if (!annotations.Has(key))
        patch = std::move(patch).SetPath({"metadata", "annotations", key}, "yes");
    };
    const json::Value& name = volume["metadata"]["name"];
    if (claim_["spec"]["volumeName"] != name) {
      patch = std::move(patch).SetPath({"spec", "volumeName"}, name);
      annotate(cluster::kBoundByControllerAnnotation);
    }
    annotate(cluster::kBindCompletedAnnotation);
    if (!patch.empty()) Patch(std::move(patch));
    SetStatus("Bound", volume["spec"]["accessModes"], volume["spec"]["capacity"]["storage"]);
  }

  void BindVolume(const json::Value& volume) {
    const client::Target target{resources::kPersistentVolumes, "", volume["metadata"]["name"].Str(),
                                ""};
    json::Value patch = json::Obj({});
    const json::Value& metadata = claim_["metadata"];
    if (!IsFor(volume, claim_) || volume["spec"]["claimRef"]["uid"] != metadata["uid"]) {
      patch = std::move(patch).SetPath(
          {"spec", "claimRef"}, json::Obj({{"apiVersion", "v1"},
                                           {"kind", "PersistentVolumeClaim"},
                                           {"namespace", metadata["namespace"]},
                                           {"name", metadata["name"]},
                                           {"uid", metadata["uid"]},
                                           {"resourceVersion", metadata["resourceVersion"]}}));
    }
    // A user who kept it for the claim keeps it beyond the claim's end.
    const std::string_view by_controller = cluster::kBoundByControllerAnnotation;
    if (!IsFor(volume, claim_) && !volume["metadata"]["annotations"].Has(by_controller))
      patch = std::move(patch).SetPath({"metadata", "annotations", by_controller}, "yes");
    const bool is_bound = volume["status"]["phase"].AsString() == "Bound";
    const bool changes = !patch.empty();
    if (changes) out_.PatchMerge(target, GuardedPatch(volume, std::move(patch)));
    if (is_bound) return;
    patch = json::Obj({{"status", json::Obj({{"phase", "Bound"}, {"message", json::Value()}})}});
    client::Target status = target;
    status.subresource = "status";
    // After the first patch the volume is as that one left it.
    out_.PatchMerge(status, changes ? PatchOf(volume, std::move(patch))
                                    : GuardedPatch(volume, std::move(patch)));
  }

  // -- Writes to the claim: the first of a pass is for the claim as it was seen.

  void Patch(json::Value patch) { Write("", std::move(patch)); }

  void Write(const char* subresource, json::Value patch) {
    const client::ObjectKey key = client::KeyOf(claim_);
    patch = std::exchange(patched_, true) ? PatchOf(claim_, std::move(patch))
                                          : GuardedPatch(claim_, std::move(patch));
    out_.PatchMerge({resources::kPersistentVolumeClaims, key.ns, key.name, subresource},
                    std::move(patch));
  }

  void Pend() { SetStatus("Pending", json::Value(), json::Value()); }

  // True if it is another phase than before.
  bool SetStatus(const char* phase, const json::Value& modes, const json::Value& storage) {
    const json::Value& status = claim_["status"];
    const bool is_new = status["phase"].AsString() != phase;
    const bool same_modes =
        modes.IsNull() ? status["accessModes"].empty() : status["accessModes"] == modes;
    const bool same_storage =
        storage.IsNull() ? status["capacity"].empty() : status["capacity"]["storage"] == storage;
    if (!is_new && same_modes && same_storage) return false;
    const json::Value capacity =
        storage.IsNull() ? json::Value() : json::Obj({{"storage", storage}});
    Write("status",
          json::Obj(
              {{"status",
                json::Obj({{"phase", phase}, {"accessModes", modes}, {"capacity", capacity}})}}));
    return is_new;
  }

  const client::Informer& volumes_;
  const client::Informer& classes_;
  const client::Informer& nodes_;
  const client::Informer& pods_;
  const client::Observations& observations_;
  const json::Value& claim_;
  client::Reconciled& out_;
  bool patched_ = false;
};

}  // namespace

void SyncClaim(const client::View& view, const client::Observations& observations,
               const json::Value& claim, client::Reconciled& out) {
  Pass(view, observations, claim, out).Run();
}

}  // namespace muster::controllers
