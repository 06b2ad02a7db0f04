// PUT and PATCH on an object, on its status, and PUT on namespaces/NAME/finalize.

#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_codec.h"
#include "apiserver/object_writer.h"
#include "apiserver/reply.h"
#include "apiserver/update.h"
#include "json/patch.h"
#include "schema/conversion.h"
#include "schema/strategic_merge.h"

namespace muster::apiserver {
namespace {

UpdateScope ScopeOf(const RequestInfo& info) {
  return info.subresource == "status" ? UpdateScope::kStatus : UpdateScope::kMain;
}

WriteContext ContextOf(Core& core, const schema::Kind& kind, const Call& call, bool dry_run) {
  const RequestInfo& info = call.info();
  return {kind,        kind.namespaced ? info.ns : "", info.name, core.loop.Now(), dry_run, {},
          &call.user()};
}

void Replace(Core& core, const CallPtr& call, const ResourcePtr& resource, WriteContext& context,
             const Found& found, json::Value after, const AnswerFormat& format) {
  call->Warn(context.warnings);
  ReplaceObject(core, resource, context, found, std::move(after),
                [&core, call, format](Result<store::EntryPtr> entry) {
                  ReplyEntry(core, *call, format, 200, entry);
                });
}

Status Update(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  ASSIGN_OR_RETURN(AnswerFormat format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(const bool dry_run, DryRunOf(call->info(), "UpdateOptions"));
  ASSIGN_OR_RETURN(json::Value object, DecodeObject(*call, *call->Spoken(resource->kind)));
  WriteContext context = ContextOf(core, *resource->kind, *call, dry_run);
  ASSIGN_OR_RETURN(const Found found, FindObject(core, *resource->kind, context.ns, context.name));
  ASSIGN_OR_RETURN(json::Value after, PrepareUpdate(*resource, context, found.object,
                                                    std::move(object), ScopeOf(call->info())));
  Replace(core, call, resource, context, found, std::move(after), format);
  return Status::Ok();
}

Result<json::Value> ApplyPatch(const schema::Kind& kind, std::string_view type,
                               const json::Value& object, const json::Value& patch) {
  if (type == "application/json-patch+json") return json::ApplyJsonPatch(object, patch);
  if (!patch.IsObject())
    return Error(Reason::kBadRequest, "a patch of type {} must be a JSON object", type);
  if (type == "application/merge-patch+json") return json::ApplyMergePatch(object, patch);
  return schema::StrategicMerge(*kind.schema, object, patch);
}

Result<std::string> PatchTypeOf(const schema::Kind& kind, const net::Request& request) {
  const std::string type = ParseMediaType(request.headers.Get("Content-Type")).type;
  const bool strategic = type == "application/strategic-merge-patch+json";
  if (type == "application/json-patch+json" || type == "application/merge-patch+json" ||
      (strategic && !kind.custom)) {
    return type;
  }
  if (type.starts_with("application/apply-patch+")) {
    return Error(Reason::kUnsupportedMediaType,
                 "server-side apply ({}) is not served yet: apply without --server-side, or send a "
                 "merge patch",
                 type);
  }
  return Error(
      Reason::kUnsupportedMediaType,
      "the body of the request was in an unknown format - accepted media types include: {}",
      kind.custom ? "application/json-patch+json, application/merge-patch+json"
                  : "application/json-patch+json, application/merge-patch+json, "
                    "application/strategic-merge-patch+json");
}

Status Patch(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  const schema::Kind& kind = *call->Spoken(resource->kind);
  ASSIGN_OR_RETURN(AnswerFormat format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(const bool dry_run, DryRunOf(call->info(), "PatchOptions"));
  ASSIGN_OR_RETURN(const std::string type, PatchTypeOf(kind, call->request()));
  ASSIGN_OR_RETURN(const DecodedBody body, DecodeBody("application/json", call->request()));
  WriteContext context = ContextOf(core, *resource->kind, *call, dry_run);
  ASSIGN_OR_RETURN(const Found found, FindObject(core, *resource->kind, context.ns, context.name));
  ASSIGN_OR_RETURN(json::Value patched,
                   ApplyPatch(kind, type, schema::FromStored(kind, found.object), body.value));
  if (!patched.IsObject()) return Error(Reason::kBadRequest, "the patch leaves no object");
  ASSIGN_OR_RETURN(patched, ConformObject(*call, kind, patched, body.duplicate_keys));
  ASSIGN_OR_RETURN(json::Value after, PrepareUpdate(*resource, context, found.object,
                                                    std::move(patched), ScopeOf(call->info())));
  Replace(core, call, resource, context, found, std::move(after), format);
  return Status::Ok();
}

// Only spec.finalizers count; everything else in the body is ignored, as upstream.
Status Finalize(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  ASSIGN_OR_RETURN(AnswerFormat format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(json::Value object, DecodeObject(*call, *resource->kind));
  WriteContext context{*resource->kind, "", call->info().name, core.loop.Now(), false, {}};
  ASSIGN_OR_RETURN(const Found found, FindObject(core, *resource->kind, "", context.name));
  const json::Value* finalizers = object["spec"].Find("finalizers");
  json::Value after = finalizers != nullptr
                          ? found.object.SetPath({"spec", "finalizers"}, *finalizers)
                          : found.object.RemovePath({"spec", "finalizers"});
  Replace(core, call, resource, context, found, std::move(after), format);
  return Status::Ok();
}

}  // namespace

void HandleUpdate(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = Update(core, call, resource); !status.ok()) call->Fail(status);
}

void HandlePatch(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = Patch(core, call, resource); !status.ok()) call->Fail(status);
}

void HandleFinalizeNamespace(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = Finalize(core, call, resource); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
