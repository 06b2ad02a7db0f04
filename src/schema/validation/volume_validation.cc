// Volumes: k8s.io/kubernetes pkg/apis/core/validation.

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "schema/quantity_syntax.h"
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
  if (file.starts_with("..") && !(file == ".." || file.starts_with("../"))) {
    errors.Invalid(path, text, "must not start with '..'");
  }
}

void ValidateKeyItems(const Value& items, const Path& path, FieldErrors& errors) {
  for (size_t i = 0; i < items.size(); ++i) {
    const Path place = path.Index(i);
    if (items.At(i)["key"].AsString().empty()) errors.Required(place.Child("key"));
    ValidateFilePath(items.At(i)["path"], place.Child("path"), errors);
    ValidateMode(items.At(i)["mode"], place.Child("mode"), errors);
  }
}

void ValidateDownwardItems(const Value& items, const Path& path, FieldErrors& errors) {
  for (size_t i = 0; i < items.size(); ++i) {
    const Value& item = items.At(i);
    const Path place = path.Index(i);
    ValidateFilePath(item["path"], place.Child("path"), errors);
    ValidateMode(item["mode"], place.Child("mode"), errors);
    const bool field = !item["fieldRef"].IsNull();
    const bool resource = !item["resourceFieldRef"].IsNull();
    if (field && resource)
      errors.Invalid(place, "resource",
                     "fieldRef and resourceFieldRef can not be specified simultaneously");
    if (!field && !resource)
      errors.Required(place, "one of fieldRef and resourceFieldRef is required");
    if (field) ValidateFieldRef(item["fieldRef"], place.Child("fieldRef"), true, errors);
    if (resource && !field)
      ValidateResourceFieldRef(item["resourceFieldRef"], place.Child("resourceFieldRef"), true,
                               errors);
  }
}

void ValidateProjection(const Value& source, const Path& path, FieldErrors& errors) {
  for (const char* key : {"secret", "configMap"}) {
    if (source[key].IsNull()) continue;
    const Path place = path.Child(key);
    if (source[key]["name"].AsString().empty()) errors.Required(place.Child("name"));
    ValidateKeyItems(source[key]["items"], place.Child("items"), errors);
  }
  if (!source["downwardAPI"].IsNull()) {
    const Path place = path.Child("downwardAPI");
    ValidateDownwardItems(source["downwardAPI"]["items"], place.Child("items"), errors);
  }
  const Value& token = source["serviceAccountToken"];
  if (!token.IsNull()) {
    const Path place = path.Child("serviceAccountToken");
    constexpr int64_t kMinTokenSeconds = 600;
    if (token["expirationSeconds"].AsInt() < kMinTokenSeconds) {
      errors.Invalid(place.Child("expirationSeconds"), token["expirationSeconds"],
                     "may not specify a duration less than 10 minutes");
    }
    ValidateFilePath(token["path"], place.Child("path"), errors);
  }
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
  if (host_path.AsString().empty()) errors.Required(path.Child("path"));
  const auto parts = Split(host_path.AsString(), '/');
  if (std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    errors.Invalid(path.Child("path"), host_path, "must not contain '..'");
  }
  if (!source["type"].AsString().empty()) {
    errors.OneOf(path.Child("type"), source["type"],
                 {"BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
                  "FileOrCreate", "Socket"});
  }
}

void ValidateEmptyDir(const Value& source, const Path& path, FieldErrors& errors) {
  const Value& limit = source["sizeLimit"];
  if (limit.IsNull()) return;
  const Result<Amount> amount =
      ParseAmount(limit.IsNumber() ? limit.NumberToken() : limit.AsString());
  if (!amount || amount->nano < 0)
    errors.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
}

void ValidateSource(const std::string& key, const Value& source, const Path& path,
                    FieldErrors& errors) {
  if (key == "configMap") return ValidateConfigMapVolume(source, path, errors);
  if (key == "secret") return ValidateSecretVolume(source, path, errors);
  if (key == "hostPath") return ValidateHostPath(source, path, errors);
  if (key == "emptyDir") return ValidateEmptyDir(source, path, errors);
  if (key == "persistentVolumeClaim" && source["claimName"].AsString().empty())
    errors.Required(path.Child("claimName"));
  if (key == "downwardAPI") {
    ValidateMode(source["defaultMode"], path.Child("defaultMode"), errors);
    ValidateDownwardItems(source["items"], path.Child("items"), errors);
  }
  if (key == "projected") {
    ValidateMode(source["defaultMode"], path.Child("defaultMode"), errors);
    const Path sources = path.Child("sources");
    for (size_t i = 0; i < source["sources"].size(); ++i)
      ValidateProjection(source["sources"].At(i), sources.Index(i), errors);
  }
  if (key == "nfs") {
    for (const char* required : {"server", "path"}) {
      if (source[required].AsString().empty()) errors.Required(path.Child(required));
    }
  }
  if (key == "csi" && source["driver"].AsString().empty()) errors.Required(path.Child("driver"));
}

// "metadata.labels['key']" -> "metadata.labels"; "" if there is no subscript.
std::string_view Subscripted(std::string_view field_path) {
  const size_t bracket = field_path.find("['");
  if (bracket == std::string_view::npos || !field_path.ends_with("']")) return {};
  return field_path.substr(0, bracket);
}

}  // namespace

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
  if (const std::string_view map = Subscripted(field); !map.empty()) {
    if (map == "metadata.labels" || map == "metadata.annotations") return;
    return errors.Invalid(path, field, "does not support subscript");
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
  if (in_volume && reference["containerName"].AsString().empty())
    errors.Required(path.Child("containerName"));
  const std::string_view resource = reference["resource"].AsString();
  if (resource.empty()) return errors.Required(path.Child("resource"));
  if (resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-"))
    return;
  errors.OneOf(path.Child("resource"), reference["resource"],
               {"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
                "requests.ephemeral-storage", "requests.memory"});
}

std::set<std::string, std::less<>> ValidateVolumes(const Value& volumes, const Path& path,
                                                   FieldErrors& errors) {
  std::set<std::string, std::less<>> names;
  for (size_t i = 0; i < volumes.size(); ++i) {
    const Value& volume = volumes.At(i);
    const Path place = path.Index(i);
    const std::string name = volume["name"].Str();
    if (name.empty()) {
      errors.Required(place.Child("name"));
    } else if (errors.Check(CheckDns1123Label, place.Child("name"), name) &&
               !names.insert(name).second) {
      errors.Duplicate(place.Child("name"), name);
    }
    int sources = 0;
    for (const auto& [key, source] : volume.members()) {
      if (key == "name" || source.IsNull()) continue;
      const Path of_source = place.Child(key);
      if (++sources > 1) {
        errors.Forbidden(of_source, "may not specify more than 1 volume type");
      } else {
        ValidateSource(key, source, of_source, errors);
      }
    }
    if (sources == 0) errors.Required(place, "must specify a volume type");
  }
  return names;
}

}  // namespace muster::schema
