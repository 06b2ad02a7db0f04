// DELETE on an object and on a collection.

#include "apiserver/admission/admission.h"
#include "apiserver/admitted_write.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/list_body.h"
#include "apiserver/list_parameters.h"
#include "apiserver/reply.h"
#include "apiserver/selection.h"
#include "apiserver/stored_object.h"

namespace muster::apiserver {
namespace {

// Objects of a collection that one loop task deletes; where webhooks are asked, that are under way.
constexpr size_t kDeletesPerTask = 50;

// So far this is so for Jobs alone, in whose version of the API it may not change any more.
void WarnOfOrphans(Call& call, const Resource& resource, const DeleteOptions& options) {
  if (options.propagation || !resource.strategy->orphans_by_default()) return;
  call.Warn(
      "child pods are preserved by default when jobs are deleted; set "
      "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
      "this warning");
}

void ReplyDeleted(Core& core, Call& call, const ResourcePtr& resource, const AnswerFormat& format,
                  const Result<Deleted>& deleted) {
  if (!deleted) return call.Fail(deleted.error());
  if (deleted->removed && !resource->strategy->returns_deleted_object()) {
    const json::Value object = DecodeStored(*resource->kind, *deleted->entry->value);
    return call.Reply(200, SuccessObject(*resource->kind, call.info().name,
                                         object["metadata"]["uid"].AsString()));
  }
  ReplyEntry(core, call, format, 200, deleted->entry);
}

Status Delete(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  ASSIGN_OR_RETURN(AnswerFormat format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(const DeleteOptions options, ParseDeleteOptions(*call));
  WarnOfOrphans(*call, *resource, options);
  const std::string ns = resource->kind->namespaced ? call->info().ns : "";
  AdmittedDelete(core, call, resource, ns, call->info().name, options,
                 [&core, call, resource, format](const Result<Deleted>& deleted) {
                   ReplyDeleted(core, *call, resource, format, deleted);
                 });
  return Status::Ok();
}

// One DELETE of a collection under way: the objects that were there when it came, deleted a few per
// loop task.
struct CollectionDeletion : std::enable_shared_from_this<CollectionDeletion> {
  CollectionDeletion(Core& core, CallPtr call, ResourcePtr resource)
      : core(core), call(std::move(call)), resource(std::move(resource)) {}

  void Step() {
    posted = false;
    for (size_t i = 0; i < kDeletesPerTask && next < entries.size() && !Crowded(); ++i) {
      const KeyParts parts = ParseKey(entries[next++]->key);
      ++in_flight;
      AdmittedDelete(core, call, resource, std::string(parts.ns), std::string(parts.name), options,
                     [self = shared_from_this()](const Result<Deleted>& deleted) {
                       self->OnDeleted(deleted);
                     });
    }
    GoOn();
  }

  bool Crowded() const { return !core.admission->idle() && in_flight >= kDeletesPerTask; }

  void GoOn() {
    if (next == entries.size()) return FinishIfDone();
    if (posted || Crowded()) return;
    posted = true;
    core.loop.Post(core.Guarded([self = shared_from_this()] { self->Step(); }));
  }

  void OnDeleted(const Result<Deleted>& deleted) {
    --in_flight;
    // Somebody else was faster: that is what was wanted.
    if (!deleted && deleted.error().reason() != Reason::kNotFound && failure.ok())
      failure = deleted.error();
    GoOn();
  }

  void FinishIfDone() {
    if (in_flight > 0 || next < entries.size() || finished) return;
    finished = true;
    if (!failure.ok()) return call->Fail(failure);
    ListFacts facts;
    facts.revision = core.store.CommittedRevision();
    ReplyList(core, call,
              ListBody(format, std::exchange(entries, {}), facts, nullptr, core.loop.Now()));
  }

  Core& core;
  CallPtr call;
  ResourcePtr resource;
  AnswerFormat format;
  DeleteOptions options;
  std::vector<store::EntryPtr> entries;
  size_t next = 0;
  size_t in_flight = 0;
  bool posted = false;  // the next step
  bool finished = false;
  Status failure;
};

Status DeleteCollection(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (resource->kind->namespaced && call->info().ns.empty()) return MethodNotAllowedError();
  auto deletion = std::make_shared<CollectionDeletion>(core, call, resource);
  ASSIGN_OR_RETURN(deletion->format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(deletion->options, ParseDeleteOptions(*call));
  WarnOfOrphans(*call, *resource, deletion->options);
  ASSIGN_OR_RETURN(const SelectionPtr selection, Selection::Make(resource->kind, call->info()));
  ASSIGN_OR_RETURN(store::RangeResult range, core.store.Range(selection->prefix(), "", 0, 0));
  for (store::EntryPtr& entry : range.entries) {
    if (selection->everything() || selection->Matches(*entry))
      deletion->entries.push_back(std::move(entry));
  }
  deletion->Step();
  return Status::Ok();
}

}  // namespace

void HandleDelete(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = Delete(core, call, resource); !status.ok()) call->Fail(status);
}

void HandleDeleteCollection(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = DeleteCollection(core, call, resource); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
