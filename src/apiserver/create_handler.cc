// POST on a collection.

#include "apiserver/answer.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_codec.h"
#include "apiserver/object_writer.h"
#include "apiserver/reply.h"

namespace muster::apiserver {
namespace {

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

// The write, or what is wrong with it.
Status Create(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  const schema::Kind& kind = *resource->kind;
  RETURN_IF_ERROR(CheckCreatable(*resource, call->info()));
  ASSIGN_OR_RETURN(AnswerFormat format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(const bool dry_run, DryRunOf(call->info(), "CreateOptions"));
  ASSIGN_OR_RETURN(json::Value object, DecodeObject(*call, kind));
  RETURN_IF_ERROR(CheckSentMetadata(call->info(), kind, object));
  WriteContext context{kind,
                       kind.namespaced ? call->info().ns : "",
                       object["metadata"]["name"].Str(),
                       core.loop.Now(),
                       dry_run,
                       {},
                       &call->user()};
  RETURN_IF_ERROR(CheckNamespace(core, kind, context.ns, context.name));
  ASSIGN_OR_RETURN(object, PrepareCreate(core, *resource, context, std::move(object)));
  call->Warn(context.warnings);
  CreateObject(core, resource, context, std::move(object),
               [&core, call, format](Result<store::EntryPtr> entry) {
                 ReplyEntry(core, *call, format, 201, entry);
               });
  return Status::Ok();
}

}  // namespace

void HandleCreate(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = Create(core, call, resource); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
