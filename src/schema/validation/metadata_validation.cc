// k8s.io/apimachinery pkg/api/validation/objectmeta.go

#include <algorithm>
#include <array>
#include <vector>

#include "base/strings.h"
#include "json/value_hash.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxAnnotationBytes = 256 * 1024;  // keys and values together
constexpr std::array<std::string_view, 3> kStandardFinalizers = {"kubernetes", "orphan",
                                                                 "foregroundDeletion"};

void ValidateGeneratedName(NameCheck check, const Value& name, const Path& path,
                           FieldErrors& errors) {
  // The suffix that the server adds ends in a letter or digit, so the prefix may end in a dash.
  std::string prefix = name.Str();
  if (prefix.size() > 1 && prefix.back() == '-') prefix.back() = 'a';
  Problems problems;
  check(prefix, problems);
  for (const std::string& problem : problems) errors.Invalid(path, name, problem);
}

// Events come and go by themselves; nothing may live as long as one.
bool MayNotOwn(const Value& owner) {
  return owner["apiVersion"].AsString() == "v1" && owner["kind"].AsString() == "Event";
}

// Upstream names the list, not the item.
void ValidateOwners(const Value& owners, const Path& path, FieldErrors& errors) {
  std::string controller;
  for (const Value& owner : owners.items()) {
    const std::string_view version = owner["apiVersion"].AsString();
    const size_t slash = version.find('/');
    const bool has_version = !version.empty() && slash != 0 && slash + 1 != version.size();
    if (!has_version)
      errors.Invalid(path.Child("apiVersion"), version, "version must not be empty");
    for (const char* key : {"kind", "name", "uid"}) {
      if (owner[key].AsString().empty()) errors.Invalid(path.Child(key), "", "must not be empty");
    }
    if (MayNotOwn(owner))
      errors.Invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner");
    if (!owner["controller"].AsBool()) continue;
    const std::string name = owner["name"].Str();
    if (!controller.empty()) {
      errors.Invalid(path, owners,
                     fmt::format("Only one reference can have Controller set to true. Found "
                                 "\"true\" in references for {} and {}",
                                 controller, name));
    }
    controller = name;
  }
}

