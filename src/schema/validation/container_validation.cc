// Containers: k8s.io/kubernetes pkg/apis/core/validation.

#include <set>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;
using Names = std::set<std::string, std::less<>>;

void ValidatePorts(const Value& ports, const Path& path, FieldErrors& errors) {
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
    if (port["hostPort"].AsInt() != 0) errors.Port(place.Child("hostPort"), port["hostPort"]);
    errors.OneOf(place.Child("protocol"), port["protocol"], {"SCTP", "TCP", "UDP"});
  }
}

// Two ports of a host that are one: "TCP/<address>/<port>" may be there once. Init containers run
// one after the other and are looked at one by one.
void ValidateUniqueHostPorts(const Value& container, const Path& path, Names& taken,
                             FieldErrors& errors) {
  const Path ports = path.Child("ports");
  for (size_t i = 0; i < container["ports"].size(); ++i) {
    const Value& port = container["ports"].At(i);
    if (port["hostPort"].AsInt() == 0) continue;
    const std::string key = fmt::format("{}/{}/{}", port["protocol"].AsString(),
                                        port["hostIP"].AsString(), port["hostPort"].AsInt());
    const Path place = ports.Index(i);
    if (!taken.insert(key).second) errors.Duplicate(place.Child("hostPort"), key);
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
               {"File", "FallbackToLogsOnError"});
  ValidatePorts(container["ports"], path.Child("ports"), errors);
  ValidateEnv(container, path, errors);
  ValidateMounts(container, path, scope.volumes, errors);
  errors.OneOf(path.Child("imagePullPolicy"), container["imagePullPolicy"],
               {"Always", "IfNotPresent", "Never"});
  ValidateResources(container["resources"], path.Child("resources"), errors);
  if (!container["securityContext"].IsNull())
    ValidateContainerSecurity(container["securityContext"], path.Child("securityContext"), errors);
}

void ValidateProbes(const Value& container, const Path& path, const PodScope& scope,
                    FieldErrors& errors) {
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    if (!container[probe].IsNull())
      ValidateProbe(container[probe], probe, path.Child(probe), errors);
  }
  const Path lifecycle = path.Child("lifecycle");
  for (const char* hook : {"postStart", "preStop"}) {
    if (const Value& handler = container["lifecycle"][hook]; !handler.IsNull())
      ValidateHandler(handler, lifecycle.Child(hook), scope.grace_seconds, errors);
  }
  if (const Value& signal = container["lifecycle"]["stopSignal"]; !signal.IsNull())
    ValidateStopSignal(signal, scope.os, lifecycle.Child("stopSignal"), errors);
}

void ValidateInitContainer(const Value& container, const Path& path, const PodScope& scope,
                           FieldErrors& errors) {
  Names host_ports;
  ValidateUniqueHostPorts(container, path, host_ports, errors);
  const Value& policy = container["restartPolicy"];
  if (!policy.IsNull() && !errors.OneOf(path.Child("restartPolicy"), policy, {"Always"})) return;
  if (!policy.IsNull()) return ValidateProbes(container, path, scope, errors);  // a sidecar
  for (const char* key : {"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
    if (!container[key].IsNull()) {
      errors.Forbidden(path.Child(key),
                       "may not be set for init containers without restartPolicy=Always");
    }
  }
}

// Nothing that a pod relies on may run in a container that comes late and goes.
void ValidateEphemeralContainer(const Value& container, const Path& path, const Names& others,
                                FieldErrors& errors) {
  constexpr std::string_view kRefused = "cannot be set for an Ephemeral Container";
  for (const char* key :
       {"ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
    if (!container[key].IsNull()) errors.Forbidden(path.Child(key), kRefused);
  }
  if (!container["resources"].empty()) errors.Forbidden(path.Child("resources"), kRefused);
  const Value& target = container["targetContainerName"];
  if (!target.AsString().empty() && !others.contains(target.AsString()))
    errors.NotFound(path.Child("targetContainerName"), target);
  const Path mounts = path.Child("volumeMounts");
  for (size_t i = 0; i < container["volumeMounts"].size(); ++i) {
    const Path mount = mounts.Index(i);
    for (const char* key : {"subPath", "subPathExpr"}) {
      if (!container["volumeMounts"].At(i)[key].AsString().empty())
        errors.Forbidden(mount.Child(key), kRefused);
    }
  }
}

}  // namespace

void ValidateContainers(const Value& spec, const Path& path, const PodScope& scope,
                        FieldErrors& errors) {
  Names names;  // containers and init containers share one set
  Names host_ports;
  const Value& containers = spec["containers"];
  const Path list = path.Child("containers");
  if (containers.empty()) errors.Required(list);
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path place = list.Index(i);
    ValidateContainer(containers.At(i), place, scope, names, errors);
    ValidateProbes(containers.At(i), place, scope, errors);
    if (!containers.At(i)["restartPolicy"].IsNull())
      errors.Forbidden(place.Child("restartPolicy"), "may not be set for non-init containers");
    ValidateUniqueHostPorts(containers.At(i), place, host_ports, errors);
  }
  const Value& init_containers = spec["initContainers"];
  const Path init_list = path.Child("initContainers");
  for (size_t i = 0; i < init_containers.size(); ++i) {
    const Path place = init_list.Index(i);
    ValidateContainer(init_containers.At(i), place, scope, names, errors);
    ValidateInitContainer(init_containers.At(i), place, scope, errors);
  }
  const Names others = names;
  const Value& ephemeral = spec["ephemeralContainers"];
  const Path ephemeral_list = path.Child("ephemeralContainers");
  for (size_t i = 0; i < ephemeral.size(); ++i) {
    const Path place = ephemeral_list.Index(i);
    ValidateContainer(ephemeral.At(i), place, scope, names, errors);
    ValidateEphemeralContainer(ephemeral.At(i), place, others, errors);
  }
}

}  // namespace muster::schema
