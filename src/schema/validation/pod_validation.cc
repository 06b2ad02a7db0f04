// Pods: k8s.io/kubernetes pkg/apis/core/validation ValidatePodCreate, ValidatePodSpec.

#include <optional>
#include <set>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxNameservers = 3;
constexpr size_t kMaxSearchPaths = 32;
constexpr size_t kMaxSearchListCharacters = 2048;

void ValidateSpecNumbers(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& deadline = spec["activeDeadlineSeconds"];
  if (!deadline.IsNull() && (deadline.AsInt() < 1 || deadline.AsInt() > INT32_MAX)) {
    errors.Invalid(path.Child("activeDeadlineSeconds"), deadline,
                   "must be between 1 and 2147483647, inclusive");
  }
}

void ValidateSpecNames(const Value& spec, const Path& path, FieldErrors& errors) {
  const auto check = [&](const char* key, NameCheck rule) {
    if (!spec[key].AsString().empty()) errors.Check(rule, path.Child(key), spec[key]);
  };
  check("serviceAccountName", CheckDns1123Subdomain);
  check("nodeName", CheckDns1123Subdomain);
  check("hostname", CheckDns1123Label);
  check("subdomain", CheckDns1123Label);
  check("priorityClassName", CheckDns1123Subdomain);
  check("runtimeClassName", CheckDns1123Subdomain);
}

void ValidateSearches(const Value& searches, const Path& path, FieldErrors& errors) {
  if (searches.size() > kMaxSearchPaths)
    errors.Invalid(path, searches, "must not have more than 32 search paths");
  if (Join(json::ToStrings(searches), " ").size() > kMaxSearchListCharacters) {
    errors.Invalid(path, searches,
                   "must not have more than 2048 characters (including spaces) in the search list");
  }
  for (size_t i = 0; i < searches.size(); ++i) {
    std::string_view name = searches.At(i).AsString();
    if (name.ends_with('.')) name.remove_suffix(1);
    errors.Check(CheckDns1123Subdomain, path.Index(i), name);
  }
}