void ValidateFinalizers(const Value& finalizers, const Path& path, bool standard,
                        FieldErrors& errors) {
  bool orphan = false;
  bool foreground = false;
  for (size_t i = 0; i < finalizers.size(); ++i) {
    const std::string_view name = finalizers.At(i).AsString();
    orphan = orphan || name == "orphan";
    foreground = foreground || name == "foregroundDeletion";
    if (errors.Check(CheckQualifiedName, path, finalizers.At(i)) && standard)
      ValidateStandardFinalizer(finalizers.At(i), path.Index(i), errors);
  }
  if (orphan && foreground) {
    errors.Invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

}  // namespace

void ValidateStandardFinalizer(const Value& name, const Path& path, FieldErrors& errors) {
  const std::string_view text = name.AsString();
  if (text.find('/') != std::string_view::npos ||
      std::ranges::find(kStandardFinalizers, text) != kStandardFinalizers.end()) {
    return;
  }
  errors.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified");
}

void ValidateLabels(const Value& labels, const Path& path, FieldErrors& errors) {
  Problems problems;
  for (const auto& [key, value] : labels.members()) {
    CheckQualifiedName(key, problems);
    for (const std::string& problem : problems) errors.Invalid(path, key, problem);
    problems.clear();
    errors.Check(CheckLabelValue, path, value);
  }
}

void ValidateAnnotations(const Value& annotations, const Path& path, FieldErrors& errors) {
  size_t total = 0;
  Problems problems;
  for (const auto& [key, value] : annotations.members()) {
    CheckQualifiedName(key, problems);
    if (!problems.empty()) {
      problems.clear();
      CheckQualifiedName(ToLower(key), problems);  // domains may be in upper case here
    }
    for (const std::string& problem : problems) errors.Invalid(path, key, problem);
    problems.clear();
    total += key.size() + value.AsString().size();
  }
  if (total > kMaxAnnotationBytes) errors.TooLong(path, kMaxAnnotationBytes);
}

void ValidateMetadata(const MetadataRules& rules, const Value& metadata, FieldErrors& errors) {
  const Path path("metadata");
  const Value& generate = metadata["generateName"];
  if (!generate.AsString().empty())
    ValidateGeneratedName(rules.name, generate, path.Child("generateName"), errors);
  const Value& name = metadata["name"];
  if (name.AsString().empty()) {
    errors.Required(path.Child("name"), "name or generateName is required");
  } else {
    errors.Check(rules.name, path.Child("name"), name);
  }
  const Value& ns = metadata["namespace"];
  if (!rules.namespaced) {
    if (!ns.AsString().empty())
      errors.Forbidden(path.Child("namespace"), "not allowed on this type");
  } else if (ns.AsString().empty()) {
    errors.Required(path.Child("namespace"));
  } else {
    errors.Check(CheckDns1123Label, path.Child("namespace"), ns);
  }
  errors.NotNegative(path.Child("generation"), metadata["generation"]);
  ValidateLabels(metadata["labels"], path.Child("labels"), errors);
  ValidateAnnotations(metadata["annotations"], path.Child("annotations"), errors);
  ValidateOwners(metadata["ownerReferences"], path.Child("ownerReferences"), errors);
  ValidateFinalizers(metadata["finalizers"], path.Child("finalizers"), rules.standard_finalizers,
                     errors);
}

void ValidateMetadataUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path path("metadata");
  for (const char* key : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                          "deletionGracePeriodSeconds"}) {
    if (!(before[key] == after[key])) errors.Invalid(path.Child(key), after[key], kImmutable);
  }
  if (after["resourceVersion"].AsString().empty() &&
      !before["resourceVersion"].AsString().empty()) {
    errors.Invalid(path.Child("resourceVersion"), "", "must be specified for an update");
  }
  if (after["generation"].AsInt() < before["generation"].AsInt()) {
    errors.Invalid(path.Child("generation"), after["generation"], "must not be decremented");
  }
  if (before["deletionTimestamp"].IsNull()) return;
  std::vector<std::string> added;
  const json::Array& finalizers = before["finalizers"].items();
  const json::ValueSet old(finalizers.begin(), finalizers.end());
  for (const Value& finalizer : after["finalizers"].items()) {
    if (!old.contains(finalizer)) added.push_back(GoQuote(finalizer.AsString()));
  }
  if (!added.empty()) {
    errors.Forbidden(path.Child("finalizers"),
                     fmt::format("no new finalizers can be added if the object is being deleted, "
                                 "found new finalizers []string{{{}}}",
                                 Join(added, ", ")));
  }
}

void ValidateLabelSelector(const Value& selector, const Path& path, FieldErrors& errors) {
  ValidateLabels(selector["matchLabels"], path.Child("matchLabels"), errors);
  const Path expressions = path.Child("matchExpressions");
  for (size_t i = 0; i < selector["matchExpressions"].size(); ++i) {
    const Value& expression = selector["matchExpressions"].At(i);
    const Path place = expressions.Index(i);
    const std::string_view op = expression["operator"].AsString();
    const Value& values = expression["values"];
    if (op == "In" || op == "NotIn") {
      if (values.empty())
        errors.Required(place.Child("values"),
                        "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty())
        errors.Forbidden(place.Child("values"),
                         "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
      errors.Invalid(place.Child("operator"), op, "not a valid selector operator");
    }
    errors.Check(CheckQualifiedName, place.Child("key"), expression["key"]);
    const Path list = place.Child("values");
    for (size_t j = 0; j < values.size(); ++j)
      errors.Check(CheckLabelValue, list.Index(j), values.At(j));
  }
}

}  // namespace muster::schema
