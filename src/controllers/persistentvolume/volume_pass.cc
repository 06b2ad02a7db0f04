#include "controllers/persistentvolume/volume_pass.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "controllers/finalizers.h"
#include "controllers/persistentvolume/storage_facts.h"
#include "controllers/persistentvolume/volume_matching.h"

namespace muster::controllers {
namespace {

using client::EventType;
namespace resources = client::resources;

constexpr char kClaim[] = "claim";  // a probe

class Pass {
 public:
  Pass(const client::View& view, const client::Observations& observations,
       const json::Value& volume, Time now, client::Reconciled& out)
      : claims_(view.Of(resources::kPersistentVolumeClaims)),
        nodes_(view.Of(resources::kNodes)),
        observations_(observations),
        volume_(volume),
        now_(now),
        out_(out),
        name_(volume["metadata"]["name"].Str()),
        phase_(volume["status"]["phase"].AsString()),
        policy_(volume["spec"]["persistentVolumeReclaimPolicy"].AsString()) {}

  void Run() {
    if (IsLocalPathVolume(volume_) && SyncFinalizer()) return;
    const json::Value& reference = volume_["spec"]["claimRef"];
    // Of a claim that is to come only the name is known.
    if (reference["uid"].AsString().empty()) return SetPhase("Available");
    const json::Value* claim = claims_.Find(ClaimOf(volume_));
    if (claim == nullptr || (*claim)["metadata"]["uid"] != reference["uid"]) return OnClaimGone();
    const std::string_view bound_to = (*claim)["spec"]["volumeName"].AsString();
    if (bound_to.empty()) {
      // The claim's pass binds the two.
      if (IsOfOtherMode(volume_, *claim)) TellOfMode(*claim);
    } else if (bound_to == name_) {
      SetPhase("Bound");
    } else if (policy_ == "Delete" &&
               !volume_["metadata"]["annotations"][kProvisionedByAnnotation].IsNull()) {
      Release();  // it was made for the claim, which took another
    } else {
      Unbind();
    }
  }

 private:
  // -- The finalizer of a local volume.

  // True if it wrote.
  bool SyncFinalizer() {
    const std::string_view finalizer = schema::kLocalPathProvisioner;
    const bool has = HasFinalizer(volume_, finalizer);
    const bool wants = policy_ == "Delete" && !IsAbandoned();
    if (has == wants || (!has && IsBeingDeleted(volume_))) return false;
    Patch(wants ? AddFinalizerPatch(volume_, finalizer) : RemoveFinalizerPatch(volume_, finalizer));
    return true;
  }

  // It is to go, no claim holds it any more (until then its node may be back and go on with it),
  // and its node is no more.
  bool IsAbandoned() {
    if (!IsBeingDeleted(volume_) || HasFinalizer(volume_, schema::kVolumeProtection)) return false;
    if (HasHost(nodes_, HostOf(volume_))) return false;
    const std::optional<Time> since = AwaitsRemovalSince();
    if (!since || now_ >= *since + kVolumeNodeQuarantine) return true;
    out_.LookAgainAt(*since + kVolumeNodeQuarantine);
    return false;
  }

  // It may have been deleted long before its claim let go of it.
  std::optional<Time> AwaitsRemovalSince() const {
    const std::optional<Time> deleted =
        ParseTime(volume_["metadata"]["deletionTimestamp"].AsString());
    const std::optional<Time> released =
        ParseTime(volume_["status"]["lastPhaseTransitionTime"].AsString());
    return std::max(deleted, released);
  }

  // -- Its claim is gone, or went elsewhere.

  bool IsReleased() const { return phase_ == "Released" || phase_ == "Failed"; }

