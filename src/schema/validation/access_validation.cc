// Roles and their bindings: k8s.io/kubernetes pkg/apis/rbac/validation.

#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

void ValidateRule(const Value& rule, bool namespaced, const Path& path, FieldErrors& errors) {
  if (rule["verbs"].empty())
    errors.Required(path.Child("verbs"), "verbs must contain at least one value");
  if (const Value& urls = rule["nonResourceURLs"]; !urls.empty()) {
    const Path place = path.Child("nonResourceURLs");
    if (namespaced)
      errors.Invalid(place, urls, "namespaced rules cannot apply to non-resource URLs");
    if (!rule["apiGroups"].empty() || !rule["resources"].empty() ||
        !rule["resourceNames"].empty()) {
      errors.Invalid(place, urls,
                     "rules cannot apply to both regular resources and non-resource URLs");
    }
    return;
  }
  if (rule["apiGroups"].empty()) {
    errors.Required(path.Child("apiGroups"), "resource rules must supply at least one api group");
  }
  if (rule["resources"].empty())
    errors.Required(path.Child("resources"), "resource rules must supply at least one resource");
  if (!rule["resourceNames"].empty() && rule["resources"].size() > 1) {
    errors.Required(path.Child("resourceNames"),
                    "resource names cannot apply to multiple resources");
  }
}

void ValidateRules(const Value& rules, bool namespaced, FieldErrors& errors) {
  const Path path("rules");
  for (size_t i = 0; i < rules.size(); ++i)
    ValidateRule(rules.At(i), namespaced, path.Index(i), errors);
}

void ValidateServiceAccountSubject(const Value& subject, bool namespaced, const Path& path,
                                   FieldErrors& errors) {
  if (!subject["name"].AsString().empty())
    errors.Check(CheckDns1123Subdomain, path.Child("name"), subject["name"]);
  if (!subject["apiGroup"].AsString().empty())
    errors.NotSupported(path.Child("apiGroup"), subject["apiGroup"], {""});
  if (!namespaced && subject["namespace"].AsString().empty())
    errors.Required(path.Child("namespace"));
}

void ValidateSubject(const Value& subject, bool namespaced, const Path& path, FieldErrors& errors) {
  const std::string_view kind = subject["kind"].AsString();
  const bool nameless = subject["name"].AsString().empty();
  if (nameless) errors.Required(path.Child("name"));
  if (kind == "ServiceAccount")
    return ValidateServiceAccountSubject(subject, namespaced, path, errors);
  if (kind != "User" && kind != "Group") {
    return errors.NotSupported(path.Child("kind"), kind, {"ServiceAccount", "User", "Group"});
  }
  if (nameless) {
    errors.Invalid(path.Child("name"), "",
                   kind == "User" ? "user name cannot be empty" : "group name cannot be empty");
  }
  if (subject["apiGroup"].AsString() != kGroup)
    errors.NotSupported(path.Child("apiGroup"), subject["apiGroup"].AsString(), {kGroup});
}

void ValidateBinding(const Value& binding, bool namespaced, FieldErrors& errors) {
  const Value& role = binding["roleRef"];
  const Path path("roleRef");
  if (role["apiGroup"].AsString() != kGroup)
    errors.NotSupported(path.Child("apiGroup"), role["apiGroup"].AsString(), {kGroup});
  const std::string_view kind = role["kind"].AsString();
  if (kind != "ClusterRole" && !(namespaced && kind == "Role")) {
    std::vector<std::string_view> kinds = {"ClusterRole"};
    if (namespaced) kinds.insert(kinds.begin(), "Role");
    errors.NotSupported(path.Child("kind"), kind, kinds);
  }
  if (role["name"].AsString().empty()) {
    errors.Required(path.Child("name"));
  } else {
    errors.Check(CheckPathSegment, path.Child("name"), role["name"]);
  }
  const Path subjects("subjects");
  for (size_t i = 0; i < binding["subjects"].size(); ++i)
    ValidateSubject(binding["subjects"].At(i), namespaced, subjects.Index(i), errors);
}

}  // namespace

void ValidateRole(const Value& role, FieldErrors& errors) {
  ValidateRules(role["rules"], true, errors);
}

void ValidateClusterRole(const Value& role, FieldErrors& errors) {
  ValidateRules(role["rules"], false, errors);
}

void ValidateRoleBinding(const Value& binding, FieldErrors& errors) {
  ValidateBinding(binding, true, errors);
}

void ValidateClusterRoleBinding(const Value& binding, FieldErrors& errors) {
  ValidateBinding(binding, false, errors);
}

void ValidateRoleBindingUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  if (!(before["roleRef"] == after["roleRef"]))
    errors.Invalid(Path("roleRef"), after["roleRef"], "cannot change roleRef");
}

}  // namespace muster::schema
