// src/cluster/snapshot.h
//
// ClusterSnapshot: the cluster as the planner sees it. Dense arrays over interned indexes, cheap to
// copy (a copy is how planning gets off the loop), changed in place by placing and removing pods.
//
// Life cycle: ClusterCache keeps the live one current from informer events; planners work on
// copies.
// Thread:     not shared: one owner at a time. What is behind shared_ptr never changes.
// Invariants: Free() = offered - used, and where the node lists devices never more than the devices
//             that nobody has; of muster.dev/gpu-milli the most that one GPU has left. A device is
//             in at most one placement, or in several that share it and ask for at most all of
//             it: Place() CHECKs it. An index of a removed node, shape or placement may be used
//             again for another.
// Equivalence: nodes with equal labels (hostname apart), taints and cordon are of one class; pods
//             with equal requests, affinity, tolerations and relations to other pods are of one
//             shape; pods of one namespace with equal labels are of one identity. Rules that look
//             at neither names, amounts nor pods are evaluated once per class and shape.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/device_picker.h"
#include "cluster/devices.h"
#include "cluster/pod_info.h"

namespace muster::cluster {

using ResourceIndex = uint32_t;
using NodeIndex = uint32_t;
using ClassIndex = uint32_t;
using ShapeIndex = uint32_t;
using HolderIndex = uint32_t;
using IdentityIndex = uint32_t;
using PlacementIndex = uint32_t;

inline constexpr uint32_t kNoIndex = ~uint32_t{0};

// The first resources have fixed places.
inline constexpr ResourceIndex kCpuIndex = 0;        // milli-cores
inline constexpr ResourceIndex kMemoryIndex = 1;     // bytes
inline constexpr ResourceIndex kEphemeralIndex = 2;  // bytes
inline constexpr ResourceIndex kPodsIndex = 3;
inline constexpr ResourceIndex kFirstExtendedIndex = 4;

// Names of resources in one cluster. A pod that asks for a name beyond them fits nowhere.
inline constexpr size_t kMaxResourceNames = 64;

// GPUs that pods may share stand among the first so many devices of a node.
inline constexpr size_t kMaxSharedDevices = 16;

struct ResourceAmount {
  ResourceIndex resource = 0;
  int64_t amount = 0;
};

struct NodeClass {
  Labels labels;
  std::vector<Taint> taints;
  bool unschedulable = false;
};

struct Shape {
  PodConstraints constraints;
  std::vector<ResourceAmount> requests;  // by index, one of `pods` included
  // Asked for, but no node can ever give it: over kMaxResourceNames, or more of a GPU than one; ""
  // if none.
  std::string unknown_resource;
  bool names_nodes = false;                  // affinity looks at node names: evaluate per node
  ResourceIndex device_resource = kNoIndex;  // the first extended resource that it asks for
  int16_t gpu_milli = 0;                     // of one GPU that it shares; 0: of none
  int64_t AmountOf(ResourceIndex resource) const;
};

struct Placement {
  NodeIndex node = kNoIndex;  // kNoIndex: this slot is empty
  ShapeIndex shape = kNoIndex;
  HolderIndex holder = kNoIndex;
  IdentityIndex identity = kNoIndex;
  DeviceSet devices;
};

class ClusterSnapshot {
 public:
  ClusterSnapshot();

  // -- Nodes. Slots run from 0 to node_slots(); some may be empty.
  size_t node_slots() const { return nodes_.size(); }
  size_t node_count() const { return node_count_; }
  // Some node says which images it has.
  bool KnowsImages() const { return nodes_with_images_ > 0; }
  bool HasNode(NodeIndex node) const { return nodes_[node] != nullptr; }
  const NodeInfo& Node(NodeIndex node) const { return *nodes_[node]; }
  ClassIndex ClassOf(NodeIndex node) const { return class_of_[node]; }
  size_t class_slots() const { return classes_.size(); }
  const NodeClass& Class(ClassIndex index) const { return *classes_[index]; }
  int64_t Free(NodeIndex node, ResourceIndex resource) const {
    return free_[node * stride_ + resource];
  }
  int64_t Offered(NodeIndex node, ResourceIndex resource) const {
    return offered_[node * stride_ + resource];
  }
  // Amounts by resource index, resource_count() of them.
  std::span<const int64_t> FreeRow(NodeIndex node) const {
    return {&free_[node * stride_], resources_.size()};
  }
  // The node offers some extended resource: pods that want none keep away from it while they can.
  bool HasDevices(NodeIndex node) const { return has_devices_[node] != 0; }

  // -- Interned names.
  size_t resource_count() const { return resources_.size(); }
  const std::string& ResourceName(ResourceIndex resource) const { return *resources_[resource]; }
  ResourceIndex FindResource(std::string_view name) const;  // kNoIndex if nobody named it
  size_t shape_slots() const { return shapes_.size(); }
  const cluster::Shape& Shape(ShapeIndex shape) const { return *shapes_[shape]; }
  const std::string& Holder(HolderIndex holder) const { return *holders_[holder]; }
  size_t holder_slots() const { return holders_.size(); }
  const PodIdentity& Identity(IdentityIndex identity) const { return *identities_[identity]; }
  size_t identity_slots() const { return identities_.size(); }
  const NamespaceLabels& Namespaces() const { return *namespaces_; }
  // nullptr where nobody keeps it: then what pods claim is no matter.
  const cluster::Storage* Storage() const { return storage_.get(); }

