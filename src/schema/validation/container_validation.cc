// Containers: k8s.io/kubernetes pkg/apis/core/validation.

#include <array>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;
using Names = std::set<std::string, std::less<>>;

void ValidatePorts(const Value& ports, const Path& path, bool host_network, FieldErrors& errors) {
  Names names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Value& port = ports.At(i);
    const Path place = path.Index(i);
    const std::string name = port["name"].Str();
    if (!name.empty() && errors.Check(CheckPortName, place.Child("name"), name) &&
        !names.insert(name).second) {
      errors.Duplicate(place.Child("name"), name);
    }
    if (port["containerPort"].AsInt() == 0) {
      errors.Required(place.Child("containerPort"));
    } else {
      errors.Port(place.Child("containerPort"), port["containerPort"]);
    }
    if (const int64_t host_port = port["hostPort"].AsInt(); host_port != 0) {
      errors.Port(place.Child("hostPort"), port["hostPort"]);
      if (host_network && host_port != port["containerPort"].AsInt()) {
        errors.Invalid(place.Child("hostPort"), host_port,
                       "must match `containerPort` when `hostNetwork` is true");
      }
    }
    errors.OneOf(place.Child("protocol"), port["protocol"], {"SCTP", "TCP", "UDP"});
  }
}

void ValidateMounts(const Value& mounts, const Path& path, const PodScope& scope,
                    FieldErrors& errors) {
  Names paths;
  for (size_t i = 0; i < mounts.size(); ++i) {
    const Value& mount = mounts.At(i);
    const Path place = path.Index(i);
    const std::string name = mount["name"].Str();
    if (name.empty()) {
      errors.Required(place.Child("name"));
    } else if (!scope.volumes.contains(name)) {
      errors.NotFound(place.Child("name"), name);
    }
    const std::string mount_path = mount["mountPath"].Str();
    if (mount_path.empty()) {
      errors.Required(place.Child("mountPath"));
    } else if (!paths.insert(mount_path).second) {
      errors.Invalid(place.Child("mountPath"), mount_path, "must be unique");
    }
    for (const char* key : {"subPath", "subPathExpr"}) {
      if (!mount[key].AsString().empty()) ValidateInnerPath(mount[key], place.Child(key), errors);
    }
    if (!mount["subPath"].AsString().empty() && !mount["subPathExpr"].AsString().empty()) {
      errors.Invalid(place.Child("subPathExpr"), mount["subPathExpr"],
                     "subPathExpr and subPath are mutually exclusive");
    }
    const Value& propagation = mount["mountPropagation"];
    if (!propagation.IsNull())
      errors.OneOf(place.Child("mountPropagation"), propagation,
                   {"Bidirectional", "HostToContainer", "None"});
  }
}

void ValidateSecurity(const Value& security, const Path& path, FieldErrors& errors) {
  for (const char* key : {"runAsUser", "runAsGroup"}) {
    const int64_t id = security[key].AsInt();
    if (id < 0 || id > INT32_MAX)
      errors.Invalid(path.Child(key), id, "must be between 0 and 2147483647, inclusive");
  }
  const Value& escalation = security["allowPrivilegeEscalation"];
  if (!escalation.IsNull() && !escalation.AsBool() && security["privileged"].AsBool()) {
    errors.Invalid(path, security,
                   "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  }
}

void ValidateLifecycle(const Value& lifecycle, const Path& path, FieldErrors& errors) {
  for (const char* hook : {"postStart", "preStop"}) {
    if (!lifecycle[hook].IsNull()) ValidateHandler(lifecycle[hook], path.Child(hook), errors);
  }
}

void ValidateImage(const Value& image, const Path& path, FieldErrors& errors) {
  if (image.AsString().empty()) {
    errors.Required(path);
  } else if (Trim(image.AsString()) != image.AsString()) {
    errors.Invalid(path, image, "must not have leading or trailing whitespace");
  }
}

// What all kinds of container share.
void ValidateContainer(const Value& container, const Path& path, const PodScope& scope,
                       Names& names, FieldErrors& errors) {
  const std::string name = container["name"].Str();
  if (name.empty()) {
    errors.Required(path.Child("name"));
  } else if (errors.Check(CheckDns1123Label, path.Child("name"), name) &&
             !names.insert(name).second) {
    errors.Duplicate(path.Child("name"), name);
  }
  ValidateImage(container["image"], path.Child("image"), errors);
  errors.OneOf(path.Child("terminationMessagePolicy"), container["terminationMessagePolicy"],
               {"FallbackToLogsOnError", "File"});
  ValidatePorts(container["ports"], path.Child("ports"), scope.host_network, errors);
  ValidateEnv(container, path, errors);
  ValidateMounts(container["volumeMounts"], path.Child("volumeMounts"), scope, errors);
  errors.OneOf(path.Child("imagePullPolicy"), container["imagePullPolicy"],
               {"Always", "IfNotPresent", "Never"});
  ValidateResources(container["resources"], path.Child("resources"), errors);
  if (!container["securityContext"].IsNull())
    ValidateSecurity(container["securityContext"], path.Child("securityContext"), errors);
}

void ValidateProbes(const Value& container, const Path& path, FieldErrors& errors) {
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    const bool once = std::string_view(probe) != "readinessProbe";
    if (!container[probe].IsNull())
      ValidateProbe(container[probe], path.Child(probe), once, errors);
  }
  if (!container["lifecycle"].IsNull())
    ValidateLifecycle(container["lifecycle"], path.Child("lifecycle"), errors);
}

void ValidateInitContainer(const Value& container, const Path& path, FieldErrors& errors) {
  const Value& policy = container["restartPolicy"];
  if (!policy.IsNull() && !errors.OneOf(path.Child("restartPolicy"), policy, {"Always"})) return;
  if (!policy.IsNull()) return ValidateProbes(container, path, errors);  // a sidecar
  for (const char* key : {"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
    if (!container[key].IsNull()) {
      errors.Forbidden(path.Child(key),
                       "may not be set for init containers without restartPolicy=Always");
    }
  }
}

}  // namespace

void ValidateContainers(const Value& spec, const Path& path, const PodScope& scope,
                        FieldErrors& errors) {
  Names names;  // containers and init containers share one set
  const Value& containers = spec["containers"];
  const Path list = path.Child("containers");
  if (containers.empty()) errors.Required(list);
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path place = list.Index(i);
    ValidateContainer(containers.At(i), place, scope, names, errors);
    ValidateProbes(containers.At(i), place, errors);
  }
  const Value& init_containers = spec["initContainers"];
  const Path init_list = path.Child("initContainers");
  for (size_t i = 0; i < init_containers.size(); ++i) {
    const Path place = init_list.Index(i);
    ValidateContainer(init_containers.At(i), place, scope, names, errors);
    ValidateInitContainer(init_containers.At(i), place, errors);
  }
  const Value& ephemeral = spec["ephemeralContainers"];
  const Path ephemeral_list = path.Child("ephemeralContainers");
  for (size_t i = 0; i < ephemeral.size(); ++i) {
    ValidateContainer(ephemeral.At(i), ephemeral_list.Index(i), scope, names, errors);
  }
}

}  // namespace muster::schema
