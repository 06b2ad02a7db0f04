#include "cluster/snapshot.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "cluster/packing/gpu_state.h"

namespace muster::cluster {

namespace {

constexpr size_t kInitialStride = 8;  // one cache line per node and table

template <class T>
void PutAt(std::vector<T>& table, size_t index, T value) {
  if (index >= table.size()) table.resize(index + 1);
  table[index] = std::move(value);
}

std::vector<int64_t> Restride(const std::vector<int64_t>& table, size_t from, size_t to) {
  std::vector<int64_t> out(table.size() / from * to, 0);
  for (size_t row = 0; row * from < table.size(); ++row) {
    std::copy_n(&table[row * from], from, &out[row * to]);
  }
  return out;
}

}  // namespace

int64_t Shape::AmountOf(ResourceIndex resource) const {
  for (const ResourceAmount& request : requests) {
    if (request.resource == resource) return request.amount;
  }
  return 0;
}

ClusterSnapshot::ClusterSnapshot() : stride_(kInitialStride) {
  AddResource(resource::kCpu);
  AddResource(resource::kMemory);
  AddResource(resource::kEphemeralStorage);
  AddResource(resource::kPods);
}

ResourceIndex ClusterSnapshot::FindResource(std::string_view name) const {
  for (size_t index = 0; index < resources_.size(); ++index) {
    if (*resources_[index] == name) return static_cast<ResourceIndex>(index);
  }
  return kNoIndex;
}

ResourceIndex ClusterSnapshot::AddResource(std::string_view name) {
  const ResourceIndex found = FindResource(name);
  if (found != kNoIndex) return found;
  if (resources_.size() == kMaxResourceNames) return kNoIndex;
  if (resources_.size() == stride_) Widen();
  resources_.push_back(std::make_shared<const std::string>(name));
  const auto index = static_cast<ResourceIndex>(resources_.size() - 1);
  if (name == resource::kNvidiaGpu) gpu_index_ = index;
  if (name == resource::kGpuMilli) gpu_milli_index_ = index;
  return index;
}

void ClusterSnapshot::Widen() {
  for (std::vector<int64_t>* table : {&offered_, &used_, &free_})
    *table = Restride(*table, stride_, stride_ * 2);
  stride_ *= 2;
}

bool ClusterSnapshot::FitsAmounts(const cluster::Shape& shape, NodeIndex node) const {
  const int64_t* row = &free_[node * stride_];
  for (const ResourceAmount& request : shape.requests) {
    if (row[request.resource] < request.amount) return false;
  }
  return shape.unknown_resource.empty();
}

bool ClusterSnapshot::OffersAmounts(const cluster::Shape& shape, NodeIndex node) const {
  for (const ResourceAmount& request : shape.requests) {
    int64_t offered = Offered(node, request.resource);
    if (device_kinds_[node] != nullptr) {
      for (const DeviceKind& kind : *device_kinds_[node]) {
        if (kind.resource == request.resource) offered = std::min(offered, kind.all.Count());
      }
    }
    if (offered < request.amount) return false;
  }
  return shape.unknown_resource.empty();
}

DeviceSet ClusterSnapshot::PickDevices(const cluster::Shape& shape, NodeIndex node,
                                       int16_t milli_left) const {
  DeviceSet picked;
  if (shape.device_resource == kNoIndex || device_kinds_[node] == nullptr) return picked;
  if (shape.gpu_milli > 0) {
    const auto place = [&](const GpuLeft& gpu) {
      return std::tuple(gpu.milli != milli_left, gpu.milli, gpu.device);
    };
    std::optional<GpuLeft> best;
    for (const GpuLeft& gpu : GpusLeft(node)) {
      if (gpu.milli >= shape.gpu_milli && (!best || place(gpu) < place(*best))) best = gpu;
    }
    if (best) picked.Add(best->device);
    return picked;
  }
  for (const DeviceKind& kind : *device_kinds_[node]) {
    const int64_t amount = shape.AmountOf(kind.resource);
    if (amount <= 0) continue;
    const DeviceSet free = device_free_[node].And(kind.all);
    const DeviceLinks* links = device_links_[node].get();
    picked.Add(links == nullptr ? free.Lowest(amount) : links->Pick(free, amount));
  }
  return picked;
}

bool ClusterSnapshot::ServesDevices(const cluster::Shape& shape, NodeIndex node,
                                    const DeviceSet& devices) const {
  if (Grantable(shape, node, devices) != devices) return false;
  if (shape.gpu_milli > 0) {
    const DeviceKind* gpus = GpuKind(node);
    return gpus != nullptr && devices.Count() == 1 && devices.And(gpus->all) == devices;
  }
  int64_t needed = 0;
  if (device_kinds_[node] != nullptr) {
    for (const DeviceKind& kind : *device_kinds_[node]) {
      const int64_t amount = shape.AmountOf(kind.resource);
      if (devices.And(kind.all).Count() != amount) return false;
      needed += amount;
    }
  }
  return devices.Count() == needed;
}

const ClusterSnapshot::DeviceKind* ClusterSnapshot::GpuKind(NodeIndex node) const {
  if (device_kinds_[node] == nullptr || gpu_index_ == kNoIndex) return nullptr;
  for (const DeviceKind& kind : *device_kinds_[node])
    if (kind.resource == gpu_index_) return &kind;
  return nullptr;
}

int64_t ClusterSnapshot::Unnamed(NodeIndex node, const DeviceKind& kind) const {
  int64_t named = kind.every.Count() - device_free_[node].And(kind.every).Count();
  const size_t row = node * kMaxSharedDevices;
  if (kind.resource == gpu_index_ && row + kMaxSharedDevices <= milli_shared_.size())
    named -= std::count_if(&milli_shared_[row], &milli_shared_[row] + kMaxSharedDevices,
                           [](int16_t shared) { return shared > 0; });
  const size_t cell = node * stride_ + kind.resource;
  // Some may be of those that the node offers and does not list.
  const int64_t unlisted = std::max<int64_t>(offered_[cell] - kind.every.Count(), 0);
  return std::max<int64_t>(used_[cell] - named - unlisted, 0);
}

int16_t ClusterSnapshot::MilliLeft(NodeIndex node, size_t device) const {
  // REQUIRES: the whole GPUs are counted. None that is free may be left for shares.
  if (device_free_[node].Has(device))
    return free_[node * stride_ + gpu_index_] > 0 ? kWholeGpu : int16_t{0};
  const size_t cell = node * kMaxSharedDevices + device;
  const int16_t shared = cell < milli_shared_.size() ? milli_shared_[cell] : int16_t{0};
  return shared == 0 ? int16_t{0} : static_cast<int16_t>(kWholeGpu - shared);
}

int16_t ClusterSnapshot::MostMilliLeft(NodeIndex node) const {
  const DeviceKind* gpus = GpuKind(node);
  int16_t most = 0;
  for (size_t device = 0; gpus != nullptr && device < kMaxSharedDevices && most < kWholeGpu;
       ++device) {
    if (gpus->all.Has(device)) most = std::max(most, MilliLeft(node, device));
  }
  return most;
}

std::vector<ClusterSnapshot::GpuLeft> ClusterSnapshot::GpusLeft(NodeIndex node) const {
  std::vector<GpuLeft> left;
  const DeviceKind* gpus = GpuKind(node);
  if (gpus == nullptr) return left;
  for (size_t device = 0; device < kMaxSharedDevices; ++device)
    if (gpus->all.Has(device)) left.push_back({device, MilliLeft(node, device)});
  return left;
}

bool ClusterSnapshot::SharesAlike(NodeIndex a, NodeIndex b) const {
  if (!HasShares()) return true;
  const auto sorted = [this](NodeIndex node) {
    std::vector<int16_t> left;
    for (const GpuLeft& gpu : GpusLeft(node)) left.push_back(gpu.milli);
    std::sort(left.begin(), left.end());
    return left;
  };
  return sorted(a) == sorted(b);
}

DeviceSet ClusterSnapshot::Grantable(const cluster::Shape& shape, NodeIndex node,
                                     const DeviceSet& devices) const {
  if (shape.gpu_milli == 0) return devices.And(device_free_[node]);
  DeviceSet granted;
  for (const size_t device : devices.Positions()) {
    if (device < kMaxSharedDevices && MilliLeft(node, device) >= shape.gpu_milli)
      granted.Add(device);
  }
  return granted;
}

PlacementIndex ClusterSnapshot::Place(ShapeIndex shape, NodeIndex node, HolderIndex holder,
                                      const DeviceSet& devices, IdentityIndex identity) {
  CHECK(HasNode(node));
  CHECK_MSG(Grantable(*shapes_[shape], node, devices) == devices, "a device would have two owners");
  PlacementIndex index = static_cast<PlacementIndex>(placements_.size());
  if (empty_placements_.empty()) {
    placements_.emplace_back();
  } else {
    index = empty_placements_.back();
    empty_placements_.pop_back();
  }
  placements_[index] = {node, shape, holder, identity, devices};
  Hold(placements_[index], +1);
  Account(placements_[index], +1);
  return index;
}

void ClusterSnapshot::Remove(PlacementIndex index) {
  Placement& placement = placements_[index];
  CHECK(placement.node != kNoIndex);
  Hold(placement, -1);
  Account(placement, -1);
  placement = Placement{};
  empty_placements_.push_back(index);
}

// Gives the placement its devices, or takes them back.
void ClusterSnapshot::Hold(const Placement& placement, int64_t sign) {
  DeviceSet& free = device_free_[placement.node];
  const int16_t milli = shapes_[placement.shape]->gpu_milli;
  if (milli == 0) {
    if (sign > 0) {
      free.Remove(placement.devices);
    } else {
      free.Add(placement.devices);
    }
    return;
  }
  const size_t row = placement.node * kMaxSharedDevices;
  if (row + kMaxSharedDevices > milli_shared_.size())
    milli_shared_.resize(row + kMaxSharedDevices, 0);
  for (const size_t device : placement.devices.Positions()) {
    int16_t& shared = milli_shared_[row + device];
    shared = static_cast<int16_t>(shared + sign * milli);
    DeviceSet one;
    one.Add(device);
    if (shared == 0) {
      free.Add(one);
    } else {
      free.Remove(one);
    }
  }
}

void ClusterSnapshot::Account(const Placement& placement, int64_t sign) {
  const cluster::Shape& shape = *shapes_[placement.shape];
  int64_t* used = &used_[placement.node * stride_];
  for (const ResourceAmount& request : shape.requests) {
    used[request.resource] += sign * request.amount;
    Recount(placement.node, request.resource);
  }
  // Shares take GPUs from those that want whole ones, and the other way round.
  const bool has_gpu = gpu_index_ != kNoIndex && shape.AmountOf(gpu_index_) > 0;
  if (gpu_milli_index_ != kNoIndex && (has_gpu || !placement.devices.IsEmpty())) {
    if (gpu_index_ != kNoIndex) Recount(placement.node, gpu_index_);
    Recount(placement.node, gpu_milli_index_);
  }
  if (placement.devices.IsEmpty()) return;
  RecountJoined(placement.node);
}

void ClusterSnapshot::RecountJoined(NodeIndex node) {
  most_joined_[node] = 0;
  if (device_links_[node] == nullptr || device_kinds_[node] == nullptr) return;
  for (const DeviceKind& kind : *device_kinds_[node]) {
    const int64_t joined = device_links_[node]->MostJoined(device_free_[node].And(kind.all));
    most_joined_[node] = std::max(most_joined_[node], static_cast<uint8_t>(joined));
  }
}

void ClusterSnapshot::Recount(NodeIndex node, ResourceIndex resource) {
  const size_t cell = node * stride_ + resource;
  int64_t free = offered_[cell] - used_[cell];
  if (resource == gpu_milli_index_) {
    free = std::min<int64_t>(free, MostMilliLeft(node));
  } else if (resource >= kFirstExtendedIndex && device_kinds_[node] != nullptr) {
    for (const DeviceKind& kind : *device_kinds_[node]) {
      if (kind.resource == resource)
        free = std::min(free, device_free_[node].And(kind.all).Count() - Unnamed(node, kind));
    }
  }
  free_[cell] = free;
}

void ClusterSnapshot::SetNode(NodeIndex node, std::shared_ptr<const NodeInfo> info,
                              ClassIndex node_class) {
  if (node >= nodes_.size()) {
    nodes_.resize(node + 1);
    class_of_.resize(node + 1, kNoIndex);
    has_devices_.resize(node + 1, 0);
    device_free_.resize(node + 1);
    device_kinds_.resize(node + 1);
    device_links_.resize(node + 1);
    most_joined_.resize(node + 1, 0);
    for (std::vector<int64_t>* table : {&offered_, &used_, &free_})
      table->resize((node + 1) * stride_, 0);
  }
  if (nodes_[node] == nullptr) ++node_count_;
  if (nodes_[node] != nullptr && !nodes_[node]->images.empty()) --nodes_with_images_;
  if (!info->images.empty()) ++nodes_with_images_;

  std::fill_n(&offered_[node * stride_], stride_, 0);
  has_devices_[node] = 0;
  for (const auto& [name, amount] : info->allocatable) {
    const ResourceIndex resource = AddResource(name);
    if (resource == kNoIndex) continue;
    offered_[node * stride_ + resource] = amount;
    if (amount > 0 && IsExtendedResource(name)) has_devices_[node] = 1;
  }

  auto kinds = std::make_shared<std::vector<DeviceKind>>();
  DeviceSet all;
  for (size_t position = 0; position < info->devices.size(); ++position) {
    // Only whole devices have identities; a list for anything else is not ours to follow.
    if (!IsExtendedResource(info->devices[position].resource)) continue;
    const ResourceIndex resource = AddResource(info->devices[position].resource);
    if (resource == kNoIndex) continue;
    if (kinds->empty() || kinds->back().resource != resource) kinds->push_back({resource, {}, {}});
    all.Add(position);
    kinds->back().every.Add(position);
    if (info->devices[position].unhealthy.empty()) {
      kinds->back().all.Add(position);
    } else {
      // Allocatable is without it; a pod that has it takes nothing from the others.
      ++offered_[node * stride_ + resource];
    }
  }
  device_kinds_[node] = kinds->empty() ? nullptr : std::move(kinds);
  device_free_[node] = all;
  auto links = std::make_shared<const DeviceLinks>(info->devices);
  device_links_[node] = links->empty() ? nullptr : std::move(links);
  nodes_[node] = std::move(info);
  class_of_[node] = node_class;
  for (size_t resource = 0; resource < resources_.size(); ++resource) {
    Recount(node, static_cast<ResourceIndex>(resource));
  }
  if (gpu_milli_index_ != kNoIndex) Recount(node, gpu_milli_index_);  // after the whole ones
  RecountJoined(node);
}

void ClusterSnapshot::ClearNode(NodeIndex node) {
  if (nodes_[node] == nullptr) return;
  --node_count_;
  if (!nodes_[node]->images.empty()) --nodes_with_images_;
  nodes_[node] = nullptr;
  class_of_[node] = kNoIndex;
  has_devices_[node] = 0;
  device_free_[node] = DeviceSet();
  device_kinds_[node] = nullptr;
  device_links_[node] = nullptr;
  most_joined_[node] = 0;
  for (std::vector<int64_t>* table : {&offered_, &used_, &free_})
    std::fill_n(&(*table)[node * stride_], stride_, 0);
}

void ClusterSnapshot::SetClass(ClassIndex index, std::shared_ptr<const NodeClass> node_class) {
  PutAt(classes_, index, std::move(node_class));
}

void ClusterSnapshot::SetShape(ShapeIndex index, std::shared_ptr<const cluster::Shape> shape) {
  PutAt(shapes_, index, std::move(shape));
}

void ClusterSnapshot::SetHolder(HolderIndex index, std::shared_ptr<const std::string> holder) {
  PutAt(holders_, index, std::move(holder));
}

void ClusterSnapshot::SetIdentity(IdentityIndex index,
                                  std::shared_ptr<const PodIdentity> identity) {
  PutAt(identities_, index, std::move(identity));
}

void ClusterSnapshot::SetNamespace(std::string_view name, std::optional<Labels> labels) {
  if (namespaces_.use_count() > 1) namespaces_ = std::make_shared<NamespaceLabels>(*namespaces_);
  if (labels.has_value()) {
    namespaces_->insert_or_assign(std::string(name), *std::move(labels));
  } else if (const auto known = namespaces_->find(name); known != namespaces_->end()) {
    namespaces_->erase(known);
  }
}

cluster::Storage& ClusterSnapshot::ChangeStorage() {
  if (storage_ == nullptr) {
    storage_ = std::make_shared<cluster::Storage>();
  } else if (storage_.use_count() > 1) {
    storage_ = std::make_shared<cluster::Storage>(*storage_);
  }
  return *storage_;
}

}  // namespace muster::cluster
