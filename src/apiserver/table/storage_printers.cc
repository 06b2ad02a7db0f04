// Tables of volumes and their classes. Logic: k8s.io/kubernetes pkg/printers/internalversion.

#include "apiserver/table/printers.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

std::string OrUnset(std::string_view text) { return std::string(text.empty() ? "<unset>" : text); }

// Its name, and whether it is the one for those who name none.
std::string ClassName(const json::Value& object, std::initializer_list<std::string_view> defaults) {
  std::string name = object["metadata"]["name"].Str();
  for (const std::string_view annotation : defaults) {
    if (object["metadata"]["annotations"][annotation].AsString() == "true")
      return name + " (default)";
  }
  return name;
}

std::string ClaimOf(const json::Value& volume) {
  const json::Value& claim = volume["spec"]["claimRef"];
  return claim.IsNull() ? "" : claim["namespace"].Str() + "/" + claim["name"].Str();
}

std::string ClassOfVolume(const json::Value& volume) {
  const json::Value& annotation =
      volume["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
  return annotation.IsString() ? annotation.Str() : volume["spec"]["storageClassName"].Str();
}

}  // namespace

json::Array PersistentVolumeCells(const json::Value& volume, Time now) {
  const json::Value& spec = volume["spec"];
  std::string phase = volume["status"]["phase"].Str();
  if (volume["metadata"].Has("deletionTimestamp")) phase = "Terminating";
  return {NameCell(volume),
          spec["capacity"]["storage"].Str("0"),
          AccessModes(spec["accessModes"]),
          spec["persistentVolumeReclaimPolicy"].Str(),
          phase,
          ClaimOf(volume),
          ClassOfVolume(volume),
          OrUnset(spec["volumeAttributesClassName"].AsString()),
          volume["status"]["reason"].Str(),
          AgeOf(volume, now),
          OrUnset(spec["volumeMode"].AsString())};
}

json::Array StorageClassCells(const json::Value& storage_class, Time now) {
  return {ClassName(storage_class, {"storageclass.kubernetes.io/is-default-class",
                                    "storageclass.beta.kubernetes.io/is-default-class"}),
          storage_class["provisioner"].Str(),
          storage_class["reclaimPolicy"].Str("Delete"),
          storage_class["volumeBindingMode"].Str("Immediate"),
          storage_class["allowVolumeExpansion"].AsBool(),
          AgeOf(storage_class, now)};
}

json::Array VolumeAttributesClassCells(const json::Value& attributes, Time now) {
  return {ClassName(attributes, {"volumeattributesclass.alpha.kubernetes.io/is-default-class"}),
          attributes["driverName"].Str(), AgeOf(attributes, now)};
}

json::Array CsiDriverCells(const json::Value& driver, Time now) {
  const json::Value& spec = driver["spec"];
  std::vector<std::string> audiences;
  for (const json::Value& request : spec["tokenRequests"].items())
    audiences.push_back(request["audience"].Str());
  return {NameCell(driver),
          spec["attachRequired"].AsBool(true),
          spec["podInfoOnMount"].AsBool(),
          spec["storageCapacity"].AsBool(),
          OrUnset(Join(audiences, ",")),
          spec["requiresRepublish"].AsBool(),
          OrNone(Join(json::ToStrings(spec["volumeLifecycleModes"]), ",")),
          AgeOf(driver, now)};
}

json::Array CsiNodeCells(const json::Value& node, Time now) {
  return {NameCell(node), static_cast<int64_t>(node["spec"]["drivers"].size()), AgeOf(node, now)};
}

json::Array CsiStorageCapacityCells(const json::Value& capacity, Time now) {
  return {NameCell(capacity), capacity["storageClassName"].Str(),
          OrUnset(capacity["capacity"].AsString()), AgeOf(capacity, now)};
}

json::Array VolumeAttachmentCells(const json::Value& attachment, Time now) {
  const json::Value& spec = attachment["spec"];
  return {NameCell(attachment),
          spec["attacher"].Str(),
          spec["source"]["persistentVolumeName"].Str(),
          spec["nodeName"].Str(),
          attachment["status"]["attached"].AsBool(),
          AgeOf(attachment, now)};
}

}  // namespace muster::apiserver
