// POST on pods/NAME/binding and on bindings: gives a pod its node, once.

#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_codec.h"
#include "apiserver/object_writer.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

Status BindingConflict(std::string_view pod, std::string_view why) {
  StatusDetails details;
  details.name = std::string(pod);
  details.kind = "pods/binding";
  return Status(Reason::kConflict,
                fmt::format("Operation cannot be fulfilled on pods/binding \"{}\": {}", pod, why),
                std::move(details));
}

Status InvalidBinding(std::string_view pod, std::string_view field, std::string_view message) {
  StatusDetails details;
  details.name = std::string(pod);
  details.kind = "Binding";
  details.causes.push_back({"FieldValueInvalid", std::string(field), std::string(message)});
  return Status(Reason::kInvalid,
                fmt::format("Binding \"{}\" is invalid: {}: {}", pod, field, message),
                std::move(details));
}

Status CheckBinding(const json::Value& binding, std::string_view pod) {
  if (const std::string_view kind = binding["kind"].AsString();
      !kind.empty() && kind != "Binding") {
    return Error(Reason::kBadRequest, "the body must be a Binding, not a {}", kind);
  }
  const json::Value& target = binding["target"];
  const std::string_view kind = target["kind"].AsString();
  if (!kind.empty() && kind != "Node") {
    return InvalidBinding(
        pod, "target.kind",
        fmt::format("Unsupported value: \"{}\": supported values: \"Node\", \"<empty>\"", kind));
  }
  if (target["name"].AsString().empty())
    return InvalidBinding(pod, "target.name", "Required value");
  return Status::Ok();
}

Status CheckBindable(const json::Value& pod, const json::Value& binding) {
  const std::string name = pod["metadata"]["name"].Str();
  const json::Value& wanted = binding["metadata"];
  const json::Value& metadata = pod["metadata"];
  for (std::string_view field : {"uid", "resourceVersion"}) {
    if (wanted[field].AsString().empty() || wanted[field] == metadata[field]) continue;
    return BindingConflict(
        name, fmt::format("Precondition failed: {} in precondition: {}, in object meta: {}", field,
                          wanted[field].AsString(), metadata[field].AsString()));
  }
  if (metadata.Has("deletionTimestamp")) {
    return BindingConflict(
        name, fmt::format("pod {} is being deleted, cannot be assigned to a host", name));
  }
  if (const std::string_view node = pod["spec"]["nodeName"].AsString(); !node.empty()) {
    return BindingConflict(name,
                           fmt::format("pod {} is already assigned to node \"{}\"", name, node));
  }
  if (!pod["spec"]["schedulingGates"].empty()) {
    return BindingConflict(name, fmt::format("pod {} has non-empty .spec.schedulingGates", name));
  }
  return Status::Ok();
}

json::Value SetScheduled(json::Value pod, Time now) {
  json::Array conditions;
  for (const json::Value& condition : pod["status"]["conditions"].items()) {
    if (condition["type"].AsString() != "PodScheduled") conditions.push_back(condition);
  }
  conditions.push_back(json::Obj({{"type", "PodScheduled"},
                                  {"status", "True"},
                                  {"lastProbeTime", nullptr},
                                  {"lastTransitionTime", FormatTime(now)}}));
  return pod.SetPath({"status", "conditions"}, json::Value(std::move(conditions)));
}

json::Value Bind(json::Value pod, const json::Value& binding, Time now) {
  pod = pod.SetPath({"spec", "nodeName"}, binding["target"]["name"]);
  for (std::string_view map : {"annotations", "labels"}) {
    for (const auto& [key, value] : binding["metadata"][map].members()) {
      pod = pod.SetPath({"metadata", map, key}, value);
    }
  }
  return SetScheduled(std::move(pod), now);
}

Status HandleBind(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  const RequestInfo& info = call->info();
  if (info.method != "POST") return MethodNotAllowedError();
  ASSIGN_OR_RETURN(const bool dry_run, DryRunOf(info, "CreateOptions"));
  ASSIGN_OR_RETURN(const DecodedBody body,
                   DecodeBody(call->request().headers.Get("Content-Type"), call->request().body));
  const json::Value& binding = body.value;
  const std::string name = info.name.empty() ? binding["metadata"]["name"].Str() : info.name;
  RETURN_IF_ERROR(CheckBinding(binding, name));
  ASSIGN_OR_RETURN(const Found found, FindObject(core, *pods->kind, info.ns, name));
  RETURN_IF_ERROR(CheckBindable(found.object, binding));
  WriteContext context{*pods->kind, info.ns, name, core.loop.Now(), dry_run, {}};
  ReplaceObject(core, pods, context, found, Bind(found.object, binding, context.now),
                [call](const Result<store::EntryPtr>& entry) {
                  if (!entry) return call->Fail(entry.error());
                  call->Reply(201, json::Obj({{"kind", "Status"},
                                              {"apiVersion", "v1"},
                                              {"metadata", json::Obj()},
                                              {"status", "Success"},
                                              {"code", 201}}));
                });
  return Status::Ok();
}

}  // namespace

void HandleBinding(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  if (Status status = HandleBind(core, call, pods); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
