// API services: k8s.io/kube-aggregator pkg/apis/apiregistration/validation.

#include <string>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr int64_t kMaxGroupPriority = 20000;
constexpr int64_t kMaxVersionPriority = 1000;

void ValidateGroupVersion(const Value& service, FieldErrors& errors) {
  const Value& spec = service["spec"];
  const Path path("spec");
  const std::string_view group = spec["group"].AsString(), version = spec["version"].AsString();
  const std::string required = fmt::format("{}.{}", version, group);
  Problems said_already;
  CheckPathSegment(service["metadata"]["name"].AsString(), said_already);
  if (said_already.empty() && service["metadata"]["name"].AsString() != required) {
    const Path metadata("metadata");
    errors.Invalid(metadata.Child("name"), service["metadata"]["name"],
                   fmt::format("must be `spec.version+\".\"+spec.group`: {}", GoQuote(required)));
  }
  if (group.empty() && version != "v1") {
    errors.Required(path.Child("group"),
                    "only v1 may have an empty group and it better be legacy kube");
  }
  if (!group.empty()) errors.Check(CheckDns1123Subdomain, path.Child("group"), spec["group"]);
  errors.Check(CheckDns1035Label, path.Child("version"), Value(version));
}

void ValidatePriorities(const Value& spec, FieldErrors& errors) {
  const Path path("spec");
  const auto within = [&](const char* field, int64_t most) {
    const int64_t value = spec[field].AsInt();
    if (value > 0 && value <= most) return;
    errors.Invalid(path.Child(field), Value(value),
                   fmt::format("must be positive and less than {}", most));
  };
  within("groupPriorityMinimum", kMaxGroupPriority);
  within("versionPriority", kMaxVersionPriority);
}

}  // namespace

void ValidateApiService(const Value& service, FieldErrors& errors) {
  ValidateGroupVersion(service, errors);
  const Value& spec = service["spec"];
  const Path path("spec");
  ValidatePriorities(spec, errors);
  const std::string authorities = Base64Decode(spec["caBundle"].AsString()).value_or("");
  const bool believes_all = spec["insecureSkipTLSVerify"].AsBool();
  const Value& behind = spec["service"];
  if (behind.IsNull()) {
    if (!authorities.empty()) {
      errors.Invalid(path.Child("caBundle"), Value(fmt::format("{} bytes", authorities.size())),
                     "local APIServices may not have a caBundle");
    }
    if (believes_all) {
      errors.Invalid(path.Child("insecureSkipTLSVerify"), spec["insecureSkipTLSVerify"],
                     "local APIServices may not have insecureSkipTLSVerify");
    }
    return;
  }
  const Path place = path.Child("service");
  for (const char* field : {"namespace", "name"})
    if (behind[field].AsString().empty()) errors.Required(place.Child(field));
  const int64_t port = behind["port"].AsInt();
  if (port < 1 || port > 65535) {
    errors.Invalid(place.Child("port"), behind["port"],
                   "port is not valid: must be between 1 and 65535, inclusive");
  }
  if (believes_all && !authorities.empty()) {
    errors.Invalid(path.Child("insecureSkipTLSVerify"), spec["insecureSkipTLSVerify"],
                   "may not be true if caBundle is present");
  }
}

}  // namespace muster::schema
