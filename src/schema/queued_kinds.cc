#include "schema/queued_kinds.h"

#include <algorithm>
#include <array>

namespace muster::schema {
namespace {

constexpr std::array<QueuedKind, 7> kKinds = {{
    {"batch", "v1", "Job", "jobs"},
    {"kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", true},
    {"kubeflow.org", "v1", "TFJob", "tfjobs", true},
    {"kubeflow.org", "v1", "JAXJob", "jaxjobs", true},
    {"kubeflow.org", "v1", "MPIJob", "mpijobs", true},
    {"jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"},
    {"", "v1", "Pod", "pods"},
}};

bool IsGate(const json::Value& gate) { return gate["name"].AsString() == kQueueGate; }

}  // namespace

std::span<const QueuedKind> QueuedKinds() { return kKinds; }

const QueuedKind* FindQueuedKind(std::string_view group, std::string_view kind) {
  const auto found = std::ranges::find_if(kKinds, [&](const QueuedKind& queued) {
    return queued.group == group && queued.kind == kind;
  });
  return found == kKinds.end() ? nullptr : &*found;
}

std::string_view QueueOf(const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  for (const json::Value& owner : metadata["ownerReferences"].items()) {
    if (!owner["controller"].AsBool()) continue;
    const std::string_view api_version = owner["apiVersion"].AsString();
    const size_t slash = api_version.find('/');
    const std::string_view group = slash == api_version.npos ? "" : api_version.substr(0, slash);
    if (FindQueuedKind(group, owner["kind"].AsString()) != nullptr) return "";
  }
  return metadata["labels"][kQueueNameLabel].AsString();
}

bool IsSuspended(const QueuedKind& kind, const json::Value& object) {
  const json::Value& spec = object["spec"];
  if (kind.IsPod()) return std::ranges::any_of(spec["schedulingGates"].items(), IsGate);
  return (kind.in_run_policy ? spec["runPolicy"]["suspend"] : spec["suspend"]).AsBool();
}

json::Value WithSuspended(const QueuedKind& kind, const json::Value& object, bool suspended) {
  if (IsSuspended(kind, object) == suspended) return object;
  if (!kind.IsPod()) {
    return kind.in_run_policy ? object.SetPath({"spec", "runPolicy", "suspend"}, suspended)
                              : object.SetPath({"spec", "suspend"}, suspended);
  }
  json::Array gates;
  for (const json::Value& gate : object["spec"]["schedulingGates"].items()) {
    if (!IsGate(gate)) gates.push_back(gate);
  }
  if (suspended) gates.push_back(json::Obj({{"name", kQueueGate}}));
  return gates.empty() ? object.RemovePath({"spec", "schedulingGates"})
                       : object.SetPath({"spec", "schedulingGates"}, json::Value(gates));
}

}  // namespace muster::schema
