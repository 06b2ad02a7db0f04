// PersistentVolume: k8s.io/kubernetes pkg/apis/core/validation.

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "schema/quantity_syntax.h"
#include "schema/validation/kind_validation.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

// Where a volume's bytes may be, in the order in which upstream looks, with what each must say.
struct Source {
  std::string_view key;
  std::array<std::string_view, 3> required;
};
constexpr std::array<Source, 22> kSources = {{
    {"hostPath", {}},
    {"gcePersistentDisk", {"pdName"}},
    {"awsElasticBlockStore", {"volumeID"}},
    {"glusterfs", {"endpoints", "path"}},
    {"flocker", {}},
    {"nfs", {}},
    {"rbd", {"monitors", "image"}},
    {"quobyte", {"registry", "volume"}},
    {"cephfs", {"monitors"}},
    {"iscsi", {"targetPortal", "iqn"}},
    {"cinder", {"volumeID"}},
    {"fc", {}},
    {"flexVolume", {"driver"}},
    {"azureFile", {"secretName", "shareName"}},
    {"vsphereVolume", {"volumePath"}},
    {"photonPersistentDisk", {"pdID"}},
    {"portworxVolume", {"volumeID"}},
    {"azureDisk", {"diskName", "diskURI"}},
    {"scaleIO", {"gateway", "system", "volumeName"}},
    {"local", {"path"}},
    {"storageos", {"volumeName"}},
    {"csi", {}},
}};

bool SaysNothing(const Value& value) { return value.AsString().empty() && value.empty(); }

void ValidateSecretReference(const Value& reference, const Path& path, FieldErrors& errors) {
  if (reference.IsNull()) return;
  for (const auto& [key, check] :
       {std::pair("name", &CheckDns1123Subdomain), std::pair("namespace", &CheckDns1123Label)}) {
    if (reference[key].AsString().empty()) {
      errors.Required(path.Child(key));
    } else {
      errors.Check(check, path.Child(key), reference[key]);
    }
  }
}

void ValidateCsiSource(const Value& csi, const Path& path, FieldErrors& errors) {
  ValidateCsiDriverName(csi["driver"], path.Child("driver"), errors);
  if (csi["volumeHandle"].AsString().empty()) errors.Required(path.Child("volumeHandle"));
  for (const char* key : {"controllerPublishSecretRef", "controllerExpandSecretRef",
                          "nodePublishSecretRef", "nodeExpandSecretRef"}) {
    ValidateSecretReference(csi[key], path.Child(key), errors);
  }
}

void ValidateSource(const Source& source, const Value& value, const Path& path,
                    FieldErrors& errors) {
  for (const std::string_view key : source.required) {
    if (!key.empty() && SaysNothing(value[key])) errors.Required(path.Child(key));
  }
  if (source.key == "csi") return ValidateCsiSource(value, path, errors);
  if (source.key == "hostPath" || source.key == "nfs")
    return ValidateVolumeSource(std::string(source.key), value, path, errors);
  if (source.key == "local") {
    const auto parts = Split(value["path"].AsString(), '/');
    if (std::ranges::find(parts, "..") != parts.end())
      errors.Invalid(path.Child("path"), value["path"], "must not contain '..'");
  }
}

void ValidateOnlySource(const Value& spec, const Path& path, FieldErrors& errors) {
  bool found = false;
  for (const Source& source : kSources) {
    const Value& value = spec[source.key];
    if (value.IsNull()) continue;
    if (std::exchange(found, true)) {
      errors.Forbidden(path.Child(source.key == "cephfs" ? "cephFS" : source.key),
                       "may not specify more than 1 volume type");
    } else {
      ValidateSource(source, value, path.Child(source.key), errors);
      if (source.key == "local" && spec["nodeAffinity"].IsNull())
        errors.Required(path.Child("nodeAffinity"), "Local volume requires node affinity");
    }
  }
  if (!found) errors.Required(path, "must specify a volume type");
}

void ValidateCapacity(const Value& capacity, const Path& path, FieldErrors& errors) {
  if (capacity.empty()) errors.Required(path);
  if (!capacity.Has("storage") || capacity.size() > 1)
    errors.NotSupported(path, capacity.IsNull() ? json::Obj() : capacity, {"storage"});
  for (const auto& [name, value] : capacity.members()) {
    const Result<Amount> amount = AmountFromJson(value);
    if (!amount) continue;
    if (amount->nano < 0)
      errors.Invalid(path.Key(name), Value::Number(amount->Canonical()),
                     "must be a valid resource quantity");
    if (amount->nano <= 0)
      errors.Invalid(path.Key(name), amount->Canonical(), "must be greater than zero");
  }
}

void ValidateVolumeAffinity(const Value& affinity, const Path& path, FieldErrors& errors) {
  if (affinity.IsNull()) return;
  const Path required = path.Child("required");
  if (affinity["required"].IsNull())
    return errors.Required(required, "must specify required node constraints");
  const Value& list = affinity["required"]["nodeSelectorTerms"];
  const Path terms = required.Child("nodeSelectorTerms");
  if (list.empty()) errors.Required(terms, "must have at least one node selector term");
  for (size_t i = 0; i < list.size(); ++i)
    ValidateNodeSelectorTerm(list.At(i), terms.Index(i), errors);
}

