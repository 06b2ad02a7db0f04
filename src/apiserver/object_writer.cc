#include "apiserver/object_writer.h"

#include "apiserver/errors.h"
#include "apiserver/stored_object.h"
#include "apiserver/update.h"
#include "json/write.h"
#include "schema/advice.h"
#include "schema/defaulting.h"
#include "schema/queued_kinds.h"
#include "schema/registry.h"
#include "schema/unsupported_fields.h"
#include "schema/validation.h"

namespace muster::apiserver {
namespace {

// Takes the empty resourceVersion out of an object that was never stored.
void DropRevision(StoredForm& form) {
  constexpr std::string_view kKey = "\"resourceVersion\":";
  size_t start = form.revision_slot - kKey.size();
  size_t end = form.revision_slot + store::kRevisionSlotBytes;
  if (form.bytes[end] == ',') {
    ++end;
  } else if (form.bytes[start - 1] == ',') {
    --start;
  }
  form.bytes.erase(start, end - start);
  form.meta->metadata_bytes -= static_cast<uint32_t>(end - start);
  form.revision_slot = store::kNoRevisionSlot;
}

// An answer that is not in the store: `object` at the revision of `before`, or at none. Dry runs,
// and the state that let an object go.
store::EntryPtr AnswerEntry(const schema::Kind& kind, const store::Entry* before,
                            const json::Value& object) {
  auto entry = std::make_shared<store::Entry>();
  StoredForm form = EncodeStored(kind, object);
  if (before != nullptr) {
    *entry = *before;
    std::string text = fmt::format("\"{}\"", before->mod_revision);
    text.resize(store::kRevisionSlotBytes, ' ');
    form.bytes.replace(form.revision_slot, store::kRevisionSlotBytes, text);
  } else {
    DropRevision(form);
  }
  entry->revision_slot = static_cast<uint32_t>(form.revision_slot);
  entry->value = std::make_shared<const std::string>(std::move(form.bytes));
  entry->meta = std::move(form.meta);
  return entry;
}

store::Put MakePut(const Resource& resource, const WriteContext& context, const json::Value& object,
                   store::Revision expected) {
  StoredForm form = EncodeStored(*resource.kind, object);
  store::Put put;
  put.key = ObjectKey(*resource.kind, context.ns, context.name);
  put.value = std::move(form.bytes);
  put.revision_slot = form.revision_slot;
  put.expected = expected;
  put.meta = std::move(form.meta);
  put.durability = resource.strategy->durability();
  return put;
}

// What was just written is about to be read, where somebody here follows its kind.
void RememberLatest(Core& core, const std::string& key, const json::Value& object) {
  if (!core.hubs.FollowedHere(key)) return;
  const store::EntryPtr entry = core.store.GetLatest(key);
  if (entry != nullptr) core.trees.Remember(*entry, object);
}

// The metadata of a new object: what the server decides replaces what the client sent.
json::Value MetadataForCreate(Core& core, const Resource& resource, const WriteContext& context,
                              json::Value metadata) {
  for (std::string_view field :
       {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"}) {
    if (metadata.Has(field)) metadata = metadata.Remove(field);
  }
  metadata = std::move(metadata).Set("name", context.name);
  metadata = resource.kind->namespaced ? std::move(metadata).Set("namespace", context.ns)
                                       : metadata.Remove("namespace");
  metadata = std::move(metadata).Set("uid", core.rng.Uuid());
  metadata = std::move(metadata).Set("creationTimestamp", FormatTime(context.now));
  return resource.strategy->has_generation() ? std::move(metadata).Set("generation", 1)
                                             : metadata.Remove("generation");
}

Result<std::string> ChooseName(Core& core, const Resource& resource, const WriteContext& context,
                               const json::Value& metadata) {
  if (!metadata["name"].AsString().empty()) return metadata["name"].Str();
  const std::string_view generate = metadata["generateName"].AsString();
  if (generate.empty()) {
    return Error(schema::InvalidError(
        *resource.kind, "", {RequiredField("metadata.name", "name or generateName is required")}));
  }
  std::string name;
  for (int attempt = 0; attempt < kMaxNameAttempts; ++attempt) {
    name = std::string(generate.substr(0, kMaxGeneratedPrefix)) +
           core.rng.NameSuffix(kNameSuffixLetters);
    if (core.store.GetLatest(ObjectKey(*resource.kind, context.ns, name)) == nullptr) break;
  }
  return name;
}

// `stored`: the object as quotas know it; `found` may have been changed on its way out.
void Remove(Core& core, const ResourcePtr& resource, bool dry_run, const Found& found,
            const json::Value& stored, WriteDone done) {
  if (dry_run) return done(AnswerEntry(*resource->kind, found.entry.get(), found.object));
  const bool watches = resource->strategy->watches_commits();
  const QuotaTicket ticket =
      core.quotas->ChargeRemoval(*resource->kind, ParseKey(found.entry->key).ns, stored);
  auto shared_done = std::make_shared<WriteDone>(std::move(done));
  const Result<store::Revision> deleted = core.store.Delete(
      found.entry->key, found.entry->mod_revision, resource->strategy->durability(),
      [resource, watches, object = found.object, shared_done, quotas = core.quotas,
       ticket](Result<store::EntryPtr> entry) {
        quotas->Finish(ticket, entry.has_value());
        if (entry && watches) resource->strategy->Committed(&object, nullptr);
        (*shared_done)(std::move(entry));
      });
  if (!deleted) {
    core.quotas->Finish(ticket, false);
    return (*shared_done)(Error(deleted.error()));
  }
  core.quotas->Accepted(ticket, *deleted);
}

// Upstream drops these, too: the server decides them. `metadata`: as webhooks left it, to whom none
// of them was shown.
void WarnOfDropped(const json::Value& metadata, WriteContext& context) {
  for (const char* field : {"uid", "creationTimestamp", "generation", "deletionTimestamp"}) {
    if (!metadata[field].IsNull()) {
      Warn(context, fmt::format("metadata.{}: what a mutating webhook wrote there is dropped: the "
                                "server decides it",
                                field));
    }
  }
}

}  // namespace

Result<Found> FindObject(Core& core, const schema::Kind& kind, std::string_view ns,
                         std::string_view name) {
  Found found;
  found.entry = core.store.GetLatest(ObjectKey(kind, ns, name));
  if (found.entry == nullptr) return Error(NotFoundError(kind, name));
  found.object = core.trees.Of(kind, *found.entry);
  return found;
}

Status CheckNamespace(Core& core, const schema::Kind& kind, std::string_view ns,
                      std::string_view name) {
  if (!kind.namespaced) return Status::Ok();
  const schema::Kind& namespaces = *schema::Registry::BuiltIn().Find("", "v1", "namespaces");
  const store::EntryPtr entry = core.store.GetLatest(ObjectKey(namespaces, "", ns));
  if (entry == nullptr) return NotFoundError(namespaces, ns);
  if (!MetaOf(*entry).terminating) return Status::Ok();
  const Status forbidden = ForbiddenError(
      kind, name,
      fmt::format("unable to create new content in namespace {} because it is being terminated",
                  ns));
  StatusDetails details = forbidden.details();
  details.causes.push_back({"NamespaceTerminating", "metadata.namespace",
                            fmt::format("namespace {} is being terminated", ns)});
  return forbidden.WithDetails(std::move(details));
}

Status CheckMetadataForCreate(const schema::Kind& kind, std::string_view ns,
                              const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  const std::string_view said = metadata["namespace"].AsString();
  if (!said.empty() && said != ns && kind.namespaced) {
    return Error(
        Reason::kBadRequest,
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  if (!metadata["resourceVersion"].AsString().empty()) {
    return Error(Reason::kBadRequest, "resourceVersion should not be set on objects to be created");
  }
  return Status::Ok();
}

namespace {

// What is put into a queue does not begin before the queue says so: not a single pod of it is made.
void HoldForQueue(const schema::Kind& kind, json::Value& object) {
  const schema::QueuedKind* queued = schema::FindQueuedKind(kind.group, kind.kind);
  if (queued == nullptr || schema::QueueOf(object).empty()) return;
  object = schema::WithSuspended(*queued, object, true);
  if (queued->IsPod())
    object = object.SetPath({"metadata", "labels", std::string(schema::kManagedLabel)}, "true");
}

}  // namespace

Result<json::Value> FillCreate(Core& core, const Resource& resource, WriteContext& context,
                               json::Value object) {
  const schema::Kind& kind = *resource.kind;
  ASSIGN_OR_RETURN(context.name, ChooseName(core, resource, context, object["metadata"]));
  // Only of what the client sent, not of what is filled in below.
  for (const schema::UnsupportedField& field : schema::FindUnsupported(*kind.schema, object)) {
    Warn(context, field.ToString());
  }
  for (const std::string& advice : schema::Advise(kind, object)) Warn(context, advice);
  json::Value metadata = MetadataForCreate(core, resource, context, object["metadata"]);
  object = std::move(object).Set("metadata", std::move(metadata));
  if (kind.status_subresource && !resource.strategy->keeps_status_on_create())
    object = object.Remove("status");
  HoldForQueue(kind, object);
  RETURN_IF_ERROR(resource.strategy->PrepareCreate(context, object));
  return schema::ApplyDefaults(kind, std::move(object));
}

Result<json::Value> RefillCreate(const Resource& resource, WriteContext& context,
                                 const json::Value& filled, json::Value changed) {
  const schema::Kind& kind = *resource.kind;
  RETURN_IF_ERROR(CheckMetadataForCreate(kind, context.ns, changed));
  json::Value metadata = changed["metadata"];
  WarnOfDropped(metadata, context);
  for (std::string_view field :
       {"namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp",
        "deletionGracePeriodSeconds", "selfLink", "managedFields", "resourceVersion"}) {
    const json::Value* value = filled["metadata"].Find(field);
    metadata = value != nullptr ? metadata.Set(field, *value) : metadata.Remove(field);
  }
  context.name = metadata["name"].Str(context.name);
  metadata = std::move(metadata).Set("name", context.name);
  changed = std::move(changed).Set("metadata", std::move(metadata));
  if (kind.status_subresource && !resource.strategy->keeps_status_on_create())
    changed = changed.Remove("status");
  WarnOfNewFields(filled, changed, context);
  RETURN_IF_ERROR(resource.strategy->PrepareCreate(context, changed));
  return schema::ApplyDefaults(kind, std::move(changed));
}

Status ValidateCreate(const Resource& resource, const WriteContext& context,
                      const json::Value& object) {
  std::vector<StatusCause> causes = schema::Validate(*resource.kind, object);
  resource.strategy->Validate(context, nullptr, object, causes);
  if (causes.empty()) return Status::Ok();
  return schema::InvalidError(*resource.kind, context.name, std::move(causes));
}

Result<json::Value> PrepareCreate(Core& core, const Resource& resource, WriteContext& context,
                                  json::Value object) {
  ASSIGN_OR_RETURN(object, FillCreate(core, resource, context, std::move(object)));
  RETURN_IF_ERROR(ValidateCreate(resource, context, object));
  return object;
}

void CreateObject(Core& core, ResourcePtr resource, WriteContext& context, json::Value object,
                  WriteDone done) {
  const schema::Kind& kind = *resource->kind;
  if (core.store.GetLatest(ObjectKey(kind, context.ns, context.name)) != nullptr) {
    return done(Error(AlreadyExistsError(kind, context.name)));
  }
  if (Status status = resource->strategy->Reserve(context, nullptr, object); !status.ok())
    return done(Error(status));
  const Result<QuotaTicket> ticket = core.quotas->Charge(context, {}, object);
  if (!ticket) {
    if (!context.dry_run) resource->strategy->Abandon(nullptr, object);
    return done(Error(ticket.error()));
  }
  if (context.dry_run) return done(AnswerEntry(kind, nullptr, object));

  store::Put put = MakePut(*resource, context, object, 0);
  const std::string key = put.key;
  const bool watches = resource->strategy->watches_commits();
  auto shared_done = std::make_shared<WriteDone>(std::move(done));
  const Result<store::Revision> written = core.store.Write(
      std::move(put), [resource, watches, object, shared_done, quotas = core.quotas,
                       ticket = *ticket](Result<store::EntryPtr> entry) {
        quotas->Finish(ticket, entry.has_value());
        if (!entry) resource->strategy->Abandon(nullptr, object);
        if (entry && watches) resource->strategy->Committed(nullptr, &object);
        (*shared_done)(std::move(entry));
      });
  if (!written) {
    core.quotas->Finish(*ticket, false);
    resource->strategy->Abandon(nullptr, object);
    return (*shared_done)(Error(written.error()));
  }
  core.quotas->Accepted(*ticket, *written);
  RememberLatest(core, key, object);
}

void ReplaceObject(Core& core, ResourcePtr resource, WriteContext& context, const Found& before,
                   json::Value after, WriteDone done) {
  if (MayBeRemoved(*resource, after)) {
    WriteDone answer = [resource, after,
                        done = std::move(done)](Result<store::EntryPtr> entry) mutable {
      if (entry) entry = AnswerEntry(*resource->kind, entry->get(), after);
      done(std::move(entry));
    };
    return Remove(core, resource, context.dry_run, {before.entry, after}, before.object,
                  std::move(answer));
  }
  if (Status status = resource->strategy->Reserve(context, &before.object, after); !status.ok()) {
    return done(Error(status));
  }
  // What is there may itself be on its way to the disk: then the answer waits for a commit as well.
  const bool committed = core.store.Get(before.entry->key) == before.entry;
  if (after == before.object && committed) return done(before.entry);
  const Result<QuotaTicket> ticket = core.quotas->Charge(context, before.object, after);
  if (!ticket) {
    if (!context.dry_run) resource->strategy->Abandon(&before.object, after);
    return done(Error(ticket.error()));
  }
  if (context.dry_run) return done(AnswerEntry(*resource->kind, before.entry.get(), after));

  store::Put put = MakePut(*resource, context, after, before.entry->mod_revision);
  const std::string key = put.key;
  const bool watches = resource->strategy->watches_commits();
  auto shared_done = std::make_shared<WriteDone>(std::move(done));
  const Result<store::Revision> written = core.store.Write(
      std::move(put), [resource, watches, old = before.object, after, shared_done,
                       quotas = core.quotas, ticket = *ticket](Result<store::EntryPtr> entry) {
        quotas->Finish(ticket, entry.has_value());
        if (!entry) resource->strategy->Abandon(&old, after);
        if (entry && watches) resource->strategy->Committed(&old, &after);
        (*shared_done)(std::move(entry));
      });
  if (!written) {
    core.quotas->Finish(*ticket, false);
    resource->strategy->Abandon(&before.object, after);
    return (*shared_done)(Error(written.error()));
  }
  core.quotas->Accepted(*ticket, *written);
  RememberLatest(core, key, after);
}

void RemoveObject(Core& core, ResourcePtr resource, bool dry_run, const Found& found,
                  WriteDone done) {
  Remove(core, std::move(resource), dry_run, found, found.object, std::move(done));
}

store::EntryPtr EntryOf(const schema::Kind& kind, const json::Value& object) {
  return AnswerEntry(kind, nullptr, object);
}

bool MayBeRemoved(const Resource& resource, const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  return metadata.Has("deletionTimestamp") && metadata["finalizers"].empty() &&
         metadata["deletionGracePeriodSeconds"].AsInt() == 0 &&
         !resource.strategy->HasFurtherFinalizers(object);
}

}  // namespace muster::apiserver
