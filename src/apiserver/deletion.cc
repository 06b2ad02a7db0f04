#include "apiserver/deletion.h"

#include <algorithm>

#include "apiserver/errors.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";
constexpr std::string_view kOrphanFinalizer = "orphan";

Status CheckPreconditions(const schema::Kind& kind, std::string_view name,
                          const json::Value& metadata, const DeleteOptions& options) {
  const std::string_view uid = metadata["uid"].AsString();
  if (!options.uid.empty() && options.uid != uid) {
    return ConflictError(
        kind, name,
        fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                    options.uid, uid));
  }
  const std::string_view revision = metadata["resourceVersion"].AsString();
  if (!options.resource_version.empty() && options.resource_version != revision) {
    return ConflictError(
        kind, name,
        fmt::format("Precondition failed: ResourceVersion in precondition: {}, ResourceVersion in "
                    "object meta: {}",
                    options.resource_version, revision));
  }
  return Status::Ok();
}

// The garbage collector acts on these two finalizers; the policy of the latest DELETE counts.
json::Value SetPropagation(json::Value object, const std::optional<Propagation>& propagation) {
  if (!propagation) return object;
  std::vector<std::string> finalizers = json::ToStrings(object["metadata"]["finalizers"]);
  std::erase_if(finalizers, [](const std::string& one) {
    return one == kForegroundFinalizer || one == kOrphanFinalizer;
  });
  if (*propagation == Propagation::kForeground) finalizers.emplace_back(kForegroundFinalizer);
  if (*propagation == Propagation::kOrphan) finalizers.emplace_back(kOrphanFinalizer);
  if (finalizers.empty()) return object.RemovePath({"metadata", "finalizers"});
  return object.SetPath({"metadata", "finalizers"}, json::Strings(finalizers));
}

// What the client asked for; else what an earlier DELETE did; else what is usual for the kind.
std::optional<Propagation> PropagationFor(const Resource& resource, const json::Value& object,
                                          const DeleteOptions& options) {
  if (options.propagation || !resource.strategy->orphans_by_default()) return options.propagation;
  const std::vector<std::string> set = json::ToStrings(object["metadata"]["finalizers"]);
  if (std::ranges::find(set, kForegroundFinalizer) != set.end()) return std::nullopt;
  return Propagation::kOrphan;
}

json::Value Mark(const Resource& resource, json::Value object, Time when, int64_t grace_seconds) {
  const bool first = !object["metadata"].Has("deletionTimestamp");
  object =
      object.SetPath({"metadata", "deletionTimestamp"}, FormatTime(when + seconds(grace_seconds)));
  object = object.SetPath({"metadata", "deletionGracePeriodSeconds"}, grace_seconds);
  if (const json::Value* generation = object["metadata"].Find("generation");
      first && generation != nullptr) {
    object = object.SetPath({"metadata", "generation"}, generation->AsInt() + 1);
  }
  resource.strategy->MarkDeleted(object);
  return object;
}

// What the DELETE makes of the object: null when it may go at once.
json::Value Plan(const Resource& resource, const json::Value& object, const DeleteOptions& options,
                 Time now) {
  json::Value after = SetPropagation(object, PropagationFor(resource, object, options));
  const json::Value& metadata = object["metadata"];
  const Deletion deletion = resource.strategy->PlanDeletion(object, options.grace_period_seconds);
  const bool held =
      !after["metadata"]["finalizers"].empty() || resource.strategy->HasFurtherFinalizers(after);
  const bool marked = metadata.Has("deletionTimestamp");
  const int64_t grace = deletion.graceful ? deletion.grace_period_seconds : 0;
  const int64_t current_grace = metadata["deletionGracePeriodSeconds"].AsInt();
  if (!held && grace == 0) return nullptr;
  // A later DELETE may shorten the grace period, never lengthen it.
  if (marked && (grace >= current_grace || current_grace == 0)) return after;
  return Mark(resource, std::move(after), now, grace);
}

}  // namespace

void DeleteObject(Core& core, const ResourcePtr& resource, std::string_view ns,
                  std::string_view name, const DeleteOptions& options, DeleteDone done) {
  Result<Found> found = FindObject(core, *resource->kind, ns, name);
  if (!found) return done(Error(found.error()));
  if (Status status = CheckPreconditions(*resource->kind, name, found->object["metadata"], options);
      !status.ok()) {
    return done(Error(status));
  }
  if (Status status = resource->strategy->CheckDeletable(*resource->kind, found->object);
      !status.ok()) {
    return done(Error(status));
  }
  const Time now = core.loop.Now();
  json::Value after = Plan(*resource, found->object, options, now);
  const bool removed = after.IsNull();
  WriteDone finish = [removed, done = std::move(done)](Result<store::EntryPtr> entry) mutable {
    if (!entry) return done(Error(entry.error()));
    done(Deleted{*entry, removed});
  };
  if (removed) return RemoveObject(core, resource, options.dry_run, *found, std::move(finish));
  WriteContext context{
      *resource->kind, std::string(ns), std::string(name), now, options.dry_run, {}};
  ReplaceObject(core, resource, context, *found, std::move(after), std::move(finish));
}

}  // namespace muster::apiserver
