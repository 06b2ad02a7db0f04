// StorageClass, CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment, VolumeAttributesClass:
// k8s.io/kubernetes pkg/apis/storage/validation.

#include <map>
#include <set>
#include <vector>

#include "base/strings.h"
#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxParameters = 512;
constexpr size_t kMaxParameterBytes = 256 * 1024;
constexpr size_t kMaxNodeIdBytes = 192;
constexpr size_t kMaxAttachmentBytes = 256 * 1024;
constexpr size_t kMaxVolumeErrorBytes = 1024;
constexpr int64_t kMinTokenSeconds = 600;
constexpr int64_t kMaxTokenSeconds = int64_t{1} << 32;
constexpr std::string_view kOneSource =
    "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

size_t TextBytes(const Value& texts) {
  size_t total = 0;
  for (const auto& [key, value] : texts.members()) total += key.size() + value.AsString().size();
  return total;
}

// A provisioner, or a driver.
void ValidateProvisioner(const Value& name, const Path& path, FieldErrors& errors) {
  if (name.AsString().empty()) return errors.Required(path);
  Problems problems;
  CheckQualifiedName(ToLower(name.AsString()), problems);
  for (const std::string& problem : problems) errors.Invalid(path, name, problem);
}

void ValidateParameters(const Value& parameters, const Path& path, FieldErrors& errors) {
  if (parameters.size() > kMaxParameters) return errors.TooLong(path, kMaxParameters);
  if (parameters.Has("")) errors.Invalid(path, "", "field can not be empty.");
  if (TextBytes(parameters) > kMaxParameterBytes) errors.TooLong(path, kMaxParameterBytes);
}

using Topology = std::map<std::string, std::set<std::string>>;

Topology ValidateTopologyTerm(const Value& term, const Path& path, FieldErrors& errors) {
  Topology topology;
  for (size_t i = 0; i < term["matchLabelExpressions"].size(); ++i) {
    const Value& expression = term["matchLabelExpressions"].At(i);
    const Path place = path.Index(i);
    const Path list = place.Child("values");
    if (expression["values"].empty()) errors.Required(list);
    std::set<std::string> values;
    for (size_t j = 0; j < expression["values"].size(); ++j) {
      const Value& value = expression["values"].At(j);
      if (!values.insert(value.Str()).second) errors.Duplicate(list.Index(j), value);
    }
    errors.Check(CheckQualifiedName, place.Child("key"), expression["key"].AsString());
    const auto [at, added] = topology.emplace(expression["key"].Str(), std::move(values));
    if (!added) errors.Duplicate(place.Child("key"), expression["key"]);
  }
  return topology;
}

void ValidateAllowedTopologies(const Value& terms, FieldErrors& errors) {
  const Path path("allowedTopologies");
  std::set<Topology> seen;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Path place = path.Index(i);
    const Path expressions = place.Child("matchLabelExpressions");
    if (!seen.insert(ValidateTopologyTerm(terms.At(i), expressions, errors)).second)
      errors.Duplicate(expressions, "");
  }
}

void ValidateTokenRequests(const Value& requests, const Path& path, FieldErrors& errors) {
  std::set<std::string> audiences;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Value& request = requests.At(i);
    const Path place = path.Index(i);
    if (!audiences.insert(request["audience"].Str()).second) {
      errors.Duplicate(place.Child("audience"), request["audience"].AsString());
      continue;
    }
    const Value& seconds = request["expirationSeconds"];
    if (seconds.IsNull()) continue;
    const Path expiration = place.Child("expirationSeconds");
    if (seconds.AsInt() < kMinTokenSeconds)
      errors.Invalid(expiration, seconds, "may not specify a duration less than 10 minutes");
    if (seconds.AsInt() > kMaxTokenSeconds)
      errors.Invalid(expiration, seconds, "may not specify a duration larger than 2^32 seconds");
  }
}

