#include "cluster/cluster_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "cluster/packing/gpu_state.h"

namespace muster::cluster {

namespace {

// Unambiguous texts for interning: every part is preceded by its length.
void Put(std::string& key, std::string_view part) {
  key += std::to_string(part.size());
  key += ':';
  key += part;
}

void Put(std::string& key, const std::vector<Requirement>& requirements) {
  key += '[';
  for (const Requirement& requirement : requirements) {
    Put(key, requirement.key);
    key += static_cast<char>('a' + static_cast<int>(requirement.op));
    for (const std::string& value : requirement.values) Put(key, value);
    key += ',';
  }
  key += ']';
}

void Put(std::string& key, const NodeSelectorTerm& term) {
  Put(key, term.expressions);
  Put(key, term.fields);
}

void Put(std::string& key, const NodeAffinity& affinity) {
  for (const auto& [label, value] : affinity.selector) {
    Put(key, label);
    Put(key, value);
  }
  key += affinity.has_terms ? '+' : '-';
  for (const NodeSelectorTerm& term : affinity.terms) Put(key, term);
  for (const PreferredNodeTerm& each : affinity.preferred) {
    Put(key, std::to_string(each.weight));
    Put(key, each.term);
  }
}

void Put(std::string& key, const schema::LabelSelector& selector) {
  key += selector.selects_nothing() ? '-' : '+';
  for (const schema::LabelRequirement& requirement : selector.requirements()) {
    Put(key, requirement.key);
    key += static_cast<char>('a' + static_cast<int>(requirement.op));
    for (const std::string& value : requirement.values) Put(key, value);
    key += ',';
  }
}

void Put(std::string& key, const PodTerm& term) {
  Put(key, term.topology_key);
  for (const std::string& ns : term.pods.namespaces) Put(key, ns);
  Put(key, term.pods.in_namespaces);
  Put(key, term.pods.labels);
  key += ';';
}

void Put(std::string& key, const std::vector<SpreadConstraint>& constraints) {
  key += '|';
  for (const SpreadConstraint& spread : constraints) {
    Put(key, spread.term);
    Put(key, std::to_string(spread.max_skew));
    Put(key, std::to_string(spread.min_domains));
    key += spread.honor_affinity ? 'a' : '-';
    key += spread.honor_taints ? 't' : '-';
    key += spread.is_default ? 'd' : '-';
  }
}

void Put(std::string& key, const PodRelations& relations) {
  for (const HostPort& port : relations.ports) {
    Put(key, port.ip);
    Put(key, port.protocol);
    Put(key, std::to_string(port.port));
  }
  key += '|';
  for (const PodTerm& term : relations.affinity) Put(key, term);
  key += '|';
  for (const PodTerm& term : relations.anti_affinity) Put(key, term);
  Put(key, relations.spread);
  Put(key, relations.preferred_spread);
  key += '|';
  for (const PreferredPodTerm& each : relations.preferred) {
    Put(key, std::to_string(each.weight));
    Put(key, each.term);
  }
}

std::string KeyOf(const PodIdentity& identity) {
  std::string key(identity.terminating ? "t" : "r");
  Put(key, identity.ns);
  for (const auto& [label, value] : identity.labels) {
    Put(key, label);
    Put(key, value);
  }
  return key;
}

std::string KeyOf(const PodConstraints& constraints) {
  std::string key;
  for (const auto& [name, amount] : constraints.requests) {
    Put(key, name);
    key += std::to_string(amount);
    key += ' ';
  }
  key += '|';
  Put(key, constraints.affinity);
  key += '|';
  for (const Toleration& toleration : constraints.tolerations) {
    Put(key, toleration.key);
    Put(key, toleration.value);
    key += toleration.exists ? 'e' : '=';
    key +=
        toleration.any_effect ? '*' : static_cast<char>('a' + static_cast<int>(toleration.effect));
  }
  key += constraints.profile == Profile::kSpread ? 's' : '|';
  Put(key, {reinterpret_cast<const char*>(constraints.images.data()),
            constraints.images.size() * sizeof(ImageHash)});
  key += '|';
  if (!constraints.relations.IsTrivial()) Put(key, constraints.relations);
  for (const ClaimUse& use : constraints.claims) {
    key += '|';
    for (const std::string& part : {use.claim.ns, use.claim.name, use.pod_name, use.pod_uid})
      Put(key, part);
  }
  return key;
}

std::string KeyOf(const NodeInfo& info) {
  std::string key(info.unschedulable ? "u" : "s");
  for (const auto& [label, value] : info.labels) {
    Put(key, label);
    Put(key, value);
  }
  key += '|';
  for (const Taint& taint : info.taints) {
    Put(key, taint.key);
    Put(key, taint.value);
    key += static_cast<char>('a' + static_cast<int>(taint.effect));
  }
  return key;
}

// More of something, or fewer obstacles: pods that did not fit before may fit now.
bool OffersMore(const NodeInfo& before, const NodeInfo& after) {
  if (before.labels != after.labels || before.hostname != after.hostname) return true;
  if (before.taints != after.taints || (before.unschedulable && !after.unschedulable)) return true;
  if (before.devices != after.devices) return true;
  return std::any_of(after.allocatable.begin(), after.allocatable.end(), [&](const auto& entry) {
    return entry.second > AmountOf(before.allocatable, entry.first);
  });
}

}  // namespace

std::pair<uint32_t, bool> ClusterCache::Interner::Take(const std::string& key) {
  const auto [at, added] = by_key.try_emplace(key);
  if (added) {
    if (unused.empty()) {
      at->second.index = static_cast<uint32_t>(keys.size());
      keys.push_back(nullptr);
    } else {
      at->second.index = unused.back();
      unused.pop_back();
    }
    keys[at->second.index] = &at->first;  // unordered_map never moves its keys
  }
  ++at->second.users;
  return {at->second.index, added};
}

void ClusterCache::Interner::Release(uint32_t index) {
  const auto at = by_key.find(*keys[index]);
  CHECK(at != by_key.end() && at->second.users > 0);
  if (--at->second.users > 0) return;
  keys[index] = nullptr;
  unused.push_back(index);
  by_key.erase(at);
}

ShapeIndex ClusterCache::TakeShape(const PodConstraints& constraints) {
  const auto [index, added] = shapes_.Take(KeyOf(constraints));
  if (!added) return index;
  auto shape = std::make_shared<Shape>();
  shape->constraints = constraints;
  shape->names_nodes = constraints.affinity.NamesNodes();
  for (const auto& [name, amount] : constraints.requests) {
    const ResourceIndex number = snapshot_.AddResource(name);
    if (number == kNoIndex) {
      shape->unknown_resource = name;
      continue;
    }
    shape->requests.push_back({number, amount});
    if (shape->device_resource == kNoIndex && IsExtendedResource(name))
      shape->device_resource = number;
  }
  // A pod has whole GPUs or a share of one.
  const int64_t milli = AmountOf(constraints.requests, resource::kGpuMilli);
  if (milli > kWholeGpu ||
      (milli > 0 && AmountOf(constraints.requests, resource::kNvidiaGpu) > 0)) {
    shape->unknown_resource = resource::kGpuMilli;
  } else {
    shape->gpu_milli = static_cast<int16_t>(milli);
  }
  std::sort(
      shape->requests.begin(), shape->requests.end(),
      [](const ResourceAmount& a, const ResourceAmount& b) { return a.resource < b.resource; });
  snapshot_.SetShape(index, std::move(shape));
  return index;
}

ClassIndex ClusterCache::TakeClass(const NodeInfo& info) {
  const auto [index, added] = classes_.Take(KeyOf(info));
  if (added) {
    snapshot_.SetClass(index, std::make_shared<const NodeClass>(
                                  NodeClass{info.labels, info.taints, info.unschedulable}));
  }
  return index;
}

HolderIndex ClusterCache::TakeHolder(const std::string& holder) {
  const auto [index, added] = holders_.Take(holder);
  if (added) snapshot_.SetHolder(index, std::make_shared<const std::string>(holder));
  return index;
}

IdentityIndex ClusterCache::TakeIdentity(PodIdentity identity) {
  const auto [index, added] = identities_.Take(KeyOf(identity));
  if (added) snapshot_.SetIdentity(index, std::make_shared<const PodIdentity>(std::move(identity)));
  return index;
}

bool ClusterCache::IsSame(const PodRecord& pod, const PodFacts& info,
                          const PodConstraints& constraints, const PodIdentity& identity) const {
  return pod.info == info && snapshot_.Shape(pod.shape).constraints == constraints &&
         snapshot_.Identity(pod.identity).labels == identity.labels;
}

void ClusterCache::Release(const PodRecord& pod) {
  if (snapshot_.Shape(pod.shape).constraints.relations.LooksAtPods()) --looking_at_pods_;
  shapes_.Release(pod.shape);
  holders_.Release(pod.holder);
  identities_.Release(pod.identity);
  Unlink(pod.info);
}

CacheChange ClusterCache::UpsertNamespace(std::string_view name, Labels labels) {
  const auto known = snapshot_.Namespaces().find(name);
  if (known != snapshot_.Namespaces().end() && known->second == labels) return {};
  snapshot_.SetNamespace(name, std::move(labels));
  return {.changed = true, .capacity_grew = looking_at_pods_ > 0};
}

CacheChange ClusterCache::RemoveNamespace(std::string_view name) {
  if (!snapshot_.Namespaces().contains(name)) return {};
  snapshot_.SetNamespace(name, std::nullopt);
  return {.changed = true, .capacity_grew = looking_at_pods_ > 0};
}

CacheChange ClusterCache::UpsertNode(NodeInfo info) {
  CacheChange change{.changed = true, .capacity_grew = true};
  auto found = node_index_.find(info.name);
  ClassIndex old_class = kNoIndex;
  if (found != node_index_.end()) {
    const NodeInfo& before = snapshot_.Node(found->second);
    if (before == info) return {};
    change.capacity_grew = OffersMore(before, info);
    old_class = snapshot_.ClassOf(found->second);
  } else {
    NodeIndex index = static_cast<NodeIndex>(snapshot_.node_slots());
    if (!unused_nodes_.empty()) {
      index = unused_nodes_.back();
      unused_nodes_.pop_back();
    }
    found = node_index_.emplace(info.name, index).first;
  }
  const std::vector<PodRecord*> moved = TakeOff(info);
  const ClassIndex node_class = TakeClass(info);
  if (old_class != kNoIndex) classes_.Release(old_class);
  snapshot_.SetNode(found->second, std::make_shared<const NodeInfo>(std::move(info)), node_class);
  for (PodRecord* pod : moved) PlaceBound(*pod);
  return change;
}

// Takes the pods off the node that `after` is about to describe. Devices that we gave keep their
// ids, not their positions.
std::vector<PodRecord*> ClusterCache::TakeOff(const NodeInfo& after) {
  std::vector<PodRecord*> taken;
  const auto on = pods_on_.find(after.name);
  if (on == pods_on_.end()) return taken;
  for (const PodKey& key : on->second) {
    PodRecord& pod = pods_.at(key);
    if (pod.placement != kNoIndex && !pod.assumed_devices.IsEmpty()) {
      const NodeInfo& before = snapshot_.Node(snapshot_.At(pod.placement).node);
      DeviceSet renumbered;
      for (const size_t position : pod.assumed_devices.Positions()) {
        const auto same = [&](const Device& device) {
          return device.id == before.devices[position].id &&
                 device.resource == before.devices[position].resource;
        };
        const auto found = std::find_if(after.devices.begin(), after.devices.end(), same);
        if (found != after.devices.end())
          renumbered.Add(static_cast<size_t>(found - after.devices.begin()));
      }
      pod.assumed_devices = renumbered;
    }
    Unplace(pod);
    taken.push_back(&pod);
  }
  return taken;
}

CacheChange ClusterCache::RemoveNode(std::string_view name) {
  const auto found = node_index_.find(std::string(name));
  if (found == node_index_.end()) return {};
  const auto on = pods_on_.find(name);
  if (on != pods_on_.end()) {
    for (const PodKey& key : on->second) Unplace(pods_.at(key));
  }
  classes_.Release(snapshot_.ClassOf(found->second));
  snapshot_.ClearNode(found->second);
  unused_nodes_.push_back(found->second);
  node_index_.erase(found);
  return {.changed = true, .capacity_grew = false};
}

CacheChange ClusterCache::UpsertPod(PodInfo info) {
  const PodKey key{info.ns, info.name};
  const auto [at, added] = pods_.try_emplace(key);
  PodRecord& pod = at->second;
  PodConstraints constraints = std::exchange(info.constraints, {});
  PodIdentity who{info.ns, std::exchange(info.labels, {}), info.deleting};
  if (!added) {
    if (IsSame(pod, info, constraints, who)) return {};
    if (pod.info.uid != info.uid) {
      // Deleted and made again between two looks of the informer.
      const bool freed = pod.IsPlaced();
      RemovePod(key);
      info.constraints = std::move(constraints);
      info.labels = std::move(who.labels);
      CacheChange change = UpsertPod(std::move(info));
      change.capacity_grew |= freed;
      return change;
    }
  }
  const bool was_placed = pod.placement != kNoIndex;
  const std::string node_before =
      pod.info.node_name.empty() ? pod.assumed_node : pod.info.node_name;
  // Taken before the old ones are released, so that what stays the same keeps its index.
  const ShapeIndex shape = TakeShape(constraints);
  const HolderIndex holder = TakeHolder(info.holder);
  const IdentityIndex identity = TakeIdentity(std::move(who));
  const bool others_changed = identity != pod.identity && was_placed;
  if (was_placed &&
      (info.IsFinished() || !info.node_name.empty() || shape != pod.shape || others_changed))
    Unplace(pod);
  if (constraints.relations.LooksAtPods()) ++looking_at_pods_;
  if (!added) Release(pod);
  PodFacts& own = info;
  pod.info = std::move(own);
  pod.shape = shape;
  pod.holder = holder;
  pod.identity = identity;
  if (!pod.info.node_name.empty() || pod.info.IsFinished()) {
    if (pod.info.node_name != pod.assumed_node) pod.assumed_devices = DeviceSet();
    pod.assumed_node.clear();
  }
  Link(pod);

  const std::string& node = pod.info.node_name.empty() ? pod.assumed_node : pod.info.node_name;
  if (node != node_before) {
    if (const auto on = pods_on_.find(node_before); on != pods_on_.end()) {
      on->second.erase(key);
      if (on->second.empty()) pods_on_.erase(on);
    }
    if (!node.empty()) pods_on_[node].insert(key);
  }
  if (pod.placement == kNoIndex) PlaceBound(pod);
  if (pod.assumed_node.empty()) ForgetVolumes(key);
  NoteClaims(key, pod);
  const bool is_placed = pod.placement != kNoIndex;
  if (is_placed) DescribePlaced(pod);
  const bool opens = looking_at_pods_ > 0 && (was_placed != is_placed || others_changed);
  return {.changed = true, .capacity_grew = (was_placed && !is_placed) || opens};
}

CacheChange ClusterCache::RemovePod(const PodKey& key) {
  const auto at = pods_.find(key);
  if (at == pods_.end()) return {};
  PodRecord& pod = at->second;
  const bool was_placed = pod.placement != kNoIndex;
  Unplace(pod);
  const std::string& node = pod.info.node_name.empty() ? pod.assumed_node : pod.info.node_name;
  if (const auto on = pods_on_.find(node); on != pods_on_.end()) {
    on->second.erase(key);
    if (on->second.empty()) pods_on_.erase(on);
  }
  Release(pod);
  pods_.erase(at);
  claiming_.erase(key);
  ForgetVolumes(key);
  return {.changed = true, .capacity_grew = was_placed};
}

void ClusterCache::Link(const PodRecord& pod) {
  if (!pod.info.group.empty()) groups_[{pod.info.ns, pod.info.group}].pods[pod.info.name] = &pod;
}

void ClusterCache::Unlink(const PodFacts& info) {
  if (info.group.empty()) return;
  const auto group = groups_.find({info.ns, info.group});
  group->second.pods.erase(info.name);
  if (group->second.pods.empty() && group->second.info() == nullptr) groups_.erase(group);
}

CacheChange ClusterCache::UpsertGroup(PodGroupInfo info) {
  Group& group = groups_[{info.ns, info.name}];
  std::optional<PodGroupInfo>& object = group.by_api[static_cast<size_t>(info.api)];
  if (object == info) return {};
  object = std::move(info);
  return {.changed = true, .capacity_grew = false};
}

CacheChange ClusterCache::RemoveGroup(const PodKey& key, GroupApi api) {
  const auto group = groups_.find(key);
  if (group == groups_.end()) return {};
  std::optional<PodGroupInfo>& object = group->second.by_api[static_cast<size_t>(api)];
  if (!object.has_value()) return {};
  object.reset();
  if (group->second.pods.empty() && group->second.info() == nullptr) groups_.erase(group);
  return {.changed = true, .capacity_grew = false};
}

// -- Storage.

void ClusterCache::KeepStorage() { snapshot_.ChangeStorage(); }

template <class Map, class Info>
CacheChange ClusterCache::UpsertStorage(Map Storage::* map, const typename Map::key_type& key,
                                        Info info) {
  if (snapshot_.Storage() != nullptr) {
    const Map& known = snapshot_.Storage()->*map;
    if (const auto at = known.find(key); at != known.end() && *at->second == info) return {};
  }
  (snapshot_.ChangeStorage().*map)[key] = std::make_shared<const Info>(std::move(info));
  return {.changed = true, .capacity_grew = !claiming_.empty()};
}

template <class Map>
CacheChange ClusterCache::RemoveStorage(Map Storage::* map, const typename Map::key_type& key) {
  if (snapshot_.Storage() == nullptr || !(snapshot_.Storage()->*map).contains(key)) return {};
  (snapshot_.ChangeStorage().*map).erase(key);
  return {.changed = true, .capacity_grew = !claiming_.empty()};
}

CacheChange ClusterCache::UpsertClaim(ClaimInfo info) {
  const ClaimKey key = info.key;
  return UpsertStorage(&Storage::claims, key, std::move(info));
}

CacheChange ClusterCache::RemoveClaim(const ClaimKey& key) {
  return RemoveStorage(&Storage::claims, key);
}

CacheChange ClusterCache::UpsertVolume(VolumeInfo info) {
  const std::string name = info.name;
  return UpsertStorage(&Storage::volumes, name, std::move(info));
}

CacheChange ClusterCache::RemoveVolume(const std::string& name) {
  return RemoveStorage(&Storage::volumes, name);
}

CacheChange ClusterCache::UpsertStorageClass(StorageClassInfo info) {
  const std::string name = info.name;
  return UpsertStorage(&Storage::classes, name, std::move(info));
}

CacheChange ClusterCache::RemoveStorageClass(const std::string& name) {
  return RemoveStorage(&Storage::classes, name);
}

void ClusterCache::NoteClaims(const PodKey& key, const PodRecord& pod) {
  if (snapshot_.Shape(pod.shape).constraints.claims.empty()) return;
  if (pod.IsPlaced() || pod.info.IsFinished()) {
    claiming_.erase(key);
  } else {
    claiming_.insert(key);
  }
}

const std::vector<VolumeChoice>& ClusterCache::AssumedVolumes(const PodKey& key) const {
  static const std::vector<VolumeChoice> none;
  const auto found = assumed_volumes_.find(key);
  return found == assumed_volumes_.end() ? none : found->second;
}

// A decision about a claim stands while a pod for which it was made is assumed.
void ClusterCache::ForgetVolumes(const PodKey& key) {
  const auto found = assumed_volumes_.find(key);
  if (found == assumed_volumes_.end()) return;
  const std::vector<VolumeChoice> choices = std::move(found->second);
  assumed_volumes_.erase(found);
  Storage& storage = snapshot_.ChangeStorage();
  for (const VolumeChoice& choice : choices) storage.Undo(choice);
}

// -- Places.

// Places a pod that is bound or assumed and has not finished, if its node is known.
void ClusterCache::PlaceBound(PodRecord& pod) {
  if (!pod.IsPlaced() || pod.info.IsFinished() || pod.placement != kNoIndex) return;
  const NodeIndex node =
      FindNode(pod.info.node_name.empty() ? pod.assumed_node : pod.info.node_name);
  if (node == kNoIndex) return;
  // A server that drops the annotation of a Binding does not make us forget which devices we gave.
  DeviceSet devices = pod.assumed_devices;
  if (!pod.info.assigned_devices.empty())
    devices = DevicesOf(pod.info.assigned_devices, snapshot_.Node(node));
  const DeviceSet free = snapshot_.Grantable(snapshot_.Shape(pod.shape), node, devices);
  if (free != devices) {
    LOG_ERROR("scheduler: saw a device with two owners pod={}/{} node={}", pod.info.ns,
              pod.info.name, snapshot_.Node(node).name);
  }
  PlaceOn(pod, node, free);
}

void ClusterCache::PlaceOn(PodRecord& pod, NodeIndex node, const DeviceSet& devices) {
  pod.placement = snapshot_.Place(pod.shape, node, pod.holder, devices, pod.identity);
  if (pod.placement >= placed_.size()) {
    placed_.resize(pod.placement + 1);
    placed_who_.resize(pod.placement + 1, nullptr);
  }
  placed_[pod.placement] = {};
  placed_[pod.placement].serial = ++last_serial_;
  placed_[pod.placement].priority = pod.info.priority;
  placed_who_[pod.placement] = &pod;
  ++placed_by_priority_[pod.info.priority];
  DescribePlaced(pod);
}

// What may change while the pod is placed.
void ClusterCache::DescribePlaced(const PodRecord& pod) {
  PlacedPod& placed = placed_[pod.placement];
  placed.started = pod.info.started;
  placed.leaving = pod.info.deleting;
}

void ClusterCache::Unplace(PodRecord& pod) {
  if (pod.placement == kNoIndex) return;
  const auto of_priority = placed_by_priority_.find(placed_[pod.placement].priority);
  if (--of_priority->second == 0) placed_by_priority_.erase(of_priority);
  placed_[pod.placement] = {};
  placed_who_[pod.placement] = nullptr;
  snapshot_.Remove(pod.placement);
  pod.placement = kNoIndex;
}

DeviceSet ClusterCache::DevicesOf(const AssignedDevices& assigned, const NodeInfo& node) {
  DeviceSet out;
  for (const auto& [container, resources] : assigned) {
    for (const auto& [resource, ids] : resources) {
      for (size_t position = 0; position < node.devices.size(); ++position) {
        const Device& device = node.devices[position];
        if (device.resource == resource &&
            std::find(ids.begin(), ids.end(), device.id) != ids.end()) {
          out.Add(position);
        }
      }
    }
  }
  return out;
}

bool ClusterCache::Assume(const PodKey& key, std::string_view node_name, const DeviceSet& devices,
                          const std::vector<VolumeChoice>& volumes) {
  const auto at = pods_.find(key);
  const NodeIndex node = FindNode(node_name);
  if (at == pods_.end() || node == kNoIndex) return false;
  PodRecord& pod = at->second;
  if (pod.IsPlaced() || pod.info.IsFinished()) return false;
  const Shape& shape = snapshot_.Shape(pod.shape);
  if (!snapshot_.FitsAmounts(shape, node)) return false;
  if (!snapshot_.ServesDevices(shape, node, devices)) return false;
  if (!volumes.empty()) {
    Storage& storage = snapshot_.ChangeStorage();
    const auto holds = [&](const VolumeChoice& choice) { return storage.Holds(choice); };
    if (!std::all_of(volumes.begin(), volumes.end(), holds)) return false;
    for (const VolumeChoice& choice : volumes) storage.Decide(choice);
    assumed_volumes_[key] = volumes;
  }
  pod.assumed_node = node_name;
  pod.assumed_devices = devices;
  pods_on_[pod.assumed_node].insert(key);
  PlaceOn(pod, node, devices);
  NoteClaims(key, pod);
  return true;
}

void ClusterCache::Forget(const PodKey& key) {
  const auto at = pods_.find(key);
  if (at == pods_.end() || at->second.assumed_node.empty()) return;
  PodRecord& pod = at->second;
  Unplace(pod);
  if (const auto on = pods_on_.find(pod.assumed_node); on != pods_on_.end()) {
    on->second.erase(key);
    if (on->second.empty()) pods_on_.erase(on);
  }
  pod.assumed_node.clear();
  pod.assumed_devices = DeviceSet();
  ForgetVolumes(key);
  NoteClaims(key, pod);
}

const PodRecord* ClusterCache::FindPod(const PodKey& key) const {
  const auto found = pods_.find(key);
  return found == pods_.end() ? nullptr : &found->second;
}

const PodRecord* ClusterCache::FindPlaced(PlacementIndex placement, uint64_t serial) const {
  return placement < placed_.size() && placed_[placement].serial == serial ? placed_who_[placement]
                                                                           : nullptr;
}

int64_t ClusterCache::LowestPlacedPriority() const {
  return placed_by_priority_.empty() ? INT64_MAX : placed_by_priority_.begin()->first;
}

const Group* ClusterCache::FindGroup(const PodKey& key) const {
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : &found->second;
}

NodeIndex ClusterCache::FindNode(std::string_view name) const {
  const auto found = node_index_.find(std::string(name));
  return found == node_index_.end() ? kNoIndex : found->second;
}

}  // namespace muster::cluster