void ValidateDns(const Value& spec, const Path& path, FieldErrors& errors) {
  errors.OneOf(path.Child("dnsPolicy"), spec["dnsPolicy"],
               {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"});
  const Value& config = spec["dnsConfig"];
  const Value& servers = config["nameservers"];
  const Path config_path = path.Child("dnsConfig");
  const Path list = config_path.Child("nameservers");
  if (spec["dnsPolicy"].AsString() == "None") {
    if (config.IsNull()) {
      return errors.Required(config_path, "must provide `dnsConfig` when `dnsPolicy` is None");
    }
    if (servers.empty()) {
      return errors.Required(list,
                             "must provide at least one DNS nameserver when `dnsPolicy` is None");
    }
  }
  if (servers.size() > kMaxNameservers)
    errors.Invalid(list, servers, "must not have more than 3 nameservers");
  for (size_t i = 0; i < servers.size(); ++i) errors.Check(CheckIp, list.Index(i), servers.At(i));
  ValidateSearches(config["searches"], config_path.Child("searches"), errors);
  const Path options = config_path.Child("options");
  for (size_t i = 0; i < config["options"].size(); ++i) {
    if (config["options"].At(i)["name"].AsString().empty())
      errors.Required(options.Index(i), "must not be empty");
  }
}

void ValidateHostAliases(const Value& aliases, const Path& path, FieldErrors& errors) {
  for (size_t i = 0; i < aliases.size(); ++i) {
    const Path place = path.Index(i);
    errors.Check(CheckIp, place.Child("ip"), aliases.At(i)["ip"]);
    const Path names = place.Child("hostnames");
    const Value& hostnames = aliases.At(i)["hostnames"];
    for (size_t j = 0; j < hostnames.size(); ++j)
      errors.Check(CheckDns1123Subdomain, names.Index(j), hostnames.At(j));
  }
}

void ValidateGates(const Value& spec, const Path& path, FieldErrors& errors) {
  std::set<std::string, std::less<>> names;
  const Path gates = path.Child("schedulingGates");
  for (size_t i = 0; i < spec["schedulingGates"].size(); ++i) {
    const Value& name = spec["schedulingGates"].At(i)["name"];
    const Path place = gates.Index(i);
    errors.Check(CheckQualifiedName, place, name);
    if (!names.insert(name.Str()).second) errors.Duplicate(place, name);
  }
  const Path readiness = path.Child("readinessGates");
  for (size_t i = 0; i < spec["readinessGates"].size(); ++i) {
    const Path place = readiness.Index(i);
    errors.Check(CheckQualifiedName, place.Child("conditionType"),
                 spec["readinessGates"].At(i)["conditionType"]);
  }
}

// With the host's network a container's port is the host's.
void ValidateHostPorts(const Value& spec, const Path& path, FieldErrors& errors) {
  if (!spec["hostNetwork"].AsBool()) return;
  const Path list = path.Child("containers");
  for (size_t i = 0; i < spec["containers"].size(); ++i) {
    const Value& ports = spec["containers"].At(i)["ports"];
    const Path container = list.Index(i);
    const Path ports_path = container.Child("ports");
    for (size_t j = 0; j < ports.size(); ++j) {
      const int64_t host_port = ports.At(j)["hostPort"].AsInt();
      const Path place = ports_path.Index(j);
      // A template may leave it out: the pod that is made of it gets it then.
      if (host_port != 0 && host_port != ports.At(j)["containerPort"].AsInt()) {
        errors.Invalid(place.Child("hostPort"), host_port,
                       "must match `containerPort` when `hostNetwork` is true");
      }
    }
  }
}

void ValidateTokenVolumes(const Value& spec, const Path& path, FieldErrors& errors) {
  if (!spec["serviceAccountName"].AsString().empty()) return;
  const Path volumes = path.Child("volumes");
  for (size_t i = 0; i < spec["volumes"].size(); ++i) {
    const Value& sources = spec["volumes"].At(i)["projected"]["sources"];
    const Path volume = volumes.Index(i);
    const Path projected = volume.Child("projected");
    const Path list = projected.Child("sources");
    for (size_t j = 0; j < sources.size(); ++j) {
      if (sources.At(j)["serviceAccountToken"].IsNull()) continue;
      const Path source = list.Index(j);
      errors.Forbidden(source.Child("serviceAccountToken"),
                       "must not be specified when serviceAccountName is not set");
    }
  }
}

}  // namespace

void ValidatePodAnnotations(const Value& pod, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
  constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
  const Value& annotations = pod["metadata"]["annotations"];
  if (annotations.Has(kMirror) && pod["spec"]["nodeName"].AsString().empty()) {
    errors.Invalid(path.Key(kMirror), annotations[kMirror],
                   "must set spec.nodeName if mirror pod annotation is set");
  }
  if (!annotations.Has(kDeletionCost)) return;
  const std::string_view text = annotations[kDeletionCost].AsString();
  const std::optional<int64_t> cost = ParseInt(text);
  if (!cost || *cost < INT32_MIN || *cost > INT32_MAX)
    errors.Invalid(path.Key(kDeletionCost), text, "must be a 32bit integer");
}

void ValidatePodSpec(const Value& spec, const Path& path, FieldErrors& errors) {
  PodScope scope;
  scope.volumes = ValidateVolumes(spec["volumes"], path.Child("volumes"), errors);
  scope.grace_seconds = spec["terminationGracePeriodSeconds"].AsInt();
  scope.os = spec["os"]["name"].Str();
  ValidateContainers(spec, path, scope, errors);
  ValidateHostPorts(spec, path, errors);
  errors.OneOf(path.Child("restartPolicy"), spec["restartPolicy"],
               {"Always", "OnFailure", "Never"});
  ValidateDns(spec, path, errors);
  ValidateSpecNumbers(spec, path, errors);
  ValidateSpecNames(spec, path, errors);
  ValidateLabels(spec["nodeSelector"], path.Child("nodeSelector"), errors);
  ValidatePodSecurity(spec, path, errors);
  if (!spec["affinity"].IsNull())
    ValidateAffinity(spec["affinity"], path.Child("affinity"), errors);
  ValidateTolerations(spec["tolerations"], path.Child("tolerations"), errors);
  ValidateTopologySpread(spec["topologySpreadConstraints"], path.Child("topologySpreadConstraints"),
                         errors);
  ValidateHostAliases(spec["hostAliases"], path.Child("hostAliases"), errors);
  ValidateGates(spec, path, errors);
  if (!spec["resources"].IsNull())
    ValidateResources(spec["resources"], path.Child("resources"), errors);
  if (!spec["overhead"].IsNull())
    ValidateResources(json::Obj({{"limits", spec["overhead"]}}), path.Child("overhead"), errors);
  if (!spec["preemptionPolicy"].IsNull()) {
    errors.OneOf(path.Child("preemptionPolicy"), spec["preemptionPolicy"],
                 {"PreemptLowerPriority", "Never"});
  }
  ValidateOs(spec, path, errors);
}

void ValidatePod(const Value& pod, FieldErrors& errors) {
  const Path spec("spec");
  ValidatePodAnnotations(pod, Path("metadata").Child("annotations"), errors);
  ValidatePodSpec(pod["spec"], spec, errors);
  ValidateTokenVolumes(pod["spec"], spec, errors);
}

void ValidatePodCreate(const Value& pod, FieldErrors& errors) {
  const Value& spec = pod["spec"];
  const Path path("spec");
  if (!spec["ephemeralContainers"].empty())
    errors.Forbidden(path.Child("ephemeralContainers"), "cannot be set on create");
  if (!spec["schedulingGates"].empty() && !spec["nodeName"].AsString().empty()) {
    errors.Forbidden(path.Child("nodeName"),
                     "cannot be set until all schedulingGates have been cleared");
  }
}

}  // namespace muster::schema
