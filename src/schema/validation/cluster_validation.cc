// Namespace, Node, PersistentVolumeClaim, Event, PriorityClass, Lease, Endpoints, EndpointSlice:
// k8s.io/kubernetes pkg/apis/{core,scheduling,coordination,discovery}/validation.

#include <set>

#include "json/value_hash.h"
#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxSliceEndpoints = 1000;
constexpr size_t kMaxSliceAddresses = 100;
constexpr size_t kMaxSlicePorts = 20000;
constexpr size_t kMaxSliceHints = 8;
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

// Who asked for more than there was room for may ask for less again, but not for less than he has.
void ValidateShrinking(const Value& before, const Value& after, FieldErrors& errors) {
  const auto size = [](const Value& spec) {
    return AmountFromJson(spec["resources"]["requests"]["storage"]);
  };
  const Result<Amount> old = size(before["spec"]), now = size(after["spec"]);
  if (!old || !now || *now >= *old) return;
  const Result<Amount> has = AmountFromJson(before["status"]["capacity"]["storage"]);
  if (now->nano > (has ? has->nano : 0)) return;
  const Path spec("spec");
  const Path resources = spec.Child("resources");
  const Path requests = resources.Child("requests");
  errors.Forbidden(requests.Child("storage"), "field can not be less than status.capacity");
}

void ValidatePodCidrs(const Value& cidrs, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("podCIDRs");
  size_t v4 = 0;
  for (size_t i = 0; i < cidrs.size(); ++i) {
    errors.Check(CheckCidr, list.Index(i), cidrs.At(i));
    v4 += cidrs.At(i).AsString().find(':') == std::string_view::npos ? 1 : 0;
  }
  if (cidrs.size() > 2 || (cidrs.size() == 2 && v4 != 1))
    errors.Invalid(list, cidrs, "may specify no more than one CIDR for each IP family");
}

void ValidateNodeStatus(const Value& node_status, FieldErrors& errors) {
  const Path status("status");
  for (const char* key : {"capacity", "allocatable"})
    ValidateQuantities(node_status[key], status.Child(key), errors);
  const Path list = status.Child("addresses");
  const json::Array& addresses = node_status["addresses"].items();
  json::ValueSet seen;
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (!seen.insert(addresses[i]).second) errors.Duplicate(list.Index(i), addresses[i]);
  }
}

void ValidateSliceAddress(std::string_view address, std::string_view type, const Path& path,
                          FieldErrors& errors) {
  if (type == "FQDN") {
    if (address.ends_with('.')) address.remove_suffix(1);
    if (errors.Check(CheckDns1123Subdomain, path, address) &&
        address.find('.') == std::string_view::npos) {
      errors.Invalid(path, address,
                     "should be a domain with at least two segments separated by dots");
    }
    return;
  }
  if (type == "IPv4" && !IsIpv4(address)) errors.Invalid(path, address, "must be an IPv4 address");
  if (type == "IPv6" && !IsIpv6(address)) errors.Invalid(path, address, "must be an IPv6 address");
  if (type == "IPv4" || type == "IPv6") errors.Check(CheckOrdinaryIp, path, address);
}

void ValidateEndpointAddress(const Value& address, const Path& path, FieldErrors& errors) {
  const Path ip = path.Child("ip");
  errors.Check(CheckIp, ip, address["ip"].AsString());
  if (!address["hostname"].AsString().empty())
    errors.Check(CheckDns1123Label, path.Child("hostname"), address["hostname"]);
  if (!address["nodeName"].IsNull())
    errors.Check(CheckDns1123Subdomain, path.Child("nodeName"), address["nodeName"]);
  errors.Check(CheckOrdinaryIp, ip, address["ip"].AsString());
}

