// Kinds whose defaults are a few lines.

#include "base/strings.h"
#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"
#include "schema/training_kinds.h"

namespace muster::schema {

using json::Value;

namespace {
constexpr std::string_view kNamespaceNameLabel = "kubernetes.io/metadata.name";
}  // namespace

Value DefaultSecret(Value secret) {
  SetDefault(secret, "type", "Opaque");
  // stringData is for writing only: it becomes data, over what data says.
  const Value plain = secret["stringData"];
  if (plain.IsNull()) return secret;
  Value data = secret["data"];
  for (const auto& [key, text] : plain.members())
    data = std::move(data).Set(key, Base64Encode(text.AsString()));
  if (!data.IsNull()) secret = std::move(secret).Set("data", std::move(data));
  return secret.Remove("stringData");
}

Value DefaultPersistentVolumeClaimSpec(Value spec) {
  SetDefault(spec, "volumeMode", "Filesystem");
  return spec;
}

namespace {

// The old and the new name of where a claim's content comes from say the same.
Value JoinDataSources(Value spec) {
  if (!spec["dataSourceRef"]["namespace"].AsString().empty()) return spec;
  for (const auto& [from, to] :
       {std::pair("dataSource", "dataSourceRef"), std::pair("dataSourceRef", "dataSource")}) {
    if (!spec[from].IsNull() && spec[to].IsNull()) spec = spec.Set(to, spec[from]);
  }
  return spec;
}

}  // namespace

Value DefaultPersistentVolumeClaim(Value claim) {
  const Value spec = claim["spec"];
  Value defaulted = JoinDataSources(DefaultPersistentVolumeClaimSpec(spec));
  if (!defaulted.SameAs(spec)) claim = std::move(claim).Set("spec", std::move(defaulted));
  if (IsUnset(claim["status"]["phase"])) claim = claim.SetPath({"status", "phase"}, "Pending");
  return claim;
}

Value DefaultNamespace(Value ns) {
  const std::string name = ns["metadata"]["name"].Str();
  if (!name.empty() && ns["metadata"]["labels"][kNamespaceNameLabel].AsString() != name) {
    ns = ns.SetPath({"metadata", "labels", kNamespaceNameLabel}, name);
  }
  if (IsUnset(ns["status"]["phase"])) ns = ns.SetPath({"status", "phase"}, "Active");
  // A namespace on its way out loses this finalizer for good.
  if (ns["spec"]["finalizers"].empty() && ns["metadata"]["deletionTimestamp"].IsNull()) {
    ns = ns.SetPath({"spec", "finalizers"}, json::List({"kubernetes"}));
  }
  return ns;
}

Value DefaultNode(Value node) {
  const Value& status = node["status"];
  if (status["allocatable"].empty() && !status["capacity"].empty()) {
    node = node.SetPath({"status", "allocatable"}, status["capacity"]);
  }
  return node;
}

Value DefaultPriorityClass(Value priority_class) {
  SetDefault(priority_class, "preemptionPolicy", "PreemptLowerPriority");
  return priority_class;
}

Value DefaultEndpointSlice(Value slice) {
  EditItems(slice, "ports", [](Value port) {
    if (!port.Has("name")) port = std::move(port).Set("name", "");
    SetDefault(port, "protocol", "TCP");
    return port;
  });
  return slice;
}

Value DefaultEndpoints(Value endpoints) {
  EditItems(endpoints, "subsets", [](Value subset) {
    EditItems(subset, "ports", [](Value port) {
      SetDefault(port, "protocol", "TCP");
      return port;
    });
    return subset;
  });
  return endpoints;
}

Value DefaultCustomResourceDefinition(Value crd) {
  Value spec = crd["spec"];
  EditMember(spec, "names", [](Value names) {
    const std::string kind = names["kind"].Str();
    if (!kind.empty()) {
      SetDefault(names, "singular", ToLower(kind));
      SetDefault(names, "listKind", kind + "List");
    }
    return names;
  });
  if (spec["conversion"].IsNull())
    spec = std::move(spec).Set("conversion", json::Obj({{"strategy", "None"}}));
  if (!spec.SameAs(crd["spec"])) crd = std::move(crd).Set("spec", std::move(spec));
  return crd;
}

namespace {

// training-operator pkg/apis/kubeflow.org/v1/*_defaults.go: role names in their proper case, one
// replica, the kind's restart policy.
Value DefaultTrainingJob(const TrainingKind& kind, Value job) {
  Value spec = job["spec"];
  EditMember(spec, kind.specs, [&kind](const Value& roles) {
    Value result = json::Obj();
    bool differs = false;
    for (const auto& [role, replicas] : roles.members()) {
      Value filled = replicas;
      if (filled.IsObject()) {
        if (!filled.Has("replicas")) filled = std::move(filled).Set("replicas", 1);
        SetDefault(filled, "restartPolicy", kind.restart_policy);
      }
      const TrainingRole* known = kind.FindRole(role);
      const std::string name = known != nullptr ? std::string(known->type) : role;
      differs = differs || name != role || !filled.SameAs(replicas);
      result = std::move(result).Set(name, std::move(filled));
    }
    return differs ? result : roles;
  });
  if (IsUnset(spec["runPolicy"]["cleanPodPolicy"]))
    spec = spec.SetPath({"runPolicy", "cleanPodPolicy"}, "None");
  if (!spec["runPolicy"].Has("suspend")) spec = spec.SetPath({"runPolicy", "suspend"}, false);
  if (kind.kind == "PyTorchJob") SetDefault(spec, "nprocPerNode", "auto");
  if (!spec.SameAs(job["spec"])) job = std::move(job).Set("spec", std::move(spec));
  return job;
}

// mpi-operator pkg/apis/kubeflow/v2beta1/default.go. Later only these fields tell in which version
// the job was made.
Value DefaultMPIJobOverSsh(Value job) {
  Value spec = job["spec"];
  SetDefault(spec, "mpiImplementation", "OpenMPI");
  SetDefault(spec, "sshAuthMountPath", "/root/.ssh");
  SetDefault(spec, "launcherCreationPolicy", "AtStartup");
  EditMember(spec, "mpiReplicaSpecs", [](const Value& roles) {
    Value result = roles;
    for (const auto& [role, replicas] : roles.members()) {
      if (!EqualsIgnoreCase(role, "Launcher") || !replicas.IsObject()) continue;
      Value filled = replicas;
      SetDefault(filled, "restartPolicy", "OnFailure");
      result = result.Set(role, std::move(filled));
    }
    return result;
  });
  return std::move(job).Set("spec", std::move(spec));
}

}  // namespace

Value DefaultPyTorchJob(Value job) {
  return DefaultTrainingJob(*FindTrainingKind("PyTorchJob"), std::move(job));
}

Value DefaultTFJob(Value job) {
  return DefaultTrainingJob(*FindTrainingKind("TFJob"), std::move(job));
}

Value DefaultMPIJob(Value job) {
  // The old place of the policy counts where the new one says nothing.
  const std::string policy = job["spec"]["cleanPodPolicy"].Str();
  if (!policy.empty() && IsUnset(job["spec"]["runPolicy"]["cleanPodPolicy"]))
    job = job.SetPath({"spec", "runPolicy", "cleanPodPolicy"}, policy);
  if (job["apiVersion"].AsString() == "kubeflow.org/v2beta1" ||
      !job["spec"]["mpiImplementation"].AsString().empty()) {
    job = DefaultMPIJobOverSsh(std::move(job));
  }
  return DefaultTrainingJob(*FindTrainingKind("MPIJob"), std::move(job));
}

Value DefaultJAXJob(Value job) {
  return DefaultTrainingJob(*FindTrainingKind("JAXJob"), std::move(job));
}

}  // namespace muster::schema