  void OnClaimGone() {
    if (IsReleased()) return Reclaim();
    const auto answer = observations_.find(kClaim);
    const client::ObjectKey key = ClaimOf(volume_);
    if (answer == observations_.end()) {
      out_.Ask(kClaim, {resources::kPersistentVolumeClaims, key.ns, key.name, ""});
    } else if (answer->second["metadata"]["uid"] != volume_["spec"]["claimRef"]["uid"]) {
      Release();
    }
    // Else the informer will show it.
  }

  void Release() { return IsReleased() ? Reclaim() : SetPhase("Released"); }

  void Reclaim() {
    if (policy_ == "Recycle")
      return Fail("VolumeFailedRecycle", "No recycler plugin found for the volume!");
    if (policy_ != "Delete") return;
    const std::string maker = volume_["metadata"]["annotations"][kProvisionedByAnnotation].Str();
    if (IsLocalPathVolume(volume_)) {
      if (IsBeingDeleted(volume_)) return;
      client::DeleteOptions options;
      options.precondition_uid = volume_["metadata"]["uid"].Str();
      out_.Delete({resources::kPersistentVolumes, "", name_, ""}, std::move(options));
    } else if (maker.empty()) {
      Fail("VolumeFailedDelete",
           fmt::format("error getting deleter volume plugin for volume \"{}\": no deletable volume "
                       "plugin matched",
                       name_));
    } else if (maker.starts_with("kubernetes.io/")) {
      Fail("VolumeFailedDelete", fmt::format("no volume plugin matched name: {}", maker));
    }
    // Else its driver deletes it.
  }

  void Fail(const char* reason, const std::string& message) {
    if (phase_ == "Failed") return;
    SetPhase("Failed", message);
    out_.Event(volume_, EventType::kWarning, reason, message);
  }

  void Unbind() {
    const std::string_view by_controller = cluster::kBoundByControllerAnnotation;
    json::Value patch = json::Obj({});
    if (volume_["metadata"]["annotations"].Has(by_controller)) {
      patch = std::move(patch).SetPath({"spec", "claimRef"}, json::Value());
      patch = std::move(patch).SetPath({"metadata", "annotations", by_controller}, json::Value());
    } else {
      patch = std::move(patch).SetPath({"spec", "claimRef", "uid"}, json::Value());
    }
    Patch(GuardedPatch(volume_, std::move(patch)));
  }

  void TellOfMode(const json::Value& claim) {
    const std::string claim_name = claim["metadata"]["name"].Str();
    out_.Event(volume_, EventType::kWarning, "VolumeMismatch",
               fmt::format("Cannot bind PersistentVolume to requested PersistentVolumeClaim "
                           "\"{}\" due to incompatible volumeMode.",
                           claim_name));
    out_.Event(claim, EventType::kWarning, "VolumeMismatch",
               fmt::format("Cannot bind PersistentVolume \"{}\" to requested "
                           "PersistentVolumeClaim \"{}\" due to incompatible volumeMode.",
                           name_, claim_name));
  }

  // -- Writes.

  void Patch(json::Value patch) {
    out_.PatchMerge({resources::kPersistentVolumes, "", name_, ""}, std::move(patch));
  }

  void SetPhase(const char* phase, const std::string& message = "") {
    if (phase_ == phase) return;
    const json::Value said = message.empty() ? json::Value() : json::Value(message);
    const json::Value status = json::Obj({{"phase", phase}, {"message", said}});
    out_.PatchMerge({resources::kPersistentVolumes, "", name_, "status"},
                    GuardedPatch(volume_, json::Obj({{"status", status}})));
  }

  const client::Informer& claims_;
  const client::Informer& nodes_;
  const client::Observations& observations_;
  const json::Value& volume_;
  const Time now_;
  client::Reconciled& out_;
  const std::string name_;
  const std::string_view phase_, policy_;
};

}  // namespace

void SyncVolume(const client::View& view, const client::Observations& observations,
                const json::Value& volume, Time now, client::Reconciled& out) {
  Pass(view, observations, volume, now, out).Run();
}

}  // namespace muster::controllers
