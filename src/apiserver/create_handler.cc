// POST on a collection.

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

Status CheckCreatable(const Resource& resource, const RequestInfo& info) {
  if (resource.kind->namespaced && info.ns.empty()) return MethodNotAllowedError();
  if (resource.terminating) {
    return Error(Reason::kMethodNotAllowed,
                 "create not allowed while custom resource definition is terminating");
  }
  return Status::Ok();
}

Status CheckSentMetadata(const RequestInfo& info, const schema::Kind& kind,
                         const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  const std::string_view ns = metadata["namespace"].AsString();
  if (!ns.empty() && ns != info.ns && kind.namespaced) {
    return Error(
        Reason::kBadRequest,
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  if (!metadata["resourceVersion"].AsString().empty()) {
    return Error(Reason::kBadRequest, "resourceVersion should not be set on objects to be created");
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
  RETURN_IF_ERROR(CheckSentMetadata(call->info(), *resource->kind, creation.object));
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
  ASSIGN_OR_RETURN(json::Value object,
                   PrepareCreate(core, *resource, context, std::move(creation.object)));
  call->Warn(context.warnings);
  CreateObject(core, resource, context, std::move(object),
               [&core, call, format = creation.format](Result<store::EntryPtr> entry) {
                 ReplyEntry(core, *call, format, 201, entry);
               });
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
