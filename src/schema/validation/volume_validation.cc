// Volumes: k8s.io/kubernetes pkg/apis/core/validation.

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/strings.h"
#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr int64_t kMaxFileMode = 0777;

void ValidateMode(const Value& mode, const Path& path, FieldErrors& errors) {
  if (mode.IsNull() || (mode.AsInt() >= 0 && mode.AsInt() <= kMaxFileMode)) return;
  errors.Invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive");
}

// Where a file of a volume is written.
void ValidateFilePath(const Value& text, const Path& path, FieldErrors& errors) {
  if (text.AsString().empty()) return errors.Required(path);
  ValidateInnerPath(text, path, errors);
  const std::string_view file = text.AsString();
  if (file.starts_with("..") && !file.starts_with("../"))
    errors.Invalid(path, text, "must not start with '..'");
}

void ValidateKeyItems(const Value& items, const Path& path, FieldErrors& errors) {
  for (size_t i = 0; i < items.size(); ++i) {
    const Path place = path.Index(i);
    if (items.At(i)["key"].AsString().empty()) errors.Required(place.Child("key"));
    ValidateFilePath(items.At(i)["path"], place.Child("path"), errors);
    ValidateMode(items.At(i)["mode"], place.Child("mode"), errors);
  }
}

// `path` is that of the list's parent, as upstream names it.
void ValidateDownwardItems(const Value& items, const Path& path, FieldErrors& errors) {
  for (const Value& item : items.items()) {
    ValidateFilePath(item["path"], path.Child("path"), errors);
    ValidateMode(item["mode"], path.Child("mode"), errors);
    const bool field = !item["fieldRef"].IsNull();
    const bool resource = !item["resourceFieldRef"].IsNull();
    if (field && resource)
      errors.Invalid(path, "resource",
                     "fieldRef and resourceFieldRef can not be specified simultaneously");
    if (!field && !resource)
      errors.Required(path, "one of fieldRef and resourceFieldRef is required");
    if (field) ValidateFieldRef(item["fieldRef"], path.Child("fieldRef"), true, errors);
    if (resource && !field)
      ValidateResourceFieldRef(item["resourceFieldRef"], path.Child("resourceFieldRef"), true,
                               errors);
  }
}

void ValidateToken(const Value& token, const Path& path, const Path& volume, FieldErrors& errors) {
  constexpr int64_t kMinTokenSeconds = 600;
  constexpr int64_t kMaxTokenSeconds = int64_t{1} << 32;
  const int64_t seconds = token["expirationSeconds"].AsInt();
  const Path place = path.Child("expirationSeconds");
  if (seconds < kMinTokenSeconds)
    errors.Invalid(place, seconds, "may not specify a duration less than 10 minutes");
  if (seconds > kMaxTokenSeconds)
    errors.Invalid(place, seconds, "may not specify a duration larger than 2^32 seconds");
  ValidateFilePath(token["path"], volume.Child("path"), errors);
}

// One source of a projected volume at `path`; `paths` are the files of those before it.
void ValidateProjection(const Value& source, const Path& path, const Path& volume,
                        std::set<std::string>& paths, FieldErrors& errors) {
  const auto claim = [&](const Value& items, const Value& shown) {
    for (const Value& item : items.items()) {
      const std::string file = item["path"].Str();
      if (!file.empty() && !paths.insert(file).second) {
        errors.Invalid(volume, shown.IsNull() ? Value(file) : shown, "conflicting duplicate paths");
      }
    }
  };
  int sources = 0;
  for (const char* key : {"secret", "configMap"}) {
    if (source[key].IsNull()) continue;
    ++sources;
    const Path place = path.Child(key);
    if (source[key]["name"].AsString().empty()) errors.Required(place.Child("name"));
    ValidateKeyItems(source[key]["items"], place.Child("items"), errors);
    claim(source[key]["items"], source[key]["name"].AsString());
  }
  if (!source["downwardAPI"].IsNull()) {
    ++sources;
    ValidateDownwardItems(source["downwardAPI"]["items"], path.Child("downwardAPI"), errors);
    claim(source["downwardAPI"]["items"], Value());
  }
  if (const Value& token = source["serviceAccountToken"]; !token.IsNull()) {
    ++sources;
    ValidateToken(token, path.Child("serviceAccountToken"), volume, errors);
  }
  if (sources > 1) errors.Forbidden(path, "may not specify more than 1 volume type per source");
}

void ValidateProjected(const Value& source, const Path& path, FieldErrors& errors) {
  ValidateMode(source["defaultMode"], path.Child("defaultMode"), errors);
  const Path sources = path.Child("sources");
  std::set<std::string> paths;
  for (size_t i = 0; i < source["sources"].size(); ++i)
    ValidateProjection(source["sources"].At(i), sources.Index(i), path, paths, errors);
}

