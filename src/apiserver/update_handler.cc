// PUT and PATCH on an object, on its status, and PUT on namespaces/NAME/finalize.

#include "apiserver/admission/admission.h"
#include "apiserver/admitted_write.h"
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

void Write(Core& core, const CallPtr& call, const ResourcePtr& resource, bool dry_run,
           const AnswerFormat& format, WantedObject wanted) {
  AdmittedUpdate(core, call, resource, ScopeOf(call->info()), dry_run, std::move(wanted),
                 [&core, call, format](const Result<store::EntryPtr>& entry) {
                   ReplyEntry(core, *call, format, 200, entry);
                 });
}

Status Update(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  ASSIGN_OR_RETURN(AnswerFormat format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(const bool dry_run, DryRunOf(call->info(), "UpdateOptions"));
  ASSIGN_OR_RETURN(json::Value object, DecodeObject(*call, *call->Spoken(resource->kind)));
  Write(core, call, resource, dry_run, format,
        [object = std::move(object)](const json::Value&) -> Result<json::Value> { return object; });
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
  Write(core, call, resource, dry_run, format,
        [call, type, body,
         spoken = call->Spoken(resource->kind)](const json::Value& before) -> Result<json::Value> {
          ASSIGN_OR_RETURN(
              const json::Value patched,
              ApplyPatch(*spoken, type, schema::FromStored(*spoken, before), body.value));
          if (!patched.IsObject()) return Error(Reason::kBadRequest, "the patch leaves no object");
          return ConformObject(*call, *spoken, patched, body.duplicate_keys);
        });
  return Status::Ok();
}

json::Value WithFinalizers(const json::Value& object, const json::Value& finalizers) {
  return finalizers.IsNull() ? object.RemovePath({"spec", "finalizers"})
                             : object.SetPath({"spec", "finalizers"}, finalizers);
}

// Only spec.finalizers count; everything else in the body is ignored, as upstream.
Status Finalize(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  ASSIGN_OR_RETURN(AnswerFormat format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(json::Value object, DecodeObject(*call, *resource->kind));
  const json::Value finalizers = object["spec"]["finalizers"];
  ASSIGN_OR_RETURN(const Found before, FindObject(core, *resource->kind, "", call->info().name));
  AdmissionRequest request = MakeAdmissionRequest(call, resource, Operation::kUpdate, false);
  request.object = WithFinalizers(before.object, finalizers);
  request.old_object = before.object;
  core.admission->Run(std::move(request), [&core, call, resource, format,
                                           finalizers](const Result<json::Value>& admitted) {
    if (!admitted) return call->Fail(admitted.error());
    const Result<Found> found = FindObject(core, *resource->kind, "", call->info().name);
    if (!found) return call->Fail(found.error());
    WriteContext context{*resource->kind, "", call->info().name, core.loop.Now(), false, {}};
    ReplaceObject(core, resource, context, *found, WithFinalizers(found->object, finalizers),
                  [&core, call, format](const Result<store::EntryPtr>& entry) {
                    ReplyEntry(core, *call, format, 200, entry);
                  });
  });
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