void ValidateNodeDriver(const Value& driver, const Path& path, FieldErrors& errors) {
  ValidateCsiDriverName(driver["name"], path.Child("name"), errors);
  const Value& id = driver["nodeID"];
  if (id.AsString().empty()) errors.Required(path.Child("nodeID"));
  if (id.AsString().size() > kMaxNodeIdBytes) {
    errors.Invalid(path.Child("nodeID"), id,
                   fmt::format("must be {} characters or less", kMaxNodeIdBytes));
  }
  const Path allocatable = path.Child("allocatable");
  errors.NotNegative(allocatable.Child("count"), driver["allocatable"]["count"]);
  std::set<std::string> keys;
  for (const Value& key : driver["topologyKeys"].items()) {
    if (key.AsString().empty()) errors.Required(path);
    if (!keys.insert(key.Str()).second) errors.Duplicate(path, key);
    errors.Check(CheckQualifiedName, path, key);
  }
}

void ValidateVolumeError(const Value& error, const Path& path, FieldErrors& errors) {
  if (error["message"].AsString().size() > kMaxVolumeErrorBytes)
    errors.TooLong(path.Child("message"), kMaxAttachmentBytes);  // upstream names the other limit
  if (error["errorCode"].AsInt() < 0) {
    errors.Invalid(path.Child("errorCode"), error["errorCode"],
                   "must be between 0 and 2147483647, inclusive");
  }
}

void ValidateAttachmentSource(const Value& source, const Path& path, FieldErrors& errors) {
  const Value& name = source["persistentVolumeName"];
  const Value& inlined = source["inlineVolumeSpec"];
  if (name.IsNull() && inlined.IsNull()) return errors.Required(path, kOneSource);
  if (!name.IsNull() && !inlined.IsNull()) return errors.Forbidden(path, kOneSource);
  if (!inlined.IsNull())
    return ValidatePersistentVolumeSpec(inlined, true, path.Child("inlineVolumeSpec"), errors);
  if (name.AsString().empty()) {
    errors.Required(path.Child("persistentVolumeName"),
                    "must specify non empty persistentVolumeName");
  }
}

void ForbidChange(const Value& before, const Value& after, std::string_view key,
                  FieldErrors& errors) {
  const bool both_empty = before[key].empty() && after[key].empty() && !before[key].IsString() &&
                          !after[key].IsString();
  if (!both_empty && !(before[key] == after[key]))
    errors.Forbidden(Path(key), fmt::format("updates to {} are forbidden.", key));
}

}  // namespace

void ValidateCsiDriverName(const Value& name, const Path& path, FieldErrors& errors) {
  if (name.AsString().empty()) return errors.Required(path);
  if (name.AsString().size() > kMaxDnsLabelLength) errors.TooLong(path, kMaxDnsLabelLength);
  Problems problems;
  CheckDns1123Subdomain(ToLower(name.AsString()), problems);
  for (const std::string& problem : problems) errors.Invalid(path, name, problem);
}

void ValidateStorageClass(const Value& storage_class, FieldErrors& errors) {
  ValidateProvisioner(storage_class["provisioner"], Path("provisioner"), errors);
  ValidateParameters(storage_class["parameters"], Path("parameters"), errors);
  errors.OneOf(Path("reclaimPolicy"), storage_class["reclaimPolicy"], {"Delete", "Retain"});
  errors.OneOf(Path("volumeBindingMode"), storage_class["volumeBindingMode"],
               {"Immediate", "WaitForFirstConsumer"});
  ValidateAllowedTopologies(storage_class["allowedTopologies"], errors);
}

void ValidateStorageClassUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  for (const char* key : {"parameters", "provisioner", "reclaimPolicy"})
    ForbidChange(before, after, key, errors);
  if (!(before["volumeBindingMode"] == after["volumeBindingMode"]))
    errors.Invalid(Path("volumeBindingMode"), after["volumeBindingMode"], kImmutable);
}

void ValidateVolumeAttributesClass(const Value& attributes, FieldErrors& errors) {
  ValidateProvisioner(attributes["driverName"], Path("driverName"), errors);
  ValidateParameters(attributes["parameters"], Path("parameters"), errors);
  if (attributes["parameters"].empty())
    errors.Required(Path("parameters"), "must contain at least one key/value pair");
}

void ValidateVolumeAttributesClassUpdate(const Value& before, const Value& after,
                                         FieldErrors& errors) {
  for (const char* key : {"driverName", "parameters"}) ForbidChange(before, after, key, errors);
}

