#include "controllers/garbage/garbage_controller.h"

#include <algorithm>
#include <string>
#include <utility>

#include "controllers/finalizers.h"

namespace muster::controllers {
namespace {

using client::Reconciled;
namespace resources = client::resources;

constexpr char kForeground[] = "foregroundDeletion";
constexpr char kOrphan[] = "orphan";
constexpr Duration kLookAgainSoon = seconds(1);
constexpr Duration kLookAgainLater = minutes(1);  // at an owner of a kind that is not served

bool IsDeleting(const json::Value& object) { return object["metadata"].Has("deletionTimestamp"); }
std::string_view UidOf(const json::Value& object) { return object["metadata"]["uid"].AsString(); }

bool DeletesForeground(const json::Value& object) {
  return IsDeleting(object) && HasFinalizer(object, kForeground);
}

std::string GroupOf(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == api_version.npos ? "" : std::string(api_version.substr(0, slash));
}

// A merge patch of metadata that only applies to the state that was looked at.
json::Value MetadataPatch(const json::Value& object, const char* field, json::Value value) {
  return json::Obj(
      {{"metadata", json::Obj({{"uid", object["metadata"]["uid"]},
                               {"resourceVersion", object["metadata"]["resourceVersion"]},
                               {field, std::move(value)}})}});
}

json::Value OwnersWithout(const json::Value& object, const std::vector<std::string>& uids) {
  json::Array kept;
  for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (std::find(uids.begin(), uids.end(), owner["uid"].AsString()) == uids.end()) {
      kept.push_back(owner);
    }
  }
  return json::Value(std::move(kept));
}

json::Value OwnersUnblocked(const json::Value& object) {
  json::Array owners;
  for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
    owners.push_back(owner.Set("blockOwnerDeletion", false));
  }
  return json::Value(std::move(owners));
}

// One look at one object.
class Look {
 public:
  Look(const client::ResourceDiscovery& discovery, const Dependents& dependents,
       const client::View& view, const client::Observations& observations, const ObjectRef& ref,
       const json::Value& object, Time now)
      : discovery_(discovery),
        dependents_(dependents),
        view_(view),
        observations_(observations),
        ref_(ref),
        object_(object),
        now_(now) {}

  Reconciled Run() {
    if (IsDeleting(object_)) {
      if (HasFinalizer(object_, kOrphan)) {
        OrphanDependents();
      } else if (HasFinalizer(object_, kForeground)) {
        FinishForeground();
      }
    } else {
      JudgeByOwners();
    }
    return std::move(out_);
  }

 private:
  client::Target TargetOf(const ObjectRef& ref) const {
    return {ref.resource, ref.key.ns, ref.key.name, ""};
  }

  void RemoveFinalizer(std::string_view finalizer) {
    json::Array kept;
    for (const json::Value& one : object_["metadata"]["finalizers"].items()) {
      if (one.AsString() != finalizer) kept.push_back(one);
    }
    out_.PatchMerge(TargetOf(ref_),
                    MetadataPatch(object_, "finalizers", json::Value(std::move(kept))));
  }

  // Those that exist and name this object.
  std::vector<std::pair<ObjectRef, json::Value>> LivingDependents() const {
    std::vector<std::pair<ObjectRef, json::Value>> living;
    for (const ObjectRef& ref : dependents_.Of(UidOf(object_))) {
      const json::Value* dependent = view_.Of(ref.resource).Find(ref.key);
      if (dependent != nullptr) living.emplace_back(ref, *dependent);
    }
    return living;
  }

  void OrphanDependents() {
    const auto dependents = LivingDependents();
    for (const auto& [ref, dependent] : dependents) {
      out_.PatchMerge(TargetOf(ref),
                      MetadataPatch(dependent, "ownerReferences",
                                    OwnersWithout(dependent, {std::string(UidOf(object_))})));
    }
    if (dependents.empty()) RemoveFinalizer(kOrphan);
  }

  void FinishForeground() {
    for (const auto& [ref, dependent] : LivingDependents()) {
      for (const json::Value& owner : dependent["metadata"]["ownerReferences"].items()) {
        if (owner["uid"].AsString() == UidOf(object_) && owner["blockOwnerDeletion"].AsBool()) {
          return;
        }
      }
    }
    RemoveFinalizer(kForeground);
  }

  enum class Owner { kSolid, kWaiting, kGone, kAsked };

  // kWaiting: it goes once its dependents are gone.
  Owner StateOf(const json::Value& reference) {
    const std::string group = GroupOf(reference["apiVersion"].AsString());
    const client::ServedKind* kind = discovery_.Find(group, reference["kind"].AsString());
    if (kind == nullptr || (kind->namespaced && ref_.key.ns.empty())) {
      out_.LookAgainAt(now_ + (discovery_.Synced() ? kLookAgainLater : kLookAgainSoon));
      return Owner::kSolid;
    }
    const std::string ns = kind->namespaced ? ref_.key.ns : "";
    const std::string name = reference["name"].Str();
    const std::string uid = reference["uid"].Str();
    const json::Value* owner = view_.Of(kind->resource).Find({ns, name});
    if (owner != nullptr && UidOf(*owner) == uid) {
      return DeletesForeground(*owner) ? Owner::kWaiting : Owner::kSolid;
    }
    const auto answer = observations_.find(uid);
    if (answer == observations_.end()) {
      out_.Ask(uid, {kind->resource, ns, name, ""});
      return Owner::kAsked;
    }
    if (UidOf(answer->second) != uid) return Owner::kGone;
    return DeletesForeground(answer->second) ? Owner::kWaiting : Owner::kSolid;
  }