void ValidateEndpointPort(const Value& port, bool needs_name, const Path& path,
                          FieldErrors& errors) {
  const Value& name = port["name"];
  if (!name.AsString().empty()) {
    errors.Check(CheckDns1123Label, path.Child("name"), name);
  } else if (needs_name) {
    errors.Required(path.Child("name"));
  }
  errors.Port(path.Child("port"), port["port"]);
  errors.OneOf(path.Child("protocol"), port["protocol"], {"SCTP", "TCP", "UDP"});
  if (!port["appProtocol"].IsNull())
    errors.Check(CheckQualifiedName, path.Child("appProtocol"), port["appProtocol"]);
}

// False: there are too many to look at.
bool ValidateHints(const Value& hints, NameCheck check_name, const Path& path,
                   FieldErrors& errors) {
  if (hints.size() > kMaxSliceHints) {
    errors.TooMany(path, hints.size(), kMaxSliceHints);
    return false;
  }
  std::set<std::string> names;
  for (size_t i = 0; i < hints.size(); ++i) {
    const Path at = path.Index(i);
    const Value& name = hints.At(i)["name"];
    if (!names.insert(name.Str()).second) errors.Duplicate(at.Child("name"), name);
    errors.Check(check_name, at.Child("name"), name);
  }
  return true;
}

void ValidateEndpoint(const Value& endpoint, std::string_view type, const Path& path,
                      FieldErrors& errors) {
  const Value& addresses = endpoint["addresses"];
  const Path list = path.Child("addresses");
  if (addresses.empty()) errors.Required(list, "must contain at least 1 address");
  if (addresses.size() > kMaxSliceAddresses)
    errors.TooMany(list, addresses.size(), kMaxSliceAddresses);
  for (size_t i = 0; i < addresses.size(); ++i)
    ValidateSliceAddress(addresses.At(i).AsString(), type, list.Index(i), errors);
  if (!endpoint["hostname"].IsNull())
    errors.Check(CheckDns1123Label, path.Child("hostname"), endpoint["hostname"]);
  if (!endpoint["nodeName"].IsNull())
    errors.Check(CheckDns1123Subdomain, path.Child("nodeName"), endpoint["nodeName"]);
  const Path hints = path.Child("hints");
  if (ValidateHints(endpoint["hints"]["forZones"], CheckLabelValue, hints.Child("forZones"),
                    errors)) {
    ValidateHints(endpoint["hints"]["forNodes"], CheckDns1123Subdomain, hints.Child("forNodes"),
                  errors);
  }
}

}  // namespace

void ValidateTaints(const Value& taints, const Path& list, FieldErrors& errors) {
  std::set<std::pair<std::string, std::string>> seen;
  for (size_t i = 0; i < taints.size(); ++i) {
    const Value& taint = taints.At(i);
    const Path place = list.Index(i);
    errors.Check(CheckQualifiedName, place.Child("key"), taint["key"].AsString());
    errors.Check(CheckLabelValue, place.Child("value"), taint["value"].AsString());
    if (taint["effect"].AsString().empty()) {
      errors.Required(place.Child("effect"));
    } else {
      errors.OneOf(place.Child("effect"), taint["effect"],
                   {"NoSchedule", "PreferNoSchedule", "NoExecute"});
    }
    if (!seen.insert({taint["key"].Str(), taint["effect"].Str()}).second)
      errors.Duplicate(place, taint, "taints must be unique by key and effect pair");
  }
}

void ValidateNamespace(const Value& ns, FieldErrors& errors) {
  const Path spec("spec");
  const Path finalizers = spec.Child("finalizers");
  for (const Value& name : ns["spec"]["finalizers"].items()) {
    errors.Check(CheckQualifiedName, finalizers, name);
    ValidateStandardFinalizer(name, finalizers, errors);
  }
}

void ValidateNamespaceStatusUpdate(const Value&, const Value& after, FieldErrors& errors) {
  const bool ending = !after["metadata"]["deletionTimestamp"].IsNull();
  const std::string_view expected = ending ? "Terminating" : "Active";
  const Value& phase = after["status"]["phase"];
  if (phase.AsString() == expected) return;
  const Path status("status");
  errors.Invalid(status.Child("Phase"), phase.AsString(),
                 fmt::format("may only be '{}' if `deletionTimestamp` is {}", expected,
                             ending ? "not empty" : "empty"));
}

