#include "agent/volumes/claim_volume.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "agent/pod_workers/pod_inputs.h"
#include "agent/volumes/local_volumes.h"
#include "agent/volumes/network_volume.h"
#include "cluster/node_affinity.h"

namespace muster::agent {
namespace {

// Of spec besides where the volume is.
constexpr std::array<std::string_view, 9> kOtherFields = {"capacity",
                                                          "accessModes",
                                                          "claimRef",
                                                          "persistentVolumeReclaimPolicy",
                                                          "storageClassName",
                                                          "mountOptions",
                                                          "volumeMode",
                                                          "nodeAffinity",
                                                          "volumeAttributesClassName"};

std::string SourceOf(const json::Value& persistent_volume) {
  for (const json::Member& member : persistent_volume["spec"].members()) {
    if (std::ranges::find(kOtherFields, member.first) == kOtherFields.end()) return member.first;
  }
  return "(none)";
}

bool Has(const json::Value& list, std::string_view text) {
  return std::ranges::any_of(list.items(),
                             [&](const json::Value& item) { return item.AsString() == text; });
}

bool IsMounted(const json::Value& pod, std::string_view volume) {
  return std::ranges::any_of(AllContainers(pod), [&](const json::Value& container) {
    return std::ranges::any_of(container["volumeMounts"].items(), [&](const json::Value& mount) {
      return mount["name"].AsString() == volume;
    });
  });
}

bool IsForNode(const json::Value& persistent_volume, const json::Value& node) {
  const json::Value& required = persistent_volume["spec"]["nodeAffinity"]["required"];
  if (required.IsNull()) return true;
  cluster::Labels labels = cluster::ToLabels(node["metadata"]["labels"]);
  std::string hostname;
  const auto found = labels.find(cluster::kHostnameLabel);
  const bool has_hostname = found != labels.end();
  if (has_hostname) {
    hostname = found->second;
    labels.erase(found);
  }
  return cluster::Matches(cluster::ToRequiredNodes(required), {labels, hostname, has_hostname, ""});
}

// Why what was found cannot be mounted here.
std::string FaultOf(const json::Value& pod, const json::Value& persistent_volume,
                    const json::Value& node, const ClaimVolume& out) {
  const json::Value& spec = persistent_volume["spec"];
  if (spec["volumeMode"].AsString() == "Block") {
    return IsMounted(pod, out.name)
               ? fmt::format("volume {} has volumeMode Block, but is specified in volumeMounts",
                             out.name)
               : fmt::format(
                     "volume {} has volumeMode Block, which this node does not offer; use "
                     "a claim with volumeMode Filesystem",
                     out.name);
  }
  if (!spec.Has("local") && !spec.Has("hostPath") && !spec.Has("nfs")) {
    return fmt::format(
        "MountVolume.SetUp failed for volume \"{}\" : PersistentVolumes of kind {} are not "
        "supported on this node; use local, hostPath or nfs",
        out.volume, SourceOf(persistent_volume));
  }
  if (!out.mount_options.empty() && out.server.empty()) {
    return fmt::format(
        "MountVolume.MountOptionSupport check failed for volume \"{}\" : mount options are not "
        "supported for this volume type",
        out.volume);
  }
  if (!IsForNode(persistent_volume, node)) {
    return fmt::format(
        "MountVolume.NodeAffinity check failed for volume \"{}\" : no matching NodeSelectorTerms",
        out.volume);
  }
  return "";
}

}  // namespace

json::Value ToJson(const std::vector<ClaimVolume>& volumes) {
  json::Array out;
  for (const ClaimVolume& each : volumes) {
    out.push_back(json::Obj({{"name", each.name},
                             {"volume", each.volume},
                             {"path", each.path},
                             {"type", each.type},
                             {"folder", each.folder},
                             {"local", each.local},
                             {"retain", each.retain},
                             {"readOnly", each.read_only},
                             {"onePod", each.one_pod},
                             {"server", each.server},
                             {"mountOptions", json::Strings(each.mount_options)}}));
  }
  return out;
}

std::vector<ClaimVolume> ClaimVolumesFromJson(const json::Value& value) {
  std::vector<ClaimVolume> out;
  for (const json::Value& each : value.items()) {
    out.push_back({each["name"].Str(), each["volume"].Str(), each["path"].Str(), each["type"].Str(),
                   each["folder"].Str(), each["local"].AsBool(), each["retain"].AsBool(),
                   each["readOnly"].AsBool(), each["onePod"].AsBool(), each["server"].Str(),
                   json::ToStrings(each["mountOptions"]), ""});
  }
  return out;
}

std::string ClaimOf(const json::Value& pod, const json::Value& volume) {
  if (const json::Value* claim = volume.Find("persistentVolumeClaim"))
    return (*claim)["claimName"].Str();
  if (!volume.Has("ephemeral")) return "";
  return fmt::format("{}-{}", pod["metadata"]["name"].AsString(), volume["name"].AsString());
}

Status ClaimError(const json::Value& pod, const std::string& claim, const std::string& why) {
  return Error(Reason::kNotFound, "error processing PVC {}/{}: {}",
               pod["metadata"]["namespace"].AsString(), claim, why);
}

Result<std::string> VolumeOfClaim(const json::Value& pod, const json::Value& volume,
                                  const json::Value& claim) {
  const json::Value& meta = claim["metadata"];
  const std::string name = meta["name"].Str();
  const auto error = [&](const std::string& why) {
    return std::unexpected(ClaimError(pod, name, why));
  };
  const auto is_pod = [&](const json::Value& owner) {
    return owner["controller"].AsBool() &&
           owner["uid"].AsString() == pod["metadata"]["uid"].AsString();
  };
  if (volume.Has("ephemeral") && std::ranges::none_of(meta["ownerReferences"].items(), is_pod)) {
    const std::string ns = pod["metadata"]["namespace"].Str();
    return error(fmt::format("PVC {}/{} was not created for pod {}/{} (pod is not owner)", ns, name,
                             ns, pod["metadata"]["name"].AsString()));
  }
  if (!meta["deletionTimestamp"].AsString().empty()) return error("PVC is being deleted");
  if (claim["status"]["phase"].AsString() != "Bound") return error("PVC is not bound");
  const std::string found = claim["spec"]["volumeName"].Str();
  if (found.empty()) return error("PVC has empty pvc.Spec.VolumeName");
  return found;
}

Result<ClaimVolume> ResolveClaim(const json::Value& pod, const json::Value& volume,
                                 const json::Value& claim, const json::Value& persistent_volume,
                                 const json::Value& node) {
  const json::Value& spec = persistent_volume["spec"];
  const std::string claim_name = claim["metadata"]["name"].Str();
  ClaimVolume out;
  out.name = volume["name"].Str();
  out.volume = persistent_volume["metadata"]["name"].Str();
  const std::string uid = spec["claimRef"]["uid"].Str();
  if (!spec.Has("claimRef")) {
    return std::unexpected(ClaimError(
        pod, claim_name,
        fmt::format("found PV object {} with nil pvc.Spec.ClaimRef indicating it is not yet bound "
                    "to the claim",
                    out.volume)));
  }
  if (uid != claim["metadata"]["uid"].AsString()) {
    return std::unexpected(
        ClaimError(pod, claim_name,
                   fmt::format("found PV object {} with a pvc.Spec.ClaimRef.UID {} that does not "
                               "point to claim.UID {}",
                               out.volume, uid, claim["metadata"]["uid"].AsString())));
  }
  if (AwaitsRemoval(persistent_volume)) {
    return std::unexpected(
        ClaimError(pod, claim_name, fmt::format("PV {} is being deleted", out.volume)));
  }
  out.local = spec.Has("local");
  const json::Value& source = spec[out.local ? "local" : spec.Has("nfs") ? "nfs" : "hostPath"];
  out.path = source["path"].Str();
  out.type = out.local ? "Directory" : spec["hostPath"]["type"].Str();
  out.server = spec["nfs"]["server"].Str();
  out.mount_options = MountOptionsOf(persistent_volume);
  if (out.local && IsLocalPathVolume(persistent_volume, out.path))
    out.folder = LocalVolumeFolder(persistent_volume);
  out.read_only = spec["nfs"]["readOnly"].AsBool() ||
                  volume["persistentVolumeClaim"]["readOnly"].AsBool() ||
                  volume["ephemeral"]["readOnly"].AsBool();
  out.retain = IsRetained(persistent_volume);
  out.one_pod = Has(spec["accessModes"], "ReadWriteOncePod");
  out.fault = FaultOf(pod, persistent_volume, node, out);
  return out;
}

}  // namespace muster::agent
