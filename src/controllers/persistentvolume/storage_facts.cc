#include "controllers/persistentvolume/storage_facts.h"

#include <utility>

#include "cluster/node_affinity.h"
#include "schema/pod_phase.h"

namespace muster::controllers {

using client::ObjectKey;

namespace {

constexpr char kUnboundOfClass[] = "unbound-of-class";
constexpr char kUnboundOnNode[] = "unbound-on-node";
constexpr char kOfVolume[] = "of-volume";
constexpr char kForClaim[] = "for-claim";
constexpr char kFreeOfClass[] = "free-of-class";
constexpr char kGoingOnHost[] = "going-on-host";
constexpr char kByHost[] = "by-host";
constexpr char kPodsByClaim[] = "pods-by-claim";

using Keys = std::vector<std::string>;

Keys OneKey(std::string key) { return key.empty() ? Keys() : Keys{std::move(key)}; }

bool IsUnbound(const json::Value& claim) { return claim["spec"]["volumeName"].AsString().empty(); }

}  // namespace

std::string ClassOf(const json::Value& object) {
  const json::Value& annotated = object["metadata"]["annotations"][schema::kClassAnnotation];
  return annotated.IsString() ? annotated.Str() : object["spec"]["storageClassName"].Str();
}

bool NamesClass(const json::Value& claim) {
  return claim["metadata"]["annotations"].Has(schema::kClassAnnotation) ||
         !claim["spec"]["storageClassName"].IsNull();
}

bool IsDefaultClass(const json::Value& storage_class) {
  const json::Value& annotations = storage_class["metadata"]["annotations"];
  return annotations[schema::kDefaultClassAnnotation].AsString() == "true" ||
         annotations[schema::kDefaultClassBetaAnnotation].AsString() == "true";
}

const json::Value* DefaultClass(const client::Informer& classes) {
  const json::Value* newest = nullptr;
  for (const auto& [key, one] : classes.objects()) {
    if (!IsDefaultClass(one)) continue;
    // Times of one form compare as texts do; classes come by name.
    if (newest == nullptr || one["metadata"]["creationTimestamp"].AsString() >
                                 (*newest)["metadata"]["creationTimestamp"].AsString()) {
      newest = &one;
    }
  }
  return newest;
}

bool IsBeingDeleted(const json::Value& object) {
  return object["metadata"].Has("deletionTimestamp");
}

json::Value PatchOf(const json::Value& seen, json::Value patch) {
  return std::move(patch).SetPath({"metadata", "uid"}, seen["metadata"]["uid"]);
}

json::Value GuardedPatch(const json::Value& seen, json::Value patch) {
  return PatchOf(seen, std::move(patch))
      .SetPath({"metadata", "resourceVersion"}, seen["metadata"]["resourceVersion"]);
}

bool IsFor(const json::Value& volume, const json::Value& claim) {
  const json::Value& reference = volume["spec"]["claimRef"];
  if (reference.IsNull() || ClaimOf(volume) != client::KeyOf(claim)) return false;
  const std::string_view uid = reference["uid"].AsString();
  return uid.empty() || uid == claim["metadata"]["uid"].AsString();
}

ObjectKey ClaimOf(const json::Value& volume) {
  const json::Value& reference = volume["spec"]["claimRef"];
  return {reference["namespace"].Str(), reference["name"].Str()};
}

std::string HostOf(const json::Value& volume) {
  const json::Value& terms = volume.Path({"spec", "nodeAffinity", "required", "nodeSelectorTerms"});
  for (const json::Value& expression : terms.At(0)["matchExpressions"].items()) {
    if (expression["key"].AsString() == cluster::kHostnameLabel)
      return expression["values"].At(0).Str();
  }
  return "";
}

std::string HostnameOf(const json::Value& node) {
  return node["metadata"]["labels"][cluster::kHostnameLabel].Str();
}

bool IsFree(const json::Value& volume) {
  return volume["spec"]["claimRef"].IsNull() &&
         volume["status"]["phase"].AsString() == "Available" && !IsBeingDeleted(volume);
}

bool IsLocalPathVolume(const json::Value& volume) {
  return volume["metadata"]["annotations"][kProvisionedByAnnotation].AsString() ==
         schema::kLocalPathProvisioner;
}

// -- What is read.

const json::Fields& ClaimFields() {
  static const json::Fields fields = [] {
    json::Fields all = cluster::ClaimInfoFields();
    return all.Add({{"metadata", "annotations", cluster::kBoundByControllerAnnotation},
                    {"metadata", "annotations", kProvisionerAnnotation},
                    {"metadata", "annotations", kProvisionerBetaAnnotation},
                    {"spec", "dataSource"},
                    {"spec", "dataSourceRef"},
                    {"spec", "volumeAttributesClassName"},
                    {"status", "accessModes"},
                    {"status", "capacity"}});
  }();
  return fields;
}

const json::Fields& VolumeFields() {
  static const json::Fields fields = [] {
    json::Fields all = cluster::VolumeInfoFields();
    return all.Add({{"metadata", "annotations", cluster::kBoundByControllerAnnotation},
                    {"metadata", "annotations", kProvisionedByAnnotation},
                    {"spec", "persistentVolumeReclaimPolicy"},
                    {"spec", "volumeAttributesClassName"},
                    {"status", "message"},
                    {"status", "lastPhaseTransitionTime"}});
  }();
  return fields;
}

const json::Fields& ClassFields() {
  static const json::Fields fields{{"metadata", "creationTimestamp"},
                                   {"metadata", "annotations", schema::kDefaultClassAnnotation},
                                   {"metadata", "annotations", schema::kDefaultClassBetaAnnotation},
                                   {"provisioner"},
                                   {"reclaimPolicy"},
                                   {"volumeBindingMode"},
                                   {"mountOptions"}};
  return fields;
}

const json::Fields& StorageNodeFields() {
  static const json::Fields fields{{"metadata", "labels", cluster::kHostnameLabel},
                                   {"metadata", "annotations", schema::kLocalVolumesAnnotation}};
  return fields;
}

json::Fields StoragePodFields() {
  json::Fields fields = cluster::ClaimUseFields();
  return fields.Add({{"spec", "nodeName"}, {"status", "phase"}});
}

// -- Indexes.

void IndexClaims(client::Informer& claims) {
  claims.AddIndex(kUnboundOfClass, [](const json::Value& claim) {
    return IsUnbound(claim) ? Keys{ClassOf(claim)} : Keys();
  });
  claims.AddIndex(kUnboundOnNode, [](const json::Value& claim) {
    const json::Value& annotations = claim["metadata"]["annotations"];
    return IsUnbound(claim) ? OneKey(annotations[cluster::kSelectedNodeAnnotation].Str()) : Keys();
  });
  claims.AddIndex(kOfVolume, [](const json::Value& claim) {
    return OneKey(claim["spec"]["volumeName"].Str());
  });
}

void IndexVolumes(client::Informer& volumes) {
  volumes.AddIndex(kForClaim, [](const json::Value& volume) {
    const ObjectKey claim = ClaimOf(volume);
    return claim.name.empty() ? Keys() : Keys{claim.ToString()};
  });
  volumes.AddIndex(kFreeOfClass, [](const json::Value& volume) {
    return IsFree(volume) ? Keys{ClassOf(volume)} : Keys();
  });
  volumes.AddIndex(kGoingOnHost, [](const json::Value& volume) {
    return IsBeingDeleted(volume) && IsLocalPathVolume(volume) ? OneKey(HostOf(volume)) : Keys();
  });
}

void IndexHosts(client::Informer& nodes) {
  nodes.AddIndex(kByHost, [](const json::Value& node) { return OneKey(HostnameOf(node)); });
}

std::vector<ObjectKey> UnboundOfClass(const client::Informer& claims,
                                      const std::string& class_name) {
  return claims.Lookup(kUnboundOfClass, class_name);
}

std::vector<ObjectKey> UnboundOnNode(const client::Informer& claims, const std::string& node) {
  return claims.Lookup(kUnboundOnNode, node);
}

std::vector<ObjectKey> ClaimsOfVolume(const client::Informer& claims, const std::string& volume) {
  return claims.Lookup(kOfVolume, volume);
}

std::vector<ObjectKey> VolumesFor(const client::Informer& volumes, const ObjectKey& claim) {
  return volumes.Lookup(kForClaim, claim.ToString());
}

std::vector<ObjectKey> FreeOfClass(const client::Informer& volumes, const std::string& class_name) {
  return volumes.Lookup(kFreeOfClass, class_name);
}

std::vector<ObjectKey> GoingOnHost(const client::Informer& volumes, const std::string& host) {
  return volumes.Lookup(kGoingOnHost, host);
}

bool HasHost(const client::Informer& nodes, const std::string& host) {
  return nodes.LookupCount(kByHost, host) > 0;
}

void IndexPodsByClaim(client::Informer& pods) {
  pods.AddIndex(kPodsByClaim, [](const json::Value& pod) {
    Keys keys;
    for (const cluster::ClaimUse& use : cluster::ToClaimUses(pod))
      keys.push_back(use.claim.ToString());
    return keys;
  });
}

std::vector<ObjectKey> PodsOfClaim(const client::Informer& pods, const ObjectKey& claim) {
  return pods.Lookup(kPodsByClaim, claim.ToString());
}

bool IsUnscheduled(const json::Value& pod) {
  return !pod.IsNull() && pod["spec"]["nodeName"].AsString().empty() &&
         !schema::IsFinalPhase(pod["status"]["phase"].AsString());
}

std::vector<std::string> UnscheduledPodsOf(const client::Informer& pods, const ObjectKey& claim) {
  std::vector<std::string> names;
  for (const ObjectKey& key : PodsOfClaim(pods, claim)) {
    if (IsUnscheduled(*pods.Find(key))) names.push_back(key.name);
  }
  return names;
}

}  // namespace muster::controllers
