// POST on a collection.

#include <optional>

#include "apiserver/admission/admission.h"
#include "apiserver/answer.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_codec.h"
#include "apiserver/object_writer.h"
#include "apiserver/reply.h"

namespace muster::apiserver {
namespace {

// As long as upstream waits for a namespace's account; 40 looks are a second.
constexpr Duration kFurnitureInterval = milliseconds(25);
constexpr int kMaxFurnitureLooks = 40;
// As long as upstream gives quotas to be judged.
constexpr Duration kMaxCountWait = seconds(10);

Status CheckCreatable(const Resource& resource, const RequestInfo& info) {
  if (resource.kind->namespaced && info.ns.empty()) return MethodNotAllowedError();
  if (resource.terminating) {
    return Error(Reason::kMethodNotAllowed,
                 "create not allowed while custom resource definition is terminating");
  }
  return Status::Ok();
}

// A POST that was read.
struct Creation {
  AnswerFormat format;
  bool dry_run = false;
  json::Value object;
  int looks = 0;  // for what the object awaits
};

Result<Creation> ReadCreation(const CallPtr& call, const ResourcePtr& resource) {
  RETURN_IF_ERROR(CheckCreatable(*resource, call->info()));
  Creation creation;
  ASSIGN_OR_RETURN(creation.format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(creation.dry_run, DryRunOf(call->info(), "CreateOptions"));
  ASSIGN_OR_RETURN(creation.object, DecodeObject(*call, *call->Spoken(resource->kind)));
  RETURN_IF_ERROR(CheckMetadataForCreate(*resource->kind, call->info().ns, creation.object));
  return creation;
}

void Create(Core& core, const CallPtr& call, const ResourcePtr& resource, Creation creation);

void CreateLater(Core& core, const CallPtr& call, const ResourcePtr& resource, Creation creation) {
  ++creation.looks;
  ++core.waiting_creates;
  core.loop.After(kFurnitureInterval,
                  core.Guarded([&core, call, resource, creation = std::move(creation)]() mutable {
                    --core.waiting_creates;
                    Create(core, call, resource, std::move(creation));
                  }));
}

// A POST on its way through admission to the store.
struct AdmittedCreate {
  CallPtr call;
  ResourcePtr resource;
  AnswerFormat format;
  WriteContext context;
  bool named = false;              // by the client
  json::Value object;              // as it would be written
  std::optional<Time> counted_by;  // it waits until then for a quota to be counted
};
using AdmittedCreatePtr = std::shared_ptr<AdmittedCreate>;

void Store(Core& core, const AdmittedCreatePtr& create);

// Once more in a moment: a quota that just came to a large namespace is being counted.
void StoreLater(Core& core, const AdmittedCreatePtr& create) {
  if (!create->counted_by) create->counted_by = core.loop.Now() + kMaxCountWait;
  ++core.waiting_creates;
  core.loop.After(kFurnitureInterval, core.Guarded([&core, create] {
    --core.waiting_creates;
    const WriteContext& context = create->context;
    const Status status = CheckNamespace(core, context.kind, context.ns, context.name);
    status.ok() ? Store(core, create) : create->call->Fail(status);
  }));
}

void Store(Core& core, const AdmittedCreatePtr& create) {
  const WriteContext& context = create->context;
  const Time now = core.loop.Now();
  if (core.waiting_creates < kMaxWaitingCreates && now < create->counted_by.value_or(Time::max()) &&
      core.quotas->AwaitsCount(context.kind, context.ns, now)) {
    return StoreLater(core, create);
  }
  create->call->Warn(create->context.warnings);
  CreateObject(core, create->resource, create->context, std::move(create->object),
               [&core, create](const Result<store::EntryPtr>& entry) {
                 ReplyEntry(core, *create->call, create->format, 201, entry);
               });
}

// As mutating webhooks see it: before the server has put its marks on it, as upstream.
json::Value Unmarked(const json::Value& object, bool named) {
  json::Value metadata = object["metadata"];
  for (std::string_view field : {"uid", "creationTimestamp", "generation"})
    metadata = metadata.Remove(field);
  if (!named) metadata = metadata.Remove("name");
  return object.Set("metadata", std::move(metadata));
}

AdmissionRequest RequestOf(const AdmittedCreate& create, json::Value object) {
  AdmissionRequest request = MakeAdmissionRequest(create.call, create.resource, Operation::kCreate,
                                                  create.context.dry_run);
  if (create.named) request.name = create.context.name;
  if (create.resource->kind->plural == "namespaces" && create.resource->kind->group.empty())
    request.ns = request.name;
  request.object = std::move(object);
  return request;
}

Status Validate(Core& core, const AdmittedCreatePtr& create) {
  RETURN_IF_ERROR(ValidateCreate(*create->resource, create->context, create->object));
  core.admission->Validate(RequestOf(*create, create->object), [&core, create](Status status) {
    // The namespace may have gone while webhooks were asked.
    const WriteContext& context = create->context;
    if (status.ok()) status = CheckNamespace(core, context.kind, context.ns, context.name);
    if (!status.ok()) return create->call->Fail(status);
    Store(core, create);
  });
  return Status::Ok();
}

void Admit(Core& core, const AdmittedCreatePtr& create) {
  const json::Value sent = Unmarked(create->object, create->named);
  core.admission->Mutate(
      RequestOf(*create, sent), [&core, create, sent](const Result<json::Value>& changed) {
        if (!changed) return create->call->Fail(changed.error());
        if (!(*changed == sent)) {
          Result<json::Value> object =
              RefillCreate(*create->resource, create->context, create->object, *changed);
          if (!object) return create->call->Fail(object.error());
          create->object = std::move(*object);
        }
        if (const Status status = Validate(core, create); !status.ok()) create->call->Fail(status);
      });
}

// The write, or what is wrong with it.
Status TryCreate(Core& core, const CallPtr& call, const ResourcePtr& resource, Creation creation) {
  const schema::Kind& kind = *resource->kind;
  WriteContext context{kind,
                       kind.namespaced ? call->info().ns : "",
                       creation.object["metadata"]["name"].Str(),
                       core.loop.Now(),
                       creation.dry_run,
                       {},
                       &call->user()};
  RETURN_IF_ERROR(CheckNamespace(core, kind, context.ns, context.name));
  if (creation.looks < kMaxFurnitureLooks && core.waiting_creates < kMaxWaitingCreates &&
      resource->strategy->AwaitsFurniture(context, creation.object)) {
    CreateLater(core, call, resource, std::move(creation));
    return Status::Ok();
  }
  auto create = std::make_shared<AdmittedCreate>(
      AdmittedCreate{call, resource, std::move(creation.format), std::move(context)});
  create->named = !create->context.name.empty();
  ASSIGN_OR_RETURN(create->object,
                   FillCreate(core, *resource, create->context, std::move(creation.object)));
  if (!core.admission->idle()) {
    Admit(core, create);
    return Status::Ok();
  }
  RETURN_IF_ERROR(ValidateCreate(*resource, create->context, create->object));
  Store(core, create);
  return Status::Ok();
}

void Create(Core& core, const CallPtr& call, const ResourcePtr& resource, Creation creation) {
  if (Status status = TryCreate(core, call, resource, std::move(creation)); !status.ok())
    call->Fail(status);
}

}  // namespace

void HandleCreate(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  Result<Creation> creation = ReadCreation(call, resource);
  if (!creation) return call->Fail(creation.error());
  Create(core, call, resource, std::move(*creation));
}

}  // namespace muster::apiserver
