// Pods: k8s.io/kubernetes pkg/apis/core/validation ValidatePodCreate, ValidatePodSpec.

#include <array>

#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxNameservers = 3;

void ValidateSpecNumbers(const Value& spec, const Path& path, FieldErrors& errors) {
  errors.NotNegative(path.Child("terminationGracePeriodSeconds"),
                     spec["terminationGracePeriodSeconds"]);
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
  check("schedulerName", CheckQualifiedName);
  const Path secrets = path.Child("imagePullSecrets");
  for (size_t i = 0; i < spec["imagePullSecrets"].size(); ++i) {
    const Path place = secrets.Index(i);
    if (spec["imagePullSecrets"].At(i)["name"].AsString().empty())
      errors.Required(place.Child("name"));
  }
}

void ValidateSecurityContext(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& security = spec["securityContext"];
  const Path place = path.Child("securityContext");
  for (const char* key : {"runAsUser", "runAsGroup", "fsGroup"}) {
    const int64_t id = security[key].AsInt();
    if (id < 0 || id > INT32_MAX)
      errors.Invalid(place.Child(key), id, "must be between 0 and 2147483647, inclusive");
  }
  if (spec["shareProcessNamespace"].AsBool() && spec["hostPID"].AsBool()) {
    errors.Invalid(path.Child("shareProcessNamespace"), true,
                   "ShareProcessNamespace and HostPID cannot both be enabled");
  }
}

void ValidateDns(const Value& spec, const Path& path, FieldErrors& errors) {
  errors.OneOf(path.Child("dnsPolicy"), spec["dnsPolicy"],
               {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"});
  const Value& servers = spec["dnsConfig"]["nameservers"];
  const Path config = path.Child("dnsConfig");
  const Path list = config.Child("nameservers");
  if (spec["dnsPolicy"].AsString() == "None" && servers.empty()) {
    errors.Required(list, "must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  if (servers.size() > kMaxNameservers)
    errors.Invalid(list, servers, "must not have more than 3 nameservers");
  for (size_t i = 0; i < servers.size(); ++i) errors.Check(CheckIp, list.Index(i), servers.At(i));
}

void ValidateHostAliases(const Value& aliases, const Path& path, FieldErrors& errors) {
  for (size_t i = 0; i < aliases.size(); ++i) {
    const Path place = path.Index(i);
    errors.Check(CheckIp, place.Child("ip"), aliases.At(i)["ip"]);
    const Path names = place.Child("hostnames");
    for (const Value& name : aliases.At(i)["hostnames"].items())
      errors.Check(CheckDns1123Subdomain, names, name);
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
  if (!spec["schedulingGates"].empty() && !spec["nodeName"].AsString().empty()) {
    errors.Forbidden(path.Child("nodeName"),
                     "cannot be set until all schedulingGates have been cleared");
  }
  const Path readiness = path.Child("readinessGates");
  for (size_t i = 0; i < spec["readinessGates"].size(); ++i) {
    const Path place = readiness.Index(i);
    errors.Check(CheckQualifiedName, place.Child("conditionType"),
                 spec["readinessGates"].At(i)["conditionType"]);
  }
}

}  // namespace

void ValidatePodSpec(const Value& spec, const Path& path, FieldErrors& errors) {
  PodScope scope;
  scope.volumes = ValidateVolumes(spec["volumes"], path.Child("volumes"), errors);
  scope.host_network = spec["hostNetwork"].AsBool();
  ValidateContainers(spec, path, scope, errors);
  errors.OneOf(path.Child("restartPolicy"), spec["restartPolicy"],
               {"Always", "OnFailure", "Never"});
  ValidateDns(spec, path, errors);
  ValidateSpecNumbers(spec, path, errors);
  ValidateSpecNames(spec, path, errors);
  ValidateLabels(spec["nodeSelector"], path.Child("nodeSelector"), errors);
  ValidateSecurityContext(spec, path, errors);
  if (!spec["affinity"].IsNull())
    ValidateAffinity(spec["affinity"], path.Child("affinity"), errors);
  ValidateTolerations(spec["tolerations"], path.Child("tolerations"), errors);
  ValidateTopologySpread(spec["topologySpreadConstraints"], path.Child("topologySpreadConstraints"),
                         errors);
  ValidateHostAliases(spec["hostAliases"], path.Child("hostAliases"), errors);
  ValidateGates(spec, path, errors);
  if (!spec["resources"].IsNull())
    ValidateResources(spec["resources"], path.Child("resources"), errors);
  if (!spec["preemptionPolicy"].IsNull()) {
    errors.OneOf(path.Child("preemptionPolicy"), spec["preemptionPolicy"],
                 {"PreemptLowerPriority", "Never"});
  }
}

void ValidatePod(const Value& pod, FieldErrors& errors) {
  ValidatePodSpec(pod["spec"], Path("spec"), errors);
}

}  // namespace muster::schema
