#include "agent/pod_workers/device_allocator.h"

#include <algorithm>

#include "agent/pod_workers/pod_inputs.h"
#include "base/strings.h"
#include "cluster/quantity.h"

namespace muster::agent {

Status DeviceAllocator::Take(const std::string& resource, const std::string& id,
                             const std::string& uid) {
  const bool known =
      std::any_of(devices_.begin(), devices_.end(), [&](const cluster::Device& device) {
        return device.resource == resource && device.id == id;
      });
  if (!known) return Error(Reason::kConflict, "device {} {} is not on this node", resource, id);
  const auto [owner, is_new] = owners_.emplace(std::pair(resource, id), uid);
  if (is_new || owner->second == uid) return Status::Ok();
  return Error(Reason::kConflict, "device {} {} belongs to another pod (uid {})", resource, id,
               owner->second);
}

Result<cluster::AssignedDevices> DeviceAllocator::Assign(const json::Value& pod) {
  const std::string uid = pod["metadata"]["uid"].Str();
  cluster::AssignedDevices assigned = cluster::PodAssignedDevices(pod);
  for (const auto& [container, resources] : assigned) {
    for (const auto& [resource, ids] : resources) {
      for (const std::string& id : ids) RETURN_IF_ERROR(Take(resource, id, uid));
    }
  }
  if (!assigned.empty()) return assigned;

  std::set<std::string> resources;
  for (const cluster::Device& device : devices_) resources.insert(device.resource);
  for (const json::Value& container : AllContainers(pod)) {
    for (const std::string& resource : resources) {
      const auto wanted = cluster::Quantity::FromJson(container["resources"]["limits"][resource]);
      const int64_t count = wanted ? wanted->Units() : 0;
      std::vector<std::string>& ids = assigned[container["name"].Str()][resource];
      for (const cluster::Device& device : devices_) {
        if (static_cast<int64_t>(ids.size()) >= count) break;
        if (device.resource != resource || owners_.contains({resource, device.id})) continue;
        owners_[{resource, device.id}] = uid;
        ids.push_back(device.id);
      }
      if (static_cast<int64_t>(ids.size()) < count) {
        Release(uid);
        return Error(Reason::kConflict,
                     "container {} asks for {} {}, but only {} are free on this node",
                     container["name"].AsString(), count, resource, ids.size());
      }
    }
  }
  return assigned;
}

void DeviceAllocator::Release(const std::string& pod_uid) {
  std::erase_if(owners_, [&](const auto& entry) { return entry.second == pod_uid; });
}

std::string VisibleDevices(const cluster::AssignedDevices& assigned, const std::string& container) {
  std::vector<std::string> ids;
  if (const auto found = assigned.find(container); found != assigned.end()) {
    for (const auto& [resource, list] : found->second)
      ids.insert(ids.end(), list.begin(), list.end());
  }
  return ids.empty() ? "void" : Join(ids, ",");
}

}  // namespace muster::agent
