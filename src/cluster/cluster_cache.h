// src/cluster/cluster_cache.h
//
// ClusterCache: the live snapshot and what it is made from: pods, nodes and gangs as the informers
// know them, plus the placements that were decided and not yet seen ("assumed").
//
// Life cycle: lives as long as its scheduler; fed with every informer event.
// Thread:     the loop thread.
// Invariants: a pod is placed in the snapshot exactly while it is assumed, or bound and not
//             finished; a terminating pod counts as placed until it is gone. The order of events of
//             different objects does not matter.
// Cost:       an event costs what it changes: O(1) for a pod, O(pods on it) for a node.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/pod_info.h"
#include "cluster/snapshot.h"

namespace muster::cluster {

struct PodKey {
  std::string ns, name;
  auto operator<=>(const PodKey&) const = default;
  std::string ToString() const { return ns + "/" + name; }
};

struct PodRecord {
  PodFacts info;  // the shape and the identity have the rest
  ShapeIndex shape = kNoIndex;
  HolderIndex holder = kNoIndex;
  IdentityIndex identity = kNoIndex;
  PlacementIndex placement = kNoIndex;
  std::string assumed_node;   // where it was decided to go; "" once the informer shows it bound
  DeviceSet assumed_devices;  // what it was decided to get; kept when bound
  // Bound or assumed.
  bool IsPlaced() const { return !info.node_name.empty() || !assumed_node.empty(); }
};

// What whoever thinks of evicting a placed pod asks about it.
struct PlacedPod {
  uint64_t serial = 0;  // of this placing, so that it can be found again; 0: the slot is empty
  int64_t priority = 0;
  Time started{};        // unknown before the node says so
  bool leaving = false;  // it is being deleted
};

// Ordered: a queue looks its pods up in this order.
using PodRecords = std::map<PodKey, PodRecord>;

// A gang is a name in a namespace, whichever way its pods name it.
struct Group {
  // What describes it: Volcano's PodGroup or else that of scheduler-plugins; null while there is
  // neither.
  const PodGroupInfo* info() const {
    for (const std::optional<PodGroupInfo>& object : by_api) {
      if (object.has_value()) return &*object;
    }
    return nullptr;
  }
  std::array<std::optional<PodGroupInfo>, kGroupApis> by_api;
  // The pods that say they belong to it, by name.
  std::map<std::string, const PodRecord*> pods;
};

// What an event means for pods that wait.
struct CacheChange {
  bool changed = false;        // something that scheduling looks at changed
  bool capacity_grew = false;  // pods that did not fit may fit now
};

class ClusterCache {
 public:
  CacheChange UpsertNode(NodeInfo info);
  CacheChange RemoveNode(std::string_view name);
  CacheChange UpsertNamespace(std::string_view name, Labels labels);
  CacheChange RemoveNamespace(std::string_view name);
  CacheChange UpsertPod(PodInfo info);
  CacheChange RemovePod(const PodKey& key);
  CacheChange UpsertGroup(PodGroupInfo info);
  CacheChange RemoveGroup(const PodKey& key, GroupApi api = GroupApi::kVolcano);

  // Storage. From KeepStorage() on pods wait for what they claim; without it claims are no matter.
  void KeepStorage();
  CacheChange UpsertClaim(ClaimInfo info);
  CacheChange RemoveClaim(const ClaimKey& key);
  CacheChange UpsertVolume(VolumeInfo info);
  CacheChange RemoveVolume(const std::string& name);
  CacheChange UpsertStorageClass(StorageClassInfo info);
  CacheChange RemoveStorageClass(const std::string& name);

  // Counts the pod as placed from now on. False, and nothing changes, if the node is gone or lacks
  // the room, a device is taken, a choice of volumes does not hold any more, or the pod is unknown
  // or placed already.
  bool Assume(const PodKey& key, std::string_view node, const DeviceSet& devices,
              const std::vector<VolumeChoice>& volumes = {});
  // Takes an assumption back. No effect on a pod that the informer shows bound.
  void Forget(const PodKey& key);

  // What Assume() was told, while it is assumed.
  const std::vector<VolumeChoice>& AssumedVolumes(const PodKey& key) const;

  const ClusterSnapshot& snapshot() const { return snapshot_; }
  const PodRecords& pods() const { return pods_; }
  // By PlacementIndex of the snapshot.
  const std::vector<PlacedPod>& placed_pods() const { return placed_; }
  // The pod of that placing; nullptr once it is over.
  const PodRecord* FindPlaced(PlacementIndex placement, uint64_t serial) const;
  // The lowest priority of a placed pod; INT64_MAX if there is none.
  int64_t LowestPlacedPriority() const;
  // Valid until the pod is removed, or made again under its name.
  const PodRecord* FindPod(const PodKey& key) const;
  const std::map<PodKey, Group>& groups() const { return groups_; }
  const Group* FindGroup(const PodKey& key) const;
  NodeIndex FindNode(std::string_view name) const;  // kNoIndex if absent

 private:
  struct Interned {
    uint32_t index = kNoIndex;
    uint32_t users = 0;
  };
  // Gives equal texts one index and takes it back with the last user.
  struct Interner {
    std::unordered_map<std::string, Interned> by_key;
    std::vector<const std::string*> keys;  // by index; null: free
    std::vector<uint32_t> unused;
    std::pair<uint32_t, bool> Take(const std::string& key);  // {index, new}
    void Release(uint32_t index);
  };

  ShapeIndex TakeShape(const PodConstraints& constraints);
  ClassIndex TakeClass(const NodeInfo& info);
  HolderIndex TakeHolder(const std::string& holder);
  IdentityIndex TakeIdentity(PodIdentity identity);
  bool IsSame(const PodRecord& pod, const PodFacts& info, const PodConstraints& constraints,
              const PodIdentity& identity) const;
  void Release(const PodRecord& pod);
  std::vector<PodRecord*> TakeOff(const NodeInfo& after);
  void PlaceBound(PodRecord& pod);
  void PlaceOn(PodRecord& pod, NodeIndex node, const DeviceSet& devices);
  void DescribePlaced(const PodRecord& pod);
  void Unplace(PodRecord& pod);
  static DeviceSet DevicesOf(const AssignedDevices& assigned, const NodeInfo& node);
  template <class Map, class Info>
  CacheChange UpsertStorage(Map Storage::* map, const typename Map::key_type& key, Info info);
  template <class Map>
  CacheChange RemoveStorage(Map Storage::* map, const typename Map::key_type& key);
  void NoteClaims(const PodKey& key, const PodRecord& pod);
  void ForgetVolumes(const PodKey& key);
  void Link(const PodRecord& pod);
  void Unlink(const PodFacts& info);

  ClusterSnapshot snapshot_;
  PodRecords pods_;
  std::map<PodKey, Group> groups_;
  std::unordered_map<std::string, NodeIndex> node_index_;
  std::vector<NodeIndex> unused_nodes_;
  std::map<std::string, std::set<PodKey>, std::less<>> pods_on_;  // by node name, bound or assumed
  Interner shapes_, classes_, holders_, identities_;
  std::vector<PlacedPod> placed_;             // by placement
  std::vector<const PodRecord*> placed_who_;  // likewise
  uint64_t last_serial_ = 0;
  std::map<int64_t, size_t> placed_by_priority_;
  size_t looking_at_pods_ = 0;  // pods whose shape does
  std::set<PodKey> claiming_;   // pods that have no place and name claims
  std::map<PodKey, std::vector<VolumeChoice>> assumed_volumes_;
};

}  // namespace muster::cluster