void ValidateConfigMapVolume(const Value& source, const Path& path, FieldErrors& errors) {
  if (source["name"].AsString().empty()) errors.Required(path.Child("name"));
  ValidateMode(source["defaultMode"], path.Child("defaultMode"), errors);
  ValidateKeyItems(source["items"], path.Child("items"), errors);
}

void ValidateSecretVolume(const Value& source, const Path& path, FieldErrors& errors) {
  if (source["secretName"].AsString().empty()) errors.Required(path.Child("secretName"));
  ValidateMode(source["defaultMode"], path.Child("defaultMode"), errors);
  ValidateKeyItems(source["items"], path.Child("items"), errors);
}

void ValidateHostPath(const Value& source, const Path& path, FieldErrors& errors) {
  const Value& host_path = source["path"];
  if (host_path.AsString().empty()) return errors.Required(path.Child("path"));
  const auto parts = Split(host_path.AsString(), '/');
  if (std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    errors.Invalid(path.Child("path"), host_path, "must not contain '..'");
  }
  if (!source["type"].AsString().empty()) {
    errors.OneOf(path.Child("type"), source["type"],
                 {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
                  "FileOrCreate", "Socket"});
  }
}

void ValidateEmptyDir(const Value& source, const Path& path, FieldErrors& errors) {
  const Value& limit = source["sizeLimit"];
  if (limit.IsNull()) return;
  const Result<Amount> amount = AmountFromJson(limit);
  if (!amount || amount->nano < 0)
    errors.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
}

// "metadata.labels['key']" -> {"metadata.labels", "key"}; nothing if there is no subscript.
std::optional<std::pair<std::string_view, std::string_view>> Subscript(std::string_view field) {
  const size_t bracket = field.find("['");
  if (bracket == std::string_view::npos || bracket == 0 || !field.ends_with("']"))
    return std::nullopt;
  const std::string_view key = field.substr(bracket + 2);
  return std::pair(field.substr(0, bracket), key.substr(0, key.size() - 2));
}

// What pkg/apis/core/pods ConvertDownwardAPIFieldLabel takes.
constexpr std::array<std::string_view, 15> kPodFieldLabels = {
    "metadata.annotations", "metadata.labels", "metadata.name",      "metadata.namespace",
    "metadata.uid",         "spec.nodeName",   "spec.restartPolicy", "spec.serviceAccountName",
    "spec.schedulerName",   "status.phase",    "status.hostIP",      "status.hostIPs",
    "status.podIP",         "status.podIPs",   "spec.host"};

// Why a field path is none at all; "" if it is one.
std::string FieldPathFault(std::string_view version, std::string_view field) {
  if (version != "v1") return fmt::format("unsupported pod version: {}", version);
  if (const auto subscript = Subscript(field)) {
    if (subscript->first == "metadata.labels" || subscript->first == "metadata.annotations")
      return "";
    return fmt::format("field label does not support subscript: {}", field);
  }
  if (std::ranges::find(kPodFieldLabels, field) != kPodFieldLabels.end()) return "";
  return fmt::format("field label not supported: {}", field);
}

