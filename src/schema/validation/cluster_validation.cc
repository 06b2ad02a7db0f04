// Namespace, Node, PersistentVolumeClaim, Event, PriorityClass, Lease, EndpointSlice:
// k8s.io/kubernetes pkg/apis/{core,scheduling,coordination,discovery}/validation.

#include <algorithm>
#include <set>

#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxSliceEndpoints = 1000;
constexpr size_t kMaxSliceAddresses = 100;
constexpr size_t kMaxSlicePorts = 20000;
constexpr int64_t kHighestUserPriority = 1'000'000'000;
constexpr std::string_view kSystemPriorityPrefix = "system-";

// A node's amounts: "status.capacity.cpu".
void ValidateQuantities(const Value& list, const Path& path, FieldErrors& errors) {
  for (const auto& [name, value] : list.members())
    ValidateAmount(name, value, path.Child(name), errors);
}

// `path` of a dataSource or dataSourceRef.
void ValidateDataSource(const Value& source, const Path& path, FieldErrors& errors) {
  for (const char* key : {"name", "kind"}) {
    if (source[key].AsString().empty()) errors.Required(path.Child(key));
  }
  const std::string_view group = source["apiGroup"].AsString();
  if (group.empty() && source["kind"].AsString() != "PersistentVolumeClaim") {
    errors.Invalid(path, source["kind"].AsString(),
                   "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  }
  if (!group.empty()) errors.Check(CheckDns1123Subdomain, path.Child("apiGroup"), group);
}

}  // namespace

void ValidateNamespace(const Value& ns, FieldErrors& errors) {
  const Path spec("spec");
  const Path finalizers = spec.Child("finalizers");
  for (const Value& name : ns["spec"]["finalizers"].items())
    errors.Check(CheckQualifiedName, finalizers, name);
}

void ValidateNode(const Value& node, FieldErrors& errors) {
  const Path spec("spec");
  const Path taints = spec.Child("taints");
  std::set<std::pair<std::string, std::string>> seen;
  for (size_t i = 0; i < node["spec"]["taints"].size(); ++i) {
    const Value& taint = node["spec"]["taints"].At(i);
    const Path place = taints.Index(i);
    errors.Check(CheckQualifiedName, place.Child("key"), taint["key"]);
    errors.Check(CheckLabelValue, place.Child("value"), taint["value"].AsString());
    errors.OneOf(place.Child("effect"), taint["effect"],
                 {"NoSchedule", "PreferNoSchedule", "NoExecute"});
    if (!seen.insert({taint["key"].Str(), taint["effect"].Str()}).second)
      errors.Duplicate(place, taint);
  }
  const Path status("status");
  for (const char* key : {"capacity", "allocatable"})
    ValidateQuantities(node["status"][key], status.Child(key), errors);
}

void ValidateNodeUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path spec("spec");
  const std::string_view provider = before["spec"]["providerID"].AsString();
  if (!provider.empty() && provider != after["spec"]["providerID"].AsString()) {
    errors.Forbidden(spec.Child("providerID"),
                     "node updates may not change providerID except from \"\" to valid");
  }
  const std::string_view cidr = before["spec"]["podCIDR"].AsString();
  if (!cidr.empty() && cidr != after["spec"]["podCIDR"].AsString()) {
    errors.Forbidden(spec.Child("podCIDRs"),
                     "node updates may not change podCIDR except from \"\" to valid");
  }
}

