// GET, PUT and PATCH on the scale subresource of kinds that have one: an autoscaling/v1 Scale is a
// view of two or three fields of the object.

#include "apiserver/admission/admission.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_codec.h"
#include "apiserver/object_writer.h"
#include "apiserver/stored_object.h"
#include "apiserver/update.h"
#include "base/strings.h"
#include "json/patch.h"
#include "schema/label_selector.h"

namespace muster::apiserver {
namespace {

const json::Value& At(const json::Value& object, std::string_view path) {
  const json::Value* at = &object;
  for (std::string_view part : SplitNonEmpty(path, '.')) at = &(*at)[part];
  return *at;
}

json::Value SetAt(const json::Value& object, std::string_view path, const json::Value& value) {
  const std::vector<std::string_view> parts = SplitNonEmpty(path, '.');
  if (parts.empty()) return value;
  const std::string_view rest =
      path.substr(static_cast<size_t>(parts[0].data() - path.data()) + parts[0].size());
  return object.Set(parts[0], SetAt(object[parts[0]], rest, value));
}

// Custom kinds keep their selector as text, the built-in ones as an object.
json::Value SelectorText(const json::Value& selector) {
  if (selector.IsString()) return selector;
  if (!selector.IsObject()) return nullptr;
  const Result<schema::LabelSelector> parsed = schema::LabelSelector::FromJson(selector);
  return parsed ? json::Value(parsed->ToString()) : json::Value();
}

json::Value ScaleOf(const schema::Kind& kind, const json::Value& object) {
  json::Object metadata;
  for (std::string_view field :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const json::Value* value = object["metadata"].Find(field))
      metadata.emplace_back(field, *value);
  }
  json::Object status = {{"replicas", At(object, kind.scale->status_replicas_path).AsInt()}};
  if (json::Value selector = SelectorText(At(object, kind.scale->label_selector_path));
      !selector.IsNull()) {
    status.emplace_back("selector", std::move(selector));
  }
  return json::Obj(
      {{"kind", "Scale"},
       {"apiVersion", "autoscaling/v1"},
       {"metadata", json::Value(std::move(metadata))},
       {"spec", json::Obj({{"replicas", At(object, kind.scale->spec_replicas_path).AsInt()}})},
       {"status", json::Value(std::move(status))}});
}

Result<json::Value> WantedScale(const Call& call, const json::Value& current) {
  const bool patch = call.info().verb == "patch";
  const std::string type = ParseMediaType(call.request().headers.Get("Content-Type")).type;
  ASSIGN_OR_RETURN(const DecodedBody body,
                   DecodeBody(patch ? "application/json" : type, call.request()));
  if (!patch) return body.value;
  if (type == "application/json-patch+json") return json::ApplyJsonPatch(current, body.value);
  if (type == "application/merge-patch+json" || type == "application/strategic-merge-patch+json") {
    return json::ApplyMergePatch(current, body.value);
  }
  return Error(UnsupportedMediaTypeError());
}

Status CheckScale(std::string_view name, int64_t replicas) {
  if (replicas >= 0) return Status::Ok();
  StatusDetails details;
  details.causes.push_back(
      InvalidField("spec.replicas", json::Value(replicas), "must be greater than or equal to 0"));
  return Status(Reason::kInvalid,
                fmt::format("Scale.autoscaling \"{}\" is invalid: spec.replicas: {}", name,
                            details.causes[0].message),
                details);
}

// `wanted` on the object as it is now.
Status WriteScale(Core& core, const CallPtr& call, const ResourcePtr& resource,
                  const json::Value& wanted, bool dry_run) {
  const schema::Kind& kind = *resource->kind;
  const RequestInfo& info = call->info();
  WriteContext context{kind, kind.namespaced ? info.ns : "", info.name, core.loop.Now(), dry_run,
                       {}};
  ASSIGN_OR_RETURN(const Found found, FindObject(core, kind, context.ns, context.name));
  const std::string_view revision = wanted["metadata"]["resourceVersion"].AsString();
  if (!revision.empty() && revision != found.object["metadata"]["resourceVersion"].AsString()) {
    return ConflictError(kind, context.name);
  }
  const int64_t replicas = wanted["spec"]["replicas"].AsInt();
  RETURN_IF_ERROR(CheckScale(context.name, replicas));
  ASSIGN_OR_RETURN(
      json::Value after,
      PrepareUpdate(*resource, context, found.object,
                    SetAt(found.object, kind.scale->spec_replicas_path, json::Value(replicas)),
                    UpdateScope::kMain));
  call->Warn(context.warnings);
  ReplaceObject(
      core, resource, context, found, std::move(after),
      [call, resource](const Result<store::EntryPtr>& entry) {
        if (!entry) return call->Fail(entry.error());
        call->Reply(200, ScaleOf(*resource->kind, DecodeStored(*resource->kind, *(*entry)->value)));
      });
  return Status::Ok();
}

Status Scale(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  const schema::Kind& kind = *resource->kind;
  const RequestInfo& info = call->info();
  ASSIGN_OR_RETURN(const Found found,
                   FindObject(core, kind, kind.namespaced ? info.ns : "", info.name));
  const json::Value current = ScaleOf(kind, found.object);
  if (info.verb == "get") {
    call->Reply(200, current);
    return Status::Ok();
  }
  if (info.verb != "update" && info.verb != "patch") return MethodNotAllowedError();
  ASSIGN_OR_RETURN(const bool dry_run, DryRunOf(info, "UpdateOptions"));
  ASSIGN_OR_RETURN(const json::Value wanted, WantedScale(*call, current));
  if (core.admission->idle()) return WriteScale(core, call, resource, wanted, dry_run);
  AdmissionRequest request = MakeAdmissionRequest(call, resource, Operation::kUpdate, dry_run);
  request.own_object = true;
  request.object = wanted.Set("kind", "Scale").Set("apiVersion", "autoscaling/v1");
  request.old_object = current;
  core.admission->Run(
      std::move(request), [&core, call, resource, dry_run](const Result<json::Value>& admitted) {
        const Status status =
            admitted ? WriteScale(core, call, resource, *admitted, dry_run) : admitted.error();
        if (!status.ok()) call->Fail(status);
      });
  return Status::Ok();
}

}  // namespace

void HandleScale(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = Scale(core, call, resource); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