void ValidateNode(const Value& node, FieldErrors& errors) {
  const Path metadata("metadata");
  ValidateTaints(node["spec"]["taints"], metadata.Child("taints"), errors);  // as upstream says
  ValidatePodCidrs(node["spec"]["podCIDRs"], errors);
  ValidateNodeStatus(node["status"], errors);
}

void ValidateNodeStatusUpdate(const Value&, const Value& after, FieldErrors& errors) {
  ValidateNodeStatus(after["status"], errors);
}

void ValidateNodeUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path spec("spec");
  const std::string_view provider = before["spec"]["providerID"].AsString();
  if (!provider.empty() && provider != after["spec"]["providerID"].AsString()) {
    errors.Forbidden(spec.Child("providerID"),
                     "node updates may not change providerID except from \"\" to valid");
  }
  const Value& cidrs = before["spec"]["podCIDRs"];
  if (!cidrs.empty() && !(cidrs == after["spec"]["podCIDRs"])) {
    errors.Forbidden(spec.Child("podCIDRs"),
                     "node updates may not change podCIDR except from \"\" to valid");
  }
}

void ValidateAccessModes(const Value& modes, const Path& path, FieldErrors& errors) {
  bool alone = false, shared = false;
  for (const Value& mode : modes.items()) {
    const bool known = errors.OneOf(
        path, mode, {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"});
    if (mode.AsString() == "ReadWriteOncePod") {
      alone = true;
    } else {
      shared = shared || known;
    }
  }
  if (alone && shared)
    errors.Forbidden(path, "may not use ReadWriteOncePod with other access modes");
}

void ValidateClaimSpec(const Value& spec, const Path& path, FieldErrors& errors) {
  const Path modes = path.Child("accessModes");
  if (spec["accessModes"].empty()) errors.Required(modes, "at least 1 access mode is required");
  ValidateAccessModes(spec["accessModes"], modes, errors);
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
  if (!(old["volumeMode"] == now["volumeMode"]))
    errors.Invalid(Path("volumeMode"), now["volumeMode"], kImmutable);
  ValidateShrinking(before, after, errors);
  // A bound claim may grow; a claim may be bound, and its class may be given once.
  if (after["status"]["phase"].AsString() == "Bound")
    now = now.SetPath({"resources", "requests"}, old["resources"]["requests"]);
  if (old["volumeName"].AsString().empty()) now = now.Remove("volumeName");
  if (old["storageClassName"].IsNull()) now = now.Remove("storageClassName");
  if (now == old) return;
  errors.Forbidden(Path("spec"),
                   "spec is immutable after creation except resources.requests and "
                   "volumeAttributesClassName for bound claims");
}

void ValidateClaimStatusUpdate(const Value&, const Value& after, FieldErrors& errors) {
  const Path status("status");
  const Path capacity = status.Child("capacity");
  for (const auto& [name, value] : after["status"]["capacity"].members()) {
    const Result<Amount> amount = AmountFromJson(value);
    if (!amount || amount->nano < 0)
      errors.Invalid(capacity.Key(name), Value::Number(amount ? amount->Canonical() : "0"),
                     "must be a valid resource quantity");
  }
}

namespace {

// Events that say when they were taken also say by whom and doing what.
void ValidateNewEvent(const Value& event, FieldErrors& errors) {
  constexpr int64_t kMaxWordBytes = 128;
  constexpr int64_t kMaxNoteBytes = 1024;
  const auto check = [&](const char* key, bool required, size_t most) {
    const std::string_view text = event[key].AsString();
    if (required && text.empty()) errors.Required(Path(key));
    if (text.size() > most)
      errors.Invalid(Path(key), "", fmt::format("can have at most {} characters", most));
  };
  const std::string_view controller = event["reportingComponent"].AsString();
  const Path path("reportingController");
  if (controller.empty()) errors.Required(path);
  errors.Check(CheckQualifiedName, path, controller);
  check("reportingInstance", true, kMaxWordBytes);
  check("action", true, kMaxWordBytes);
  check("reason", true, kMaxWordBytes);
  check("message", false, kMaxNoteBytes);
}

}  // namespace

void ValidateEvent(const Value& event, FieldErrors& errors) {
  const std::string_view about = event["involvedObject"]["namespace"].AsString();
  const std::string_view ns = event["metadata"]["namespace"].AsString();
  const Path involved("involvedObject");
  const bool is_new = !event["eventTime"].IsNull();
  // Events about cluster-scoped objects go to the default namespace.
  bool fits = about.empty() ? ns == "default" : about == ns;
  if (is_new) fits = !about.empty() || ns == "default" || ns == "kube-system";
  if (!fits) errors.Invalid(involved.Child("namespace"), about, "does not match event.namespace");
  if (is_new) ValidateNewEvent(event, errors);
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

void ValidateEndpoints(const Value& endpoints, FieldErrors& errors) {
  const Path list("subsets");
  for (size_t i = 0; i < endpoints["subsets"].size(); ++i) {
    const Value& subset = endpoints["subsets"].At(i);
    const Path place = list.Index(i);
    if (subset["addresses"].empty() && subset["notReadyAddresses"].empty())
      errors.Required(place, "must specify `addresses` or `notReadyAddresses`");
    for (const char* key : {"addresses", "notReadyAddresses"}) {
      const Path addresses = place.Child(key);
      for (size_t j = 0; j < subset[key].size(); ++j)
        ValidateEndpointAddress(subset[key].At(j), addresses.Index(j), errors);
    }
    const Value& ports = subset["ports"];
    const Path port_list = place.Child("ports");
    for (size_t j = 0; j < ports.size(); ++j)
      ValidateEndpointPort(ports.At(j), ports.size() > 1, port_list.Index(j), errors);
  }
}

void ValidateEndpointSlice(const Value& slice, FieldErrors& errors) {
  const std::string_view type = slice["addressType"].AsString();
  if (type.empty()) {
    errors.Required(Path("addressType"));
  } else {
    errors.OneOf(Path("addressType"), slice["addressType"], {"FQDN", "IPv4", "IPv6"});
  }
  const Value& endpoints = slice["endpoints"];
  const Path list("endpoints");
  if (endpoints.size() > kMaxSliceEndpoints) {
    errors.TooMany(list, endpoints.size(), kMaxSliceEndpoints);
  } else {
    for (size_t i = 0; i < endpoints.size(); ++i)
      ValidateEndpoint(endpoints.At(i), type, list.Index(i), errors);
  }
  const Value& ports = slice["ports"];
  const Path port_list("ports");
  if (ports.size() > kMaxSlicePorts) return errors.TooMany(port_list, ports.size(), kMaxSlicePorts);
  std::set<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Path place = port_list.Index(i);
    const Value& name = ports.At(i)["name"];
    if (!name.AsString().empty()) errors.Check(CheckDns1123Label, place.Child("name"), name);
    if (!names.insert(name.Str()).second) errors.Duplicate(place.Child("name"), name);
    errors.OneOf(place.Child("protocol"), ports.At(i)["protocol"], {"SCTP", "TCP", "UDP"});
    if (!ports.At(i)["appProtocol"].IsNull())
      errors.Check(CheckQualifiedName, place.Child("appProtocol"), ports.At(i)["appProtocol"]);
  }
}

void ValidateEndpointSliceUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  if (!(before["addressType"] == after["addressType"]))
    errors.Invalid(Path("addressType"), after["addressType"], kImmutable);
}

}  // namespace muster::schema
