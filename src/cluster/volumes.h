// src/cluster/volumes.h
//
// What scheduling needs to know of storage: the claims that pods name, PersistentVolumes and
// StorageClasses, and what was decided about them and is not to be seen in them yet.
// Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding and volumezone,
// k8s.io/component-helpers storage/volume.
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/node_affinity.h"
#include "json/projection.h"
#include "json/value.h"
#include "schema/label_selector.h"

namespace muster::cluster {

// The node on which the provisioner is to make the claim's volume.
inline constexpr std::string_view kSelectedNodeAnnotation = "volume.kubernetes.io/selected-node";
// The two sides of a claim agree.
inline constexpr std::string_view kBindCompletedAnnotation = "pv.kubernetes.io/bind-completed";
// The volume was chosen for its claim, not by a user.
inline constexpr std::string_view kBoundByControllerAnnotation =
    "pv.kubernetes.io/bound-by-controller";

struct ClaimKey {
  std::string ns, name;
  auto operator<=>(const ClaimKey&) const = default;
  std::string ToString() const { return ns + "/" + name; }
};

// A claim that a pod names in its volumes.
struct ClaimUse {
  ClaimKey claim;
  // Of an ephemeral volume: the pod that must own the claim; else "".
  std::string pod_name, pod_uid;
  bool IsEphemeral() const { return !pod_name.empty(); }
  bool operator==(const ClaimUse&) const = default;
};

// In the order of spec.volumes; each claim once.
std::vector<ClaimUse> ToClaimUses(const json::Value& pod);
const json::Fields& ClaimUseFields();

// Bits: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod.
using AccessModes = uint8_t;
inline constexpr AccessModes kReadWriteOncePod = 8;

struct ClaimInfo {
  ClaimKey key;
  std::string uid;
  std::string owner_uid;  // of its controller
  bool deleting = false;
  bool lost = false;               // its volume is gone for good
  bool bound = false;              // to `volume`, and both sides agree
  std::string volume;              // spec.volumeName
  std::string class_name;          // "" if it names none
  int64_t bytes = 0;               // that it wants
  AccessModes modes = 0;           // all of which it wants
  bool block = false;              // a device instead of a file system
  schema::LabelSelector selector;  // of volumes
  std::string selected_node;       // kSelectedNodeAnnotation
  bool operator==(const ClaimInfo&) const = default;
};
ClaimInfo ToClaimInfo(const json::Value& claim);
const json::Fields& ClaimInfoFields();

struct VolumeInfo {
  std::string name;
  std::string class_name;
  int64_t bytes = 0;
  AccessModes modes = 0;  // that it has
  bool block = false;
  bool available = false;  // phase Available
  bool deleting = false;
  ClaimKey claim;         // spec.claimRef; both "" without one
  std::string claim_uid;  // of that; "" while only its name is reserved
  Labels labels;
  NodeAffinity affinity;  // nodes that reach it
  // Labels of zone and region, each with the values that nodes may have.
  std::vector<std::pair<std::string, std::set<std::string, std::less<>>>> zones;

  bool IsFor(const ClaimInfo& who) const {
    return claim == who.key && (claim_uid.empty() || claim_uid == who.uid);
  }
  bool operator==(const VolumeInfo&) const = default;
};
VolumeInfo ToVolumeInfo(const json::Value& volume);
const json::Fields& VolumeInfoFields();
// spec.nodeAffinity holds, which looks at labels alone.
bool Reaches(const VolumeInfo& volume, const NodeLabels& node);
// The volume's zone and region are the node's; a node without any of these labels is everywhere.
bool IsInZoneOf(const VolumeInfo& volume, const NodeLabels& node);

struct StorageClassInfo {
  std::string name;
  std::string provisioner;
  bool waits = false;       // for the first pod (WaitForFirstConsumer)
  NodeAffinity topologies;  // allowedTopologies: nodes for which it makes volumes
  bool Provisions() const;
  bool operator==(const StorageClassInfo&) const = default;
};
StorageClassInfo ToStorageClassInfo(const json::Value& storage_class);
const json::Fields& StorageClassInfoFields();

// How a claim that waits for its first pod gets its volume.
struct VolumeChoice {
  ClaimKey claim;
  std::string volume;  // that exists; "": the provisioner is to make one
  std::string node;    // where the pod goes
  bool operator==(const VolumeChoice&) const = default;
};

// Of one cluster. What is behind shared_ptr never changes.
struct Storage {
  std::map<ClaimKey, std::shared_ptr<const ClaimInfo>> claims;
  std::map<std::string, std::shared_ptr<const VolumeInfo>, std::less<>> volumes;
  std::map<std::string, std::shared_ptr<const StorageClassInfo>, std::less<>> classes;
  // For pods that have a place and are not bound yet, by claim; and the claims by volume.
  struct Decision {
    VolumeChoice choice;
    size_t pods = 0;
  };
  std::map<ClaimKey, Decision> decided;
  std::map<std::string, ClaimKey, std::less<>> taken;

  // nullptr if absent.
  const ClaimInfo* Claim(const ClaimKey& key) const;
  const VolumeInfo* Volume(std::string_view name) const;
  const StorageClassInfo* Class(std::string_view name) const;
  // The claim waits for its first pod.
  bool IsDelayed(const ClaimInfo& claim) const;
  // The choice can still be carried out, or was.
  bool Holds(const VolumeChoice& choice) const;
  // For one pod more, or less. REQUIRES: Holds(choice); or that it was decided.
  void Decide(const VolumeChoice& choice);
  void Undo(const VolumeChoice& choice);
};

}  // namespace muster::cluster