  // -- Placements.
  // Enough of every resource and of every listed device that the shape asks for. Looks at nothing
  // else.
  bool FitsAmounts(const cluster::Shape& shape, NodeIndex node) const;
  // The same, if nothing were placed on the node.
  bool OffersAmounts(const cluster::Shape& shape, NodeIndex node) const;
  // Free devices that serve the shape, NVLink neighbours first (device_picker.h); for a share the
  // GPU with the least left that suffices. Empty if the node lists none for it.
  // REQUIRES: FitsAmounts(shape, node).
  // With `milli_left` a share goes to a GPU that has so much left, if there is one.
  DeviceSet PickDevices(const cluster::Shape& shape, NodeIndex node, int16_t milli_left = 0) const;
  // `devices` are free and exactly what the shape needs of the resources that the node lists.
  bool ServesDevices(const cluster::Shape& shape, NodeIndex node, const DeviceSet& devices) const;
  // Of the devices those that a pod of the shape may have beside what is placed.
  DeviceSet Grantable(const cluster::Shape& shape, NodeIndex node, const DeviceSet& devices) const;
  // What is used may exceed what is offered (a node shrank, another scheduler bound a pod).
  // REQUIRES: Grantable(shape, node, devices) == devices.
  // Without an identity, no selector finds the pod.
  PlacementIndex Place(ShapeIndex shape, NodeIndex node, HolderIndex holder,
                       const DeviceSet& devices, IdentityIndex identity = kNoIndex);
  void Remove(PlacementIndex placement);
  size_t placement_slots() const { return placements_.size(); }
  const Placement& At(PlacementIndex placement) const { return placements_[placement]; }
  DeviceSet FreeDevices(NodeIndex node) const { return device_free_[node]; }
  // The healthy GPUs that may be shared, and what each has left in thousandths.
  struct GpuLeft {
    size_t device = 0;  // position
    int16_t milli = 0;
  };
  std::vector<GpuLeft> GpusLeft(NodeIndex node) const;
  // The GPUs of both have the same left, in any order.
  bool SharesAlike(NodeIndex a, NodeIndex b) const;
  // Some pod had a share of a GPU since this snapshot was made.
  bool HasShares() const { return !milli_shared_.empty(); }
  // The most free devices of the node that NVLinks join; 0 where no device has a link.
  int64_t MostJoined(NodeIndex node) const { return most_joined_[node]; }

  // -- Structure: only ClusterCache, which owns the interning, calls these (SetNode also who tries
  // out more nodes of a class on a copy).
  ResourceIndex AddResource(std::string_view name);  // kNoIndex when there are kMaxResourceNames
  // REQUIRES: no placement is on it (the cache takes them off and puts them back).
  void SetNode(NodeIndex node, std::shared_ptr<const NodeInfo> info, ClassIndex node_class);
  // REQUIRES: no placement is on it.
  void ClearNode(NodeIndex node);
  void SetClass(ClassIndex index, std::shared_ptr<const NodeClass> node_class);
  void SetShape(ShapeIndex index, std::shared_ptr<const cluster::Shape> shape);
  void SetHolder(HolderIndex index, std::shared_ptr<const std::string> holder);
  void SetIdentity(IdentityIndex index, std::shared_ptr<const PodIdentity> identity);
  void SetNamespace(std::string_view name, std::optional<Labels> labels);  // nullopt: gone
  cluster::Storage& ChangeStorage();

 private:
  struct DeviceKind {
    ResourceIndex resource;
    DeviceSet all;    // that may be given: unhealthy ones may not
    DeviceSet every;  // unhealthy ones too
  };

  void Widen();
  void Recount(NodeIndex node, ResourceIndex resource);
  void RecountJoined(NodeIndex node);
  void Account(const Placement& placement, int64_t sign);
  void Hold(const Placement& placement, int64_t sign);
  const DeviceKind* GpuKind(NodeIndex node) const;
  // Devices that pods hold and nobody said which they are: a pod that did not come through this
  // scheduler gets its devices on the node. They are among those that look free.
  int64_t Unnamed(NodeIndex node, const DeviceKind& kind) const;
  int16_t MilliLeft(NodeIndex node, size_t device) const;
  int16_t MostMilliLeft(NodeIndex node) const;

  size_t stride_;  // of the three tables below; at least resources_.size()
  std::vector<int64_t> offered_, used_, free_;
  std::vector<std::shared_ptr<const NodeInfo>> nodes_;
  std::vector<ClassIndex> class_of_;
  std::vector<uint8_t> has_devices_;
  std::vector<DeviceSet> device_free_;
  // Of each shareable device what shares have of it, kMaxSharedDevices a node; empty until there is
  // a share.
  std::vector<int16_t> milli_shared_;
  ResourceIndex gpu_index_ = kNoIndex, gpu_milli_index_ = kNoIndex;
  // Null: the node lists no devices.
  std::vector<std::shared_ptr<const std::vector<DeviceKind>>> device_kinds_;
  // Null: none of the node's devices has a link.
  std::vector<std::shared_ptr<const DeviceLinks>> device_links_;
  std::vector<uint8_t> most_joined_;
  size_t node_count_ = 0;
  size_t nodes_with_images_ = 0;
  std::vector<std::shared_ptr<const NodeClass>> classes_;
  std::vector<std::shared_ptr<const std::string>> resources_;
  std::vector<std::shared_ptr<const cluster::Shape>> shapes_;
  std::vector<std::shared_ptr<const std::string>> holders_;
  std::vector<std::shared_ptr<const PodIdentity>> identities_;
  // Copied before a change while another snapshot has it, too.
  std::shared_ptr<NamespaceLabels> namespaces_ = std::make_shared<NamespaceLabels>();
  std::shared_ptr<cluster::Storage> storage_;  // likewise
  std::vector<Placement> placements_;
  std::vector<PlacementIndex> empty_placements_;
};

}  // namespace muster::cluster