void ValidateDivisor(const Value& reference, const Path& path, FieldErrors& errors) {
  const std::string_view resource = reference["resource"].AsString();
  const std::string_view divisor = reference["divisor"].AsString();
  if (divisor.empty() || divisor == "0" || resource.find('.') == std::string_view::npos) return;
  const std::string_view name = resource.substr(resource.find('.') + 1);
  static const std::vector<std::string_view> kBytes = {
      "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};
  std::string_view shown = name;
  if (name == "cpu") {
    if (divisor == "1" || divisor == "1m") return;
    return errors.Invalid(path.Child("divisor"), resource,
                          "only divisor's values 1m and 1 are supported with the cpu resource");
  }
  if (std::ranges::find(kBytes, divisor) != kBytes.end()) return;
  if (name == "ephemeral-storage") shown = "local ephemeral storage";
  if (name.starts_with("hugepages-")) shown = "hugepages";
  if (shown == name && name != "memory") return;
  errors.Invalid(path.Child("divisor"), resource,
                 fmt::format("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, "
                             "1Pi, 1Ei are supported with the {} resource",
                             shown));
}

void ValidateVolumeMount(const Value& mount, const Path& path, const Path& list,
                         const Value& container, FieldErrors& errors) {
  // Upstream leaves the index out of these paths.
  for (const char* key : {"subPath", "subPathExpr"}) {
    if (!mount[key].AsString().empty()) ValidateInnerPath(mount[key], list.Child(key), errors);
  }
  if (!mount["subPath"].AsString().empty() && !mount["subPathExpr"].AsString().empty()) {
    errors.Invalid(path.Child("subPathExpr"), mount["subPathExpr"],
                   "subPathExpr and subPath are mutually exclusive");
  }
  const Value& propagation = mount["mountPropagation"];
  const Path place = list.Child("mountPropagation");
  if (!propagation.IsNull())
    errors.OneOf(place, propagation, {"Bidirectional", "HostToContainer", "None"});
  if (propagation.AsString() == "Bidirectional" &&
      !container["securityContext"]["privileged"].AsBool()) {
    errors.Forbidden(place,
                     "Bidirectional mount propagation is available only to privileged containers");
  }
  const Value& recursive = mount["recursiveReadOnly"];
  const Path recursive_path = list.Child("recursiveReadOnly");
  if (recursive.IsNull() ||
      !errors.OneOf(recursive_path, recursive, {"Disabled", "Enabled", "IfPossible"}) ||
      recursive.AsString() == "Disabled") {
    return;
  }
  if (!mount["readOnly"].AsBool())
    errors.Forbidden(recursive_path, "may only be specified when readOnly is true");
  if (!propagation.IsNull() && propagation.AsString() != "None") {
    errors.Forbidden(recursive_path,
                     "may only be specified when mountPropagation is None or not specified");
  }
}

void ValidateDevices(const Value& container, const Path& list, const VolumeSources& volumes,
                     FieldErrors& errors) {
  std::set<std::string> names, paths;
  for (size_t i = 0; i < container["volumeDevices"].size(); ++i) {
    const Value& device = container["volumeDevices"].At(i);
    const Path place = list.Index(i);
    const std::string name = device["name"].Str();
    const std::string device_path = device["devicePath"].Str();
    const auto volume = volumes.find(name);
    if (name.empty()) errors.Required(place.Child("name"));
    if (!name.empty() && !names.insert(name).second)
      errors.Invalid(place.Child("name"), name, "must be unique");
    if (volume == volumes.end()) {
      errors.NotFound(place.Child("name"), name);
    } else if (volume->second != "persistentVolumeClaim" && volume->second != "ephemeral") {
      errors.Invalid(place.Child("name"), name,
                     "can only use volume source type of PersistentVolumeClaim or Ephemeral for "
                     "block mode");
    }
    if (device_path.empty()) errors.Required(place.Child("devicePath"));
    if (!device_path.empty() && !paths.insert(device_path).second)
      errors.Invalid(place.Child("devicePath"), device_path, "must be unique");
    for (const Value& mount : container["volumeMounts"].items()) {
      if (!name.empty() && mount["name"].AsString() == name)
        errors.Invalid(place.Child("name"), name, "must not already exist in volumeMounts");
    }
  }
}

}  // namespace

void ValidateVolumeSource(const std::string& key, const Value& source, const Path& path,
                          FieldErrors& errors) {
  if (key == "configMap") return ValidateConfigMapVolume(source, path, errors);
  if (key == "secret") return ValidateSecretVolume(source, path, errors);
  if (key == "hostPath") return ValidateHostPath(source, path, errors);
  if (key == "emptyDir") return ValidateEmptyDir(source, path, errors);
  if (key == "projected") return ValidateProjected(source, path, errors);
  if (key == "persistentVolumeClaim" && source["claimName"].AsString().empty())
    errors.Required(path.Child("claimName"));
  if (key == "downwardAPI") {
    ValidateMode(source["defaultMode"], path.Child("defaultMode"), errors);
    ValidateDownwardItems(source["items"], path, errors);
  }
  if (key == "nfs") {
    for (const char* required : {"server", "path"}) {
      if (source[required].AsString().empty()) errors.Required(path.Child(required));
    }
    if (!source["path"].AsString().starts_with('/'))
      errors.Invalid(path.Child("path"), source["path"].AsString(), "must be an absolute path");
  }
  if (key == "ephemeral") {
    const Path claim = path.Child("volumeClaimTemplate");
    if (source["volumeClaimTemplate"].IsNull()) return errors.Required(claim);
    ValidateClaimSpec(source["volumeClaimTemplate"]["spec"], claim.Child("spec"), errors);
  }
  if (key == "csi" && source["driver"].AsString().empty()) errors.Required(path.Child("driver"));
}

void ValidateInnerPath(const Value& text, const Path& path, FieldErrors& errors) {
  if (text.AsString().starts_with('/')) errors.Invalid(path, text, "must be a relative path");
  const auto parts = Split(text.AsString(), '/');
  if (std::find(parts.begin(), parts.end(), "..") != parts.end())
    errors.Invalid(path, text, "must not contain '..'");
}

