#include "controllers/persistentvolume/local_path.h"

#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "controllers/persistentvolume/storage_facts.h"

namespace muster::controllers {
namespace {

constexpr size_t kMaxFileNameBytes = 255;

// A name for people who look into the directory; where it gets too long, the volume's alone.
std::string DirectoryName(const std::string& volume, const json::Value& claim) {
  const json::Value& metadata = claim["metadata"];
  std::string name = fmt::format("{}_{}_{}", volume, metadata["namespace"].AsString(),
                                 metadata["name"].AsString());
  return name.size() <= kMaxFileNameBytes ? name : volume;
}

std::string RootOf(const json::Value& node) {
  const std::string root = node["metadata"]["annotations"][schema::kLocalVolumesAnnotation].Str();
  return root.empty() ? std::string(schema::kLocalVolumesDefault) : root;
}

json::Value OnlyOn(const std::string& host) {
  const json::Value expression = json::Obj(
      {{"key", cluster::kHostnameLabel}, {"operator", "In"}, {"values", json::List({host})}});
  const json::Value term = json::Obj({{"matchExpressions", json::List({expression})}});
  return json::Obj({{"required", json::Obj({{"nodeSelectorTerms", json::List({term})}})}});
}

}  // namespace

std::string LocalVolumeName(const json::Value& claim) {
  return "pvc-" + claim["metadata"]["uid"].Str();
}

std::string WhyNotLocal(const json::Value& claim, const json::Value& storage_class) {
  const json::Value& spec = claim["spec"];
  if (!spec["dataSource"].IsNull() || !spec["dataSourceRef"].IsNull()) {
    return fmt::format(
        "plugin \"{}\" is not a CSI plugin. Only CSI plugin can provision a claim with a "
        "datasource",
        schema::kLocalPathProvisioner);
  }
  if (spec["volumeMode"].AsString() == "Block") {
    return fmt::format("{} does not support block volume provisioning",
                       schema::kLocalPathProvisioner);
  }
  if (!spec["selector"].IsNull())
    return "claim.Spec.Selector is not supported for dynamic provisioning";
  if (!storage_class["mountOptions"].empty()) {
    return fmt::format(
        "Mount options are not supported by the provisioner but StorageClass \"{}\" has mount "
        "options [{}]",
        storage_class["metadata"]["name"].AsString(),
        fmt::join(json::ToStrings(storage_class["mountOptions"]), " "));
  }
  const std::string_view node =
      claim["metadata"]["annotations"][cluster::kSelectedNodeAnnotation].AsString();
  if (!node.empty()) return "";
  return fmt::format(
      "{} makes a directory on the node of the claim's first pod, and StorageClass \"{}\" does not "
      "wait for it: claim of a class with volumeBindingMode WaitForFirstConsumer, such as {}",
      schema::kLocalPathProvisioner, storage_class["metadata"]["name"].AsString(),
      schema::kLocalPathClass);
}

json::Value MakeLocalVolume(const json::Value& claim, const json::Value& storage_class,
                            const json::Value& node) {
  const std::string name = LocalVolumeName(claim);
  const json::Value& metadata = claim["metadata"];
  const std::string_view asked = storage_class["reclaimPolicy"].AsString();
  const std::string policy(asked.empty() ? "Delete" : asked);
  json::Value finalizers = json::List({schema::kVolumeProtection});
  // What is to stay stays when somebody deletes the volume, too.
  if (policy == "Delete") finalizers = finalizers.Append(schema::kLocalPathProvisioner);
  json::Value annotations = json::Obj({});
  annotations = annotations.Set(kProvisionedByAnnotation, schema::kLocalPathProvisioner);
  annotations = annotations.Set(cluster::kBoundByControllerAnnotation, "yes");
  const json::Value reference = json::Obj({{"apiVersion", "v1"},
                                           {"kind", "PersistentVolumeClaim"},
                                           {"namespace", metadata["namespace"]},
                                           {"name", metadata["name"]},
                                           {"uid", metadata["uid"]},
                                           {"resourceVersion", metadata["resourceVersion"]}});
  const std::string path = fmt::format("{}/{}", RootOf(node), DirectoryName(name, claim));
  return json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "PersistentVolume"},
       {"metadata",
        json::Obj({{"name", name}, {"annotations", annotations}, {"finalizers", finalizers}})},
       {"spec",
        json::Obj({{"capacity",
                    json::Obj({{"storage", claim["spec"]["resources"]["requests"]["storage"]}})},
                   {"accessModes", claim["spec"]["accessModes"]},
                   {"persistentVolumeReclaimPolicy", policy},
                   {"storageClassName", ClassOf(claim)},
                   {"volumeMode", "Filesystem"},
                   {"claimRef", reference},
                   {"local", json::Obj({{"path", path}})},
                   {"nodeAffinity", OnlyOn(HostnameOf(node))}})}});
}

}  // namespace muster::controllers