// What the spec of a volume inside a VolumeAttachment must not say.
void ValidateInlined(const Value& spec, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kNotInline = "may not be specified in the context of inline volumes";
  for (const char* key : {"claimRef", "capacity", "nodeAffinity", "storageClassName"}) {
    if (!SaysNothing(spec[key])) errors.Forbidden(path.Child(key), kNotInline);
  }
  if (spec["csi"].IsNull())
    errors.Required(path.Child("csi"), "has to be specified in the context of inline volumes");
  const std::string_view policy = spec["persistentVolumeReclaimPolicy"].AsString();
  if (!policy.empty() && policy != "Retain") {
    errors.Forbidden(path.Child("persistentVolumeReclaimPolicy"),
                     "may only be Retain in the context of inline volumes");
  }
  const Value& mode = spec["volumeMode"];
  if (!mode.IsNull() && mode.AsString() != "Filesystem") {
    errors.Forbidden(
        path.Child("volumeMode"),
        "may not specify volumeMode other than Filesystem in the context of inline volumes");
  }
}

void ValidateStandalone(const Value& spec, const Path& path, FieldErrors& errors) {
  ValidateCapacity(spec["capacity"], path.Child("capacity"), errors);
  const Value& policy = spec["persistentVolumeReclaimPolicy"];
  if (!policy.AsString().empty()) {
    errors.OneOf(path.Child("persistentVolumeReclaimPolicy"), policy,
                 {"Delete", "Recycle", "Retain"});
  }
  ValidateVolumeAffinity(spec["nodeAffinity"], path.Child("nodeAffinity"), errors);
  if (!spec["storageClassName"].AsString().empty())
    errors.Check(CheckDns1123Subdomain, path.Child("storageClassName"), spec["storageClassName"]);
  if (!spec["volumeMode"].IsNull())
    errors.OneOf(path.Child("volumeMode"), spec["volumeMode"], {"Block", "Filesystem"});
}

// "/", however it is written.
bool IsRoot(std::string_view path) {
  return path.starts_with('/') && path.find_first_not_of("/.") == std::string_view::npos;
}

// The members of a spec that say where the bytes are. A secret for growing may be added later.
Value SourcesOf(const Value& spec, const Value& before) {
  Value sources = json::Obj();
  for (const Source& source : kSources) {
    const Value& value = spec[source.key];
    if (!value.IsNull()) sources = std::move(sources).Set(source.key, value);
  }
  const bool may_add = !before["csi"].IsNull() && !spec["csi"].IsNull() &&
                       before["csi"]["controllerExpandSecretRef"].IsNull();
  return may_add ? sources.RemovePath({"csi", "controllerExpandSecretRef"}) : sources;
}

}  // namespace

void ValidatePersistentVolumeSpec(const Value& spec, bool inlined, const Path& path,
                                  FieldErrors& errors) {
  const Path modes = path.Child("accessModes");
  if (spec["accessModes"].empty()) errors.Required(modes);
  ValidateAccessModes(spec["accessModes"], modes, errors);
  if (inlined) {
    ValidateInlined(spec, path, errors);
  } else {
    ValidateStandalone(spec, path, errors);
  }
  ValidateOnlySource(spec, path, errors);
  if (IsRoot(spec["hostPath"]["path"].AsString()) &&
      spec["persistentVolumeReclaimPolicy"].AsString() == "Recycle") {
    errors.Forbidden(path.Child("persistentVolumeReclaimPolicy"),
                     "may not be 'recycle' for a hostPath mount of '/'");
  }
  const Value& attributes = spec["volumeAttributesClassName"];
  if (attributes.IsNull()) return;
  const Path attributes_path = path.Child("volumeAttributesClassName");
  if (attributes.AsString().empty()) {
    errors.Required(attributes_path, "an empty string is disallowed");
  } else {
    errors.Check(CheckDns1123Subdomain, attributes_path, attributes);
  }
  if (spec["csi"].IsNull()) {
    errors.Required(path.Child("csi"), "has to be specified when using volumeAttributesClassName");
  }
}

void ValidatePersistentVolume(const Value& volume, FieldErrors& errors) {
  ValidatePersistentVolumeSpec(volume["spec"], false, Path("spec"), errors);
}

void ValidatePersistentVolumeUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Value& old = before["spec"];
  const Value& now = after["spec"];
  const Path spec("spec");
  if (!(SourcesOf(old, old) == SourcesOf(now, old))) {
    errors.Forbidden(spec.Child("persistentvolumesource"),
                     "spec.persistentvolumesource is immutable after creation");
  }
  if (!(old["volumeMode"] == now["volumeMode"]))
    errors.Invalid(Path("volumeMode"), now["volumeMode"], kImmutable);
  if (!old["nodeAffinity"].IsNull() && !(old["nodeAffinity"] == now["nodeAffinity"]))
    errors.Invalid(Path("nodeAffinity"), now["nodeAffinity"], kImmutable);
  if (!old["volumeAttributesClassName"].IsNull() && now["volumeAttributesClassName"].IsNull()) {
    errors.Forbidden(spec.Child("volumeAttributesClassName"),
                     "update from non-nil value to nil is forbidden");
  }
}

}  // namespace muster::schema