void ValidateFieldRef(const Value& reference, const Path& path, bool in_volume,
                      FieldErrors& errors) {
  if (reference["apiVersion"].AsString().empty()) return errors.Required(path.Child("apiVersion"));
  const std::string_view field = reference["fieldPath"].AsString();
  if (field.empty()) return errors.Required(path.Child("fieldPath"));
  if (const std::string fault = FieldPathFault(reference["apiVersion"].AsString(), field);
      !fault.empty()) {
    return errors.Invalid(path.Child("fieldPath"), field,
                          fmt::format("error converting fieldPath: {}", fault));
  }
  if (const auto subscript = Subscript(field)) {
    const bool label = subscript->first == "metadata.labels";
    errors.Check(CheckQualifiedName, path,
                 label ? std::string(subscript->second) : ToLower(subscript->second));
    return;
  }
  static const std::vector<std::string_view> kInVolume = {"metadata.annotations", "metadata.labels",
                                                          "metadata.name", "metadata.namespace",
                                                          "metadata.uid"};
  static const std::vector<std::string_view> kInEnv = {"metadata.name",
                                                       "metadata.namespace",
                                                       "metadata.uid",
                                                       "spec.nodeName",
                                                       "spec.serviceAccountName",
                                                       "status.hostIP",
                                                       "status.hostIPs",
                                                       "status.podIP",
                                                       "status.podIPs"};
  errors.OneOf(path.Child("fieldPath"), reference["fieldPath"], in_volume ? kInVolume : kInEnv);
}

void ValidateResourceFieldRef(const Value& reference, const Path& path, bool in_volume,
                              FieldErrors& errors) {
  const std::string_view resource = reference["resource"].AsString();
  if (in_volume && reference["containerName"].AsString().empty()) {
    errors.Required(path.Child("containerName"));
  } else if (resource.empty()) {
    errors.Required(path.Child("resource"));
  } else if (!resource.starts_with("limits.hugepages-") &&
             !resource.starts_with("requests.hugepages-")) {
    errors.OneOf(path.Child("resource"), reference["resource"],
                 {"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
                  "requests.ephemeral-storage", "requests.memory"});
  }
  ValidateDivisor(reference, path, errors);
}

void ValidateMounts(const Value& container, const Path& path, const VolumeSources& volumes,
                    FieldErrors& errors) {
  std::set<std::string> paths;
  const Path list = path.Child("volumeMounts");
  for (size_t i = 0; i < container["volumeMounts"].size(); ++i) {
    const Value& mount = container["volumeMounts"].At(i);
    const Path place = list.Index(i);
    const std::string name = mount["name"].Str();
    const std::string mount_path = mount["mountPath"].Str();
    if (name.empty()) errors.Required(place.Child("name"));
    if (!volumes.contains(name)) errors.NotFound(place.Child("name"), name);
    if (mount_path.empty()) errors.Required(place.Child("mountPath"));
    if (!paths.insert(mount_path).second)
      errors.Invalid(place.Child("mountPath"), mount_path, "must be unique");
    for (const Value& device : container["volumeDevices"].items()) {
      if (!name.empty() && device["name"].AsString() == name)
        errors.Invalid(place.Child("name"), name, "must not already exist in volumeDevices");
      if (device["devicePath"].AsString() == mount_path) {
        errors.Invalid(place.Child("mountPath"), mount_path,
                       "must not already exist as a path in volumeDevices");
      }
    }
    ValidateVolumeMount(mount, place, list, container, errors);
  }
  ValidateDevices(container, path.Child("volumeDevices"), volumes, errors);
}

VolumeSources ValidateVolumes(const Value& volumes, const Path& path, FieldErrors& errors) {
  VolumeSources names;
  for (size_t i = 0; i < volumes.size(); ++i) {
    const Value& volume = volumes.At(i);
    const Path place = path.Index(i);
    const std::string name = volume["name"].Str();
    const size_t faults = errors.size();
    if (name.empty()) {
      errors.Required(place.Child("name"));
    } else {
      errors.Check(CheckDns1123Label, place.Child("name"), name);
    }
    if (names.contains(name)) errors.Duplicate(place.Child("name"), name);
    std::string kind;
    for (const auto& [key, source] : volume.members()) {
      if (key == "name" || source.IsNull()) continue;
      const Path of_source = place.Child(key);
      if (!kind.empty()) {
        errors.Forbidden(of_source, "may not specify more than 1 volume type");
      } else {
        kind = key;
        ValidateVolumeSource(key, source, of_source, errors);
      }
    }
    if (kind.empty()) errors.Required(place, "must specify a volume type");
    if (errors.size() == faults) names.emplace(name, kind);
  }
  return names;
}

}  // namespace muster::schema