  void JudgeByOwners() {
    std::vector<std::string> leaving;  // gone or going
    bool solid = false, waiting = false, asked = false;
    for (const json::Value& reference : object_["metadata"]["ownerReferences"].items()) {
      const Owner state = StateOf(reference);
      solid |= state == Owner::kSolid;
      waiting |= state == Owner::kWaiting;
      asked |= state == Owner::kAsked;
      if (state == Owner::kWaiting || state == Owner::kGone) {
        leaving.push_back(reference["uid"].Str());
      }
    }
    if (asked || leaving.empty()) return;
    if (solid) {
      out_.PatchMerge(TargetOf(ref_),
                      MetadataPatch(object_, "ownerReferences", OwnersWithout(object_, leaving)));
      return;
    }
    DeleteIt(waiting);
  }

  void DeleteIt(bool owner_waits) {
    client::DeleteOptions options;
    options.precondition_uid = std::string(UidOf(object_));
    options.precondition_resource_version = object_["metadata"]["resourceVersion"].Str();
    options.propagation_policy = "Background";
    if (const auto dependents = LivingDependents(); owner_waits && !dependents.empty()) {
      const bool cycle = std::any_of(dependents.begin(), dependents.end(), [](const auto& entry) {
        return DeletesForeground(entry.second);
      });
      if (cycle && BlocksOwners()) {
        // Each would wait for the next for ever.
        out_.PatchMerge(TargetOf(ref_),
                        MetadataPatch(object_, "ownerReferences", OwnersUnblocked(object_)));
        return;
      }
      options.propagation_policy = "Foreground";
    } else if (HasFinalizer(object_, kOrphan)) {
      options.propagation_policy = "Orphan";
    } else if (HasFinalizer(object_, kForeground)) {
      options.propagation_policy = "Foreground";
    }
    out_.Delete(TargetOf(ref_), std::move(options));
  }

  bool BlocksOwners() const {
    const json::Array& owners = object_["metadata"]["ownerReferences"].items();
    return std::any_of(owners.begin(), owners.end(), [](const json::Value& owner) {
      return owner["blockOwnerDeletion"].AsBool();
    });
  }

  const client::ResourceDiscovery& discovery_;
  const Dependents& dependents_;
  const client::View& view_;
  const client::Observations& observations_;
  const ObjectRef& ref_;
  const json::Value& object_;
  const Time now_;
  Reconciled out_;
};

}  // namespace

GarbageController::GarbageController(client::ResourceDiscovery& discovery)
    : discovery_(discovery) {}

std::vector<client::Trigger> GarbageController::Setup(client::InformerSet& informers) {
  informers_ = &informers;
  return {};
}

void GarbageController::Attach(std::function<void(const client::ObjectKey&)> wake) {
  wake_ = std::move(wake);
  discovery_.Subscribe(lifetime_.Guard([this](const client::ServedKind& kind) {
    if (kind.resource == resources::kEvents) return;  // many, and never part of a tree
    informers_->Get(kind.resource)
        .Subscribe(
            {.on_change = lifetime_.Guard(
                 [this, resource = kind.resource](
                     const client::ObjectKey& key, const json::Value& before,
                     const json::Value& after) { OnChange({resource, key}, before, after); }),
             .on_synced = {}});
  }));
}

void GarbageController::WakeAll(const std::vector<ObjectRef>& refs) {
  for (const ObjectRef& ref : refs) wake_(ToKey(ref));
}

void GarbageController::OnChange(const ObjectRef& ref, const json::Value& before,
                                 const json::Value& after) {
  dependents_.Change(ref, before, after);
  const bool owned = !after["metadata"]["ownerReferences"].empty();
  if (owned || HasFinalizer(after, kOrphan) || DeletesForeground(after)) wake_(ToKey(ref));
  const bool gone = after.IsNull();
  const bool begins_foreground = DeletesForeground(after) && !DeletesForeground(before);
  if (gone || begins_foreground) WakeAll(dependents_.Of(UidOf(gone ? before : after)));
  // An owner may wait for this one to go, or to let go of it.
  const json::Value& old_owners = before["metadata"]["ownerReferences"];
  if (old_owners.empty() || (!gone && old_owners == after["metadata"]["ownerReferences"])) return;
  for (const json::Value& reference : old_owners.items()) {
    const client::ServedKind* kind =
        discovery_.Find(GroupOf(reference["apiVersion"].AsString()), reference["kind"].AsString());
    if (kind == nullptr) continue;
    wake_(ToKey({kind->resource, {kind->namespaced ? ref.key.ns : "", reference["name"].Str()}}));
  }
}

std::vector<client::ObjectKey> GarbageController::ExtraKeys() const {
  std::vector<client::ObjectKey> keys;
  for (const ObjectRef& ref : dependents_.All()) keys.push_back(ToKey(ref));
  return keys;
}

Reconciled GarbageController::Reconcile(const client::View& view,
                                        const client::Observations& observations,
                                        const client::ObjectKey& key, Time now, uint64_t) {
  const ObjectRef ref = FromKey(key);
  const client::Informer* informer = informers_->Find(ref.resource);
  const json::Value* object = informer == nullptr ? nullptr : informer->Find(ref.key);
  if (object == nullptr) return {};
  // An owner would be let go before the dependents that a cache has yet to show.
  if (IsDeleting(*object) && !(discovery_.Synced() && informers_->AllSynced())) {
    Reconciled later;
    later.LookAgainAt(now + kLookAgainSoon);
    return later;
  }
  return Look(discovery_, dependents_, view, observations, ref, *object, now).Run();
}

}  // namespace muster::controllers
