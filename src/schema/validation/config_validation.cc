// ConfigMap, Secret, ServiceAccount: k8s.io/kubernetes pkg/apis/core/validation.

#include <array>

#include "base/strings.h"
#include "json/parse.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxDataBytes = 1024 * 1024;
constexpr std::string_view kImmutableIsSet = "field is immutable when `immutable` is set";

void ValidateKeys(const Value& data, const Path& path, FieldErrors& errors) {
  Problems problems;
  for (const auto& [key, value] : data.members()) {
    CheckConfigKey(key, problems);
    for (const std::string& problem : problems) errors.Invalid(path.Key(key), key, problem);
    problems.clear();
  }
}

// Bytes that a base64 text stands for.
size_t DecodedSize(std::string_view text) {
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  return text.size() / 4 * 3 - padding;
}

bool IsJsonObject(std::string_view base64) {
  const Result<Value> parsed = json::Parse(Base64Decode(base64).value_or(""));
  return parsed && (parsed->IsObject() || parsed->IsNull());
}

// Once immutable: stays so, and its data stays.
void ValidateImmutable(const Value& before, const Value& after,
                       const std::vector<const char*>& keys, FieldErrors& errors) {
  if (!before["immutable"].AsBool()) return;
  if (!after["immutable"].AsBool()) errors.Forbidden(Path("immutable"), kImmutableIsSet);
  for (const char* key : keys) {
    const bool both_empty = before[key].empty() && after[key].empty();
    if (!both_empty && !(before[key] == after[key])) errors.Forbidden(Path(key), kImmutableIsSet);
  }
}

struct SecretType {
  std::string_view type;
  std::vector<std::string_view> keys;  // that must be there
};

const std::array<SecretType, 4>& SecretTypes() {
  static const std::array<SecretType, 4> kTypes = {{
      {"kubernetes.io/dockercfg", {".dockercfg"}},
      {"kubernetes.io/dockerconfigjson", {".dockerconfigjson"}},
      {"kubernetes.io/ssh-auth", {"ssh-privatekey"}},
      {"kubernetes.io/tls", {"tls.crt", "tls.key"}},
  }};
  return kTypes;
}

void ValidateSecretType(const Value& secret, FieldErrors& errors) {
  const std::string_view type = secret["type"].AsString();
  const Value& data = secret["data"];
  const Path path("data");
  for (const SecretType& row : SecretTypes()) {
    if (row.type != type) continue;
    for (const std::string_view key : row.keys) {
      const bool must_say_something = key == "ssh-privatekey";
      if (!data.Has(key) || (must_say_something && data[key].AsString().empty())) {
        errors.Required(path.Key(key));
      } else if (key.starts_with(".docker") && !IsJsonObject(data[key].AsString())) {
        errors.Invalid(path.Key(key), "<secret contents redacted>", "must be a JSON object");
      }
    }
  }
  if (type == "kubernetes.io/basic-auth" && !data.Has("username") && !data.Has("password")) {
    errors.Required(path.Key("username"));
    errors.Required(path.Key("password"));
  }
  constexpr std::string_view kAccountName = "kubernetes.io/service-account.name";
  if (type == "kubernetes.io/service-account-token" &&
      secret["metadata"]["annotations"][kAccountName].AsString().empty()) {
    const Path metadata("metadata");
    const Path annotations = metadata.Child("annotations");
    errors.Required(annotations.Key(kAccountName));
  }
}

}  // namespace

void ValidateConfigMap(const Value& config_map, FieldErrors& errors) {
  const Value& data = config_map["data"];
  const Value& binary = config_map["binaryData"];
  ValidateKeys(data, Path("data"), errors);
  ValidateKeys(binary, Path("binaryData"), errors);
  size_t total = 0;
  const Path path("data");
  for (const auto& [key, value] : data.members()) {
    total += value.AsString().size();
    if (binary.Has(key))
      errors.Invalid(path.Key(key), key, "duplicate of key present in binaryData");
  }
  for (const auto& [key, value] : binary.members()) total += DecodedSize(value.AsString());
  if (total > kMaxDataBytes) errors.TooLong(Path(), kMaxDataBytes);
}

void ValidateConfigMapUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  ValidateImmutable(before, after, {"data", "binaryData"}, errors);
}

void ValidateSecret(const Value& secret, FieldErrors& errors) {
  const Path path("data");
  ValidateKeys(secret["data"], path, errors);
  size_t total = 0;
  for (const auto& [key, value] : secret["data"].members()) total += DecodedSize(value.AsString());
  if (total > kMaxDataBytes) errors.TooLong(path, kMaxDataBytes);
  ValidateSecretType(secret, errors);
}

void ValidateSecretUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  if (!(before["type"] == after["type"])) errors.Invalid(Path("type"), after["type"], kImmutable);
  ValidateImmutable(before, after, {"data"}, errors);
}

}  // namespace muster::schema
