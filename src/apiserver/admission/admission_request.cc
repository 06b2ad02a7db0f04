#include "apiserver/admission/admission_request.h"

namespace muster::apiserver {
namespace {

bool IsNamespace(const schema::Kind& kind) {
  return kind.group.empty() && kind.plural == "namespaces";
}

// What the query says, as the object that the webhook gets.
json::Value OptionsOf(const Call& call, Operation operation, bool dry_run) {
  if (operation == Operation::kConnect) return nullptr;
  const char* kind = operation == Operation::kCreate   ? "CreateOptions"
                     : operation == Operation::kUpdate ? "UpdateOptions"
                                                       : "DeleteOptions";
  json::Value options = json::Obj({{"kind", kind}, {"apiVersion", "meta.k8s.io/v1"}});
  if (dry_run) options = std::move(options).Set("dryRun", json::List({"All"}));
  for (const char* name : {"fieldManager", "fieldValidation", "propagationPolicy"}) {
    if (const std::string_view value = call.info().query.Get(name); !value.empty())
      options = std::move(options).Set(name, value);
  }
  return options;
}

}  // namespace

RuleSubject AdmissionRequest::Subject(const schema::Kind& seen) const {
  return {operation,   seen.group,  seen.version,
          seen.plural, subresource, kind->namespaced && !ns.empty()};
}

AdmissionRequest MakeAdmissionRequest(const CallPtr& call, const ResourcePtr& resource,
                                      Operation operation, bool dry_run) {
  const RequestInfo& info = call->info();
  AdmissionRequest request;
  request.operation = operation;
  request.call = call;
  request.kind = call->Spoken(resource->kind);
  // A POST on `bindings` is one on the binding of the pod that its body names.
  request.subresource = info.resource == "bindings" ? "binding" : info.subresource;
  request.name = info.name;
  request.ns = IsNamespace(*request.kind) ? info.name : request.kind->namespaced ? info.ns : "";
  request.dry_run = dry_run;
  request.options = OptionsOf(*call, operation, dry_run);
  return request;
}

}  // namespace muster::apiserver