void ValidateCsiDriver(const Value& driver, FieldErrors& errors) {
  const Value& spec = driver["spec"];
  const Path path("spec");
  errors.OneOf(path.Child("fsGroupPolicy"), spec["fsGroupPolicy"],
               {"File", "None", "ReadWriteOnceWithFSType"});
  ValidateTokenRequests(spec["tokenRequests"], path.Child("tokenRequests"), errors);
  for (const Value& mode : spec["volumeLifecycleModes"].items())
    errors.OneOf(path.Child("volumeLifecycleModes"), mode, {"Persistent", "Ephemeral"});
}

void ValidateCsiDriverUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path path("spec");
  // Upstream spells the first one so.
  for (const auto& [key, shown] : {std::pair("attachRequired", "attachedRequired"),
                                   std::pair("volumeLifecycleModes", "volumeLifecycleModes")}) {
    if (!(before["spec"][key] == after["spec"][key]))
      errors.Invalid(path.Child(shown), after["spec"][key], kImmutable);
  }
}

void ValidateCsiNode(const Value& node, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("drivers");
  std::set<std::string> names;
  for (size_t i = 0; i < node["spec"]["drivers"].size(); ++i) {
    const Value& driver = node["spec"]["drivers"].At(i);
    const Path place = list.Index(i);
    ValidateNodeDriver(driver, place, errors);
    if (!names.insert(driver["name"].Str()).second)
      errors.Duplicate(place.Child("name"), driver["name"].AsString());
  }
}

void ValidateCsiNodeUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path spec("spec");
  for (const Value& old : before["spec"]["drivers"].items()) {
    for (const Value& driver : after["spec"]["drivers"].items()) {
      if (driver["name"] == old["name"] && !(driver == old))
        errors.Invalid(spec.Child("drivers"), driver, kImmutable);
    }
  }
}

void ValidateCsiStorageCapacity(const Value& capacity, FieldErrors& errors) {
  ValidateLabelSelector(capacity["nodeTopology"], Path("nodeTopology"), errors);
  errors.Check(CheckDns1123Subdomain, Path("storageClassName"),
               capacity["storageClassName"].AsString());
  const Value& amount = capacity["capacity"];
  if (const Result<Amount> parsed = AmountFromJson(amount); !amount.IsNull() && parsed) {
    if (parsed->nano < 0) errors.Invalid(Path("capacity"), amount, kNotNegativeMessage);
  }
}

void ValidateCsiStorageCapacityUpdate(const Value& before, const Value& after,
                                      FieldErrors& errors) {
  for (const char* key : {"nodeTopology", "storageClassName"}) {
    if (!(before[key] == after[key])) errors.Invalid(Path(key), after[key], kImmutable);
  }
}

void ValidateVolumeAttachment(const Value& attachment, FieldErrors& errors) {
  const Value& spec = attachment["spec"];
  const Path path("spec");
  if (spec["attacher"].AsString().empty()) errors.Required(path.Child("attacher"));
  ValidateAttachmentSource(spec["source"], path.Child("source"), errors);
  errors.Check(CheckDns1123Subdomain, path.Child("nodeName"), spec["nodeName"].AsString());
}

void ValidateVolumeAttachmentCreate(const Value& attachment, FieldErrors& errors) {
  const Path path("spec");
  const Path source = path.Child("source");
  ValidateCsiDriverName(attachment["spec"]["attacher"], path.Child("attacher"), errors);
  const Value& name = attachment["spec"]["source"]["persistentVolumeName"];
  if (!name.IsNull())
    errors.Check(CheckDns1123Subdomain, source.Child("persistentVolumeName"), name);
}

void ValidateVolumeAttachmentUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  if (!(before["spec"] == after["spec"])) errors.Invalid(Path("spec"), after["spec"], kImmutable);
}

void ValidateVolumeAttachmentStatusUpdate(const Value&, const Value& after, FieldErrors& errors) {
  const Value& status = after["status"];
  const Path path("status");
  if (TextBytes(status["attachmentMetadata"]) > kMaxAttachmentBytes)
    errors.TooLong(path.Child("attachmentMetadata"), kMaxAttachmentBytes);
  for (const char* key : {"attachError", "detachError"})
    ValidateVolumeError(status[key], path.Child(key), errors);
}

}  // namespace muster::schema
