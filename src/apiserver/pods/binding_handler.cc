// POST on pods/NAME/binding and on bindings: gives a pod its node, once.

#include "apiserver/admission/admission.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_codec.h"
#include "apiserver/object_writer.h"
#include "json/write.h"
#include "schema/validation.h"

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

// Bindings are sent and not stored: the registry of kinds does not have them.
const schema::Kind& BindingKind() {
  static const schema::Kind kKind = UnservedKind("", "v1", "Binding");
  return kKind;
}

// `name` is what the URL says, "" on the collection of bindings.
Status CheckBinding(const schema::Kind& kind, const json::Value& binding, const RequestInfo& info) {
  const json::Value& metadata = binding["metadata"];
  if (!info.name.empty() && metadata["name"].AsString() != info.name)
    return Error(Reason::kBadRequest, "name in URL does not match name in Binding object");
  if (const std::string_view ns = metadata["namespace"].AsString(); !ns.empty() && ns != info.ns) {
    return Error(
        Reason::kBadRequest,
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  std::vector<StatusCause> causes;
  const json::Value& target = binding["target"];
  const std::string_view target_kind = target["kind"].AsString();
  if (!target_kind.empty() && target_kind != "Node") {
    causes.push_back(
        {"FieldValueNotSupported", "target.kind",
         fmt::format("Unsupported value: \"{}\": supported values: \"Node\", \"<empty>\"",
                     target_kind)});
  }
  if (target["name"].AsString().empty()) causes.push_back(RequiredField("target.name"));
  if (causes.empty()) return Status::Ok();
  return schema::InvalidError(kind, metadata["name"].AsString(), std::move(causes));
}

Status CheckBindable(const json::Value& pod, const json::Value& binding) {
  const std::string name = pod["metadata"]["name"].Str();
  const json::Value& wanted = binding["metadata"];
  const json::Value& metadata = pod["metadata"];
  for (const auto& [field, shown] :
       {std::pair("uid", "UID"), std::pair("resourceVersion", "ResourceVersion")}) {
    if (wanted[field].AsString().empty() || wanted[field] == metadata[field]) continue;
    return BindingConflict(
        name, fmt::format("Precondition failed: {0} in precondition: {1}, {0} in object meta: {2}",
                          shown, wanted[field].AsString(), metadata[field].AsString()));
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

Status BindPod(Core& core, const CallPtr& call, const ResourcePtr& pods, bool dry_run,
               const json::Value& binding) {
  RETURN_IF_ERROR(CheckBinding(BindingKind(), binding, call->info()));  // as webhooks made it
  const std::string& ns = call->info().ns;
  const std::string name = binding["metadata"]["name"].Str();
  ASSIGN_OR_RETURN(const Found found, FindObject(core, *pods->kind, ns, name));
  RETURN_IF_ERROR(CheckBindable(found.object, binding));
  WriteContext context{*pods->kind, ns, name, core.loop.Now(), dry_run, {}};
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

Status HandleBind(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  const RequestInfo& info = call->info();
  if (info.method != "POST") return MethodNotAllowedError();
  ASSIGN_OR_RETURN(const bool dry_run, DryRunOf(info, "CreateOptions"));
  const schema::Kind& kind = BindingKind();
  ASSIGN_OR_RETURN(json::Value binding, DecodeObject(*call, kind));
  RETURN_IF_ERROR(CheckBinding(kind, binding, info));
  AdmitUnstored(core, call, pods, Operation::kCreate, dry_run,
                binding.Set("kind", kind.kind).Set("apiVersion", kind.GroupVersion()),
                [&core, call, pods, dry_run](const json::Value& admitted) {
                  return BindPod(core, call, pods, dry_run, admitted);
                });
  return Status::Ok();
}

}  // namespace

void HandleBinding(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  if (Status status = HandleBind(core, call, pods); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
