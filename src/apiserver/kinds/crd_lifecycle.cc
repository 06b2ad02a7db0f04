#include "apiserver/kinds/crd_lifecycle.h"

#include <algorithm>

#include "apiserver/deletion.h"
#include "apiserver/errors.h"
#include "apiserver/kinds/crd_strategy.h"
#include "apiserver/object_writer.h"
#include "apiserver/stored_object.h"
#include "base/log.h"
#include "schema/crd.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

// Objects of a definition that one loop task deletes.
constexpr size_t kCleanupPage = 50;

ResourcePtr CrdResource(const Core& core) {
  return core.registry.Find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
}

std::string PrefixOf(const json::Value& crd) {
  schema::Kind kind;
  kind.group = crd["spec"]["group"].Str();
  kind.plural = crd["spec"]["names"]["plural"].Str();
  return KeyPrefix(kind);
}

}  // namespace

CrdLifecycle::~CrdLifecycle() {
  for (const auto& [name, cleanup] : cleanups_) core_.store.CancelWatch(cleanup.watch);
}

void CrdLifecycle::Load() {
  const schema::Kind& kind = *CrdResource(core_)->kind;
  const Result<store::RangeResult> range = core_.store.Range(KeyPrefix(kind), "", 0, 0);
  if (!range) return;
  for (const store::EntryPtr& entry : range->entries) Serve(DecodeStored(kind, *entry->value));
}

void CrdLifecycle::OnCommit(const json::Value* before, const json::Value* after) {
  if (after != nullptr) return Serve(*after);
  const std::string name = (*before)["metadata"]["name"].Str();
  core_.registry.RemoveCustom(name);
  core_.hubs.Close(PrefixOf(*before));
  if (const auto cleanup = cleanups_.find(name); cleanup != cleanups_.end()) {
    core_.store.CancelWatch(cleanup->second.watch);
    cleanups_.erase(cleanup);
  }
}

void CrdLifecycle::Serve(const json::Value& crd) {
  const std::string name = crd["metadata"]["name"].Str();
  const bool terminating = crd["metadata"].Has("deletionTimestamp");
  if (!IsEstablished(crd)) {
    core_.registry.RemoveCustom(name);
  } else if (Result<std::vector<schema::KindPtr>> kinds = schema::KindsFromCrd(crd)) {
    core_.registry.SetCustom(name, std::move(*kinds), terminating);
  } else {
    LOG_ERROR("apiserver: cannot serve a stored definition crd={} error={:?}", name,
              kinds.error().message());
  }
  if (terminating) {
    // Not from inside the commit: the definition itself is being told to watchers.
    core_.loop.Post(core_.Guarded([this, name] { BeginCleanup(name); }));
  }
}

void CrdLifecycle::BeginCleanup(const std::string& crd) {
  if (cleanups_.contains(crd)) return FinishIfEmpty(crd);
  const Result<Found> found = FindObject(core_, *CrdResource(core_)->kind, "", crd);
  if (!found) return;
  Cleanup& cleanup = cleanups_[crd];
  cleanup.prefix = PrefixOf(found->object);
  const auto watch =
      core_.store.Watch(cleanup.prefix, core_.store.CommittedRevision(),
                        [this, crd](const std::vector<store::WatchEvent>&) { FinishIfEmpty(crd); });
  if (watch) cleanup.watch = *watch;
  ContinueCleanup(crd);
}

void CrdLifecycle::ContinueCleanup(const std::string& crd) {
  const auto cleanup = cleanups_.find(crd);
  if (cleanup == cleanups_.end()) return;
  const Result<store::RangeResult> range =
      core_.store.Range(cleanup->second.prefix, cleanup->second.after, kCleanupPage, 0);
  if (!range) return;
  for (const store::EntryPtr& entry : range->entries) {
    cleanup->second.after = entry->key;
    const KeyParts parts = ParseKey(entry->key);
    const ResourcePtr resource = core_.registry.FindStored(parts.group, parts.plural);
    if (resource == nullptr) continue;
    DeleteObject(core_, resource, parts.ns, parts.name, {}, [](const Result<Deleted>&) {});
  }
  if (range->more) {
    core_.loop.Post(core_.Guarded([this, crd] { ContinueCleanup(crd); }));
  } else {
    FinishIfEmpty(crd);
  }
}

void CrdLifecycle::FinishIfEmpty(const std::string& crd) {
  const auto cleanup = cleanups_.find(crd);
  if (cleanup == cleanups_.end()) return;
  const Result<store::RangeResult> left = core_.store.Range(cleanup->second.prefix, "", 1, 0);
  if (!left || !left->entries.empty()) return;
  const ResourcePtr resource = CrdResource(core_);
  const Result<Found> found = FindObject(core_, *resource->kind, "", crd);
  if (!found) return;
  std::vector<std::string> finalizers = json::ToStrings(found->object["metadata"]["finalizers"]);
  if (std::erase(finalizers, kCrdCleanupFinalizer) == 0) return;
  json::Value after = finalizers.empty() ? found->object.RemovePath({"metadata", "finalizers"})
                                         : found->object.SetPath({"metadata", "finalizers"},
                                                                 json::Strings(finalizers));
  WriteContext context{*resource->kind, "", crd, core_.loop.Now(), false, {}};
  ReplaceObject(core_, resource, context, *found, std::move(after),
                [crd](const Result<store::EntryPtr>& entry) {
                  if (!entry)
                    LOG_WARN("apiserver: cannot finish a deletion crd={} error={:?}", crd,
                             entry.error().message());
                });
}

}  // namespace muster::apiserver