void ValidateClaimSpec(const Value& spec, const Path& path, FieldErrors& errors) {
  const Path modes = path.Child("accessModes");
  if (spec["accessModes"].empty()) errors.Required(modes, "at least 1 access mode is required");
  bool alone = false, shared = false;
  for (const Value& mode : spec["accessModes"].items()) {
    const bool known = errors.OneOf(
        modes, mode, {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"});
    if (mode.AsString() == "ReadWriteOncePod") {
      alone = true;
    } else {
      shared = shared || known;
    }
  }
  if (alone && shared)
    errors.Forbidden(modes, "may not use ReadWriteOncePod with other access modes");
  const Path resources = path.Child("resources");
  const Value& storage = spec["resources"]["requests"]["storage"];
  const Path storage_path = resources.Key("storage");
  if (storage.IsNull()) {
    errors.Required(storage_path);
  } else if (const Result<Amount> amount = AmountFromJson(storage); !amount || amount->nano <= 0) {
    errors.Invalid(storage_path, storage, "must be greater than zero");
  }
  if (!spec["storageClassName"].AsString().empty()) {
    errors.Check(CheckDns1123Subdomain, path.Child("storageClassName"), spec["storageClassName"]);
  }
  errors.OneOf(path.Child("volumeMode"), spec["volumeMode"], {"Block", "Filesystem"});
  ValidateLabelSelector(spec["selector"], path.Child("selector"), errors);
  for (const char* key : {"dataSource", "dataSourceRef"}) {
    if (!spec[key].IsNull()) ValidateDataSource(spec[key], path.Child(key), errors);
  }
}

void ValidatePersistentVolumeClaim(const Value& claim, FieldErrors& errors) {
  ValidateClaimSpec(claim["spec"], Path("spec"), errors);
}

void ValidatePersistentVolumeClaimUpdate(const Value& before, const Value& after,
                                         FieldErrors& errors) {
  const Value& old = before["spec"];
  Value now = after["spec"];
  if (old == now) return;
  // A bound claim may grow; a claim may be bound, and its class may be given once.
  if (before["status"]["phase"].AsString() == "Bound")
    now = now.SetPath({"resources", "requests"}, old["resources"]["requests"]);
  if (old["volumeName"].AsString().empty() && now.Has("volumeName")) now = now.Remove("volumeName");
  if (old["storageClassName"].IsNull()) now = now.Remove("storageClassName");
  if (now == old) return;
  errors.Forbidden(Path("spec"),
                   "spec is immutable after creation except resources.requests and "
                   "volumeAttributesClassName for bound claims");
}

void ValidateEvent(const Value& event, FieldErrors& errors) {
  const std::string_view about = event["involvedObject"]["namespace"].AsString();
  const std::string_view ns = event["metadata"]["namespace"].AsString();
  const Path involved("involvedObject");
  // Events about cluster-scoped objects go to the default namespace.
  if (about.empty() ? ns != "default" && ns != "kube-system" : about != ns) {
    errors.Invalid(involved.Child("namespace"), about, "does not match event.namespace");
  }
}

void ValidatePriorityClass(const Value& priority_class, FieldErrors& errors) {
  const std::string_view name = priority_class["metadata"]["name"].AsString();
  const int64_t value = priority_class["value"].AsInt();
  const bool system = name == "system-node-critical" || name == "system-cluster-critical";
  if (name.starts_with(kSystemPriorityPrefix) && !system) {
    const Path metadata("metadata");
    errors.Forbidden(metadata.Child("name"),
                     "priority class names with 'system-' prefix are reserved for system use only");
  } else if (!system && value > kHighestUserPriority) {
    errors.Forbidden(Path("value"),
                     fmt::format("maximum allowed value of a user defined priority is {}",
                                 kHighestUserPriority));
  }
  const Value& policy = priority_class["preemptionPolicy"];
  if (!policy.IsNull())
    errors.OneOf(Path("preemptionPolicy"), policy, {"PreemptLowerPriority", "Never"});
}

void ValidatePriorityClassUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  if (before["value"].AsInt() != after["value"].AsInt())
    errors.Forbidden(Path("value"), "may not be changed in an update.");
  if (!(before["preemptionPolicy"] == after["preemptionPolicy"])) {
    errors.Invalid(Path("preemptionPolicy"), after["preemptionPolicy"], kImmutable);
  }
}

void ValidateLease(const Value& lease, FieldErrors& errors) {
  const Value& spec = lease["spec"];
  const Path path("spec");
  const Value& duration = spec["leaseDurationSeconds"];
  if (!duration.IsNull() && duration.AsInt() <= 0)
    errors.Invalid(path.Child("leaseDurationSeconds"), duration, "must be greater than 0");
  if (spec["leaseTransitions"].AsInt() < 0) {
    errors.Invalid(path.Child("leaseTransitions"), spec["leaseTransitions"],
                   "must be greater than or equal to 0");
  }
}

void ValidateEndpointSlice(const Value& slice, FieldErrors& errors) {
  const std::string_view type = slice["addressType"].AsString();
  errors.OneOf(Path("addressType"), slice["addressType"], {"FQDN", "IPv4", "IPv6"});
  const Value& endpoints = slice["endpoints"];
  const Path list("endpoints");
  if (endpoints.size() > kMaxSliceEndpoints)
    return errors.TooMany(list, endpoints.size(), kMaxSliceEndpoints);
  for (size_t i = 0; i < endpoints.size(); ++i) {
    const Value& addresses = endpoints.At(i)["addresses"];
    const Path place = list.Index(i);
    const Path address_list = place.Child("addresses");
    if (addresses.empty()) errors.Required(address_list, "must contain at least 1 address");
    if (addresses.size() > kMaxSliceAddresses)
      errors.TooMany(address_list, addresses.size(), kMaxSliceAddresses);
    for (size_t j = 0; j < addresses.size(); ++j) {
      const std::string_view address = addresses.At(j).AsString();
      if (type == "IPv4" && !IsIpv4(address))
        errors.Invalid(address_list.Index(j), address, "must be an IPv4 address");
      if (type == "IPv6" && !IsIpv6(address))
        errors.Invalid(address_list.Index(j), address, "must be an IPv6 address");
      if (type == "FQDN") errors.Check(CheckDns1123Subdomain, address_list.Index(j), address);
    }
    if (!endpoints.At(i)["hostname"].IsNull())
      errors.Check(CheckDns1123Label, place.Child("hostname"), endpoints.At(i)["hostname"]);
  }
  const Value& ports = slice["ports"];
  const Path port_list("ports");
  if (ports.size() > kMaxSlicePorts) return errors.TooMany(port_list, ports.size(), kMaxSlicePorts);
  std::set<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Path place = port_list.Index(i);
    const Value& name = ports.At(i)["name"];
    if (!name.AsString().empty()) errors.Check(CheckPortName, place.Child("name"), name);
    if (!names.insert(name.Str()).second) errors.Duplicate(place.Child("name"), name);
    errors.OneOf(place.Child("protocol"), ports.At(i)["protocol"], {"SCTP", "TCP", "UDP"});
  }
}

void ValidateEndpointSliceUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  if (!(before["addressType"] == after["addressType"]))
    errors.Invalid(Path("addressType"), after["addressType"], kImmutable);
}

}  // namespace muster::schema
