#include "agent/pod_workers/device_allocator.h"

#include <algorithm>

#include "agent/pod_workers/pod_inputs.h"
#include "cluster/device_picker.h"
#include "cluster/quantity.h"
#include "cluster/resources.h"

namespace muster::agent {
namespace {

int64_t Wanted(const json::Value& container, const std::string& resource) {
  const auto wanted = cluster::Quantity::FromJson(container["resources"]["limits"][resource]);
  return wanted ? wanted->Units() : 0;
}

// A plain init container ends before the others start, and borrows their devices.
bool Borrows(const json::Value& pod, const std::string& name) {
  for (const json::Value& container : pod["spec"]["initContainers"].items()) {
    if (container["name"].AsString() == name)
      return container["restartPolicy"].AsString() != "Always";
  }
  return false;
}

std::vector<std::string> IdsOf(const cluster::AssignedDevices& assigned,
                               const std::string& container, const std::string& resource) {
  const auto lists = assigned.find(container);
  if (lists == assigned.end()) return {};
  const auto ids = lists->second.find(resource);
  return ids == lists->second.end() ? std::vector<std::string>() : ids->second;
}

Status Unexpected(const std::string& why) {
  return Error(Reason::kConflict, "Allocate failed due to {}, which is unexpected", why);
}

}  // namespace

void DeviceAllocator::SetDevices(std::vector<cluster::Device> devices,
                                 std::vector<std::string> control_files) {
  known_ = true;
  devices_ = std::move(devices);
  control_files_ = std::move(control_files);
}

const cluster::Device* DeviceAllocator::Find(const std::string& resource,
                                             const std::string& id) const {
  const auto found =
      std::find_if(devices_.begin(), devices_.end(), [&](const cluster::Device& device) {
        return device.resource == resource && device.id == id;
      });
  return found == devices_.end() ? nullptr : &*found;
}

bool DeviceAllocator::Wants(const json::Value& pod) const {
  if (!cluster::PodAssignedDevices(pod).empty()) return true;
  return cluster::AmountOf(cluster::PodRequests(pod), cluster::resource::kNvidiaGpu) > 0;
}

void DeviceAllocator::Adopt(const std::string& pod_uid, cluster::AssignedDevices assigned) {
  for (const auto& [container, resources] : assigned) {
    for (const auto& [resource, ids] : resources) {
      for (const std::string& id : ids) owners_.emplace(std::pair(resource, id), pod_uid);
    }
  }
  assigned_[pod_uid] = std::move(assigned);
}

Status DeviceAllocator::CheckDevice(const std::string& resource, const std::string& id,
                                    const std::string& uid) const {
  const cluster::Device* device = Find(resource, id);
  if (device == nullptr)
    return Unexpected(fmt::format("device {} {} is not on this node", resource, id));
  const std::string owner = OwnerOf(resource, id);
  if (!owner.empty() && owner != uid) {
    if (ends_(owner)) {
      return Error(Reason::kServiceUnavailable, "device {} {} belongs to a pod that ends (uid {})",
                   resource, id, owner);
    }
    return Unexpected(
        fmt::format("device {} {} belongs to another pod (uid {})", resource, id, owner));
  }
  if (!device->unhealthy.empty()) {
    return Unexpected(
        fmt::format("previously allocated devices are no longer healthy; cannot allocate "
                    "unhealthy devices {} {} ({})",
                    resource, id, device->unhealthy));
  }
  return Status::Ok();
}

// What is assigned is what the containers ask for, no more and no less.
Status DeviceAllocator::Check(const json::Value& pod,
                              const cluster::AssignedDevices& assigned) const {
  const std::string uid = pod["metadata"]["uid"].Str();
  std::set<std::string> resources;
  for (const cluster::Device& device : devices_) resources.insert(device.resource);
  std::set<std::string> names;
  for (const auto& [name, lists] : assigned) {
    names.insert(name);
    for (const auto& [resource, ids] : lists) resources.insert(resource);
  }
  std::set<std::pair<std::string, std::string>> given;
  for (const json::Value& container : AllContainers(pod)) {
    const std::string name = container["name"].Str();
    names.erase(name);
    for (const std::string& resource : resources) {
      const std::vector<std::string> ids = IdsOf(assigned, name, resource);
      const int64_t wanted = Wanted(container, resource);
      if (static_cast<int64_t>(ids.size()) != wanted) {
        return Unexpected(fmt::format("container {} asks for {} {}, and {} are assigned to it",
                                      name, wanted, resource, ids.size()));
      }
      for (const std::string& id : ids) {
        RETURN_IF_ERROR(CheckDevice(resource, id, uid));
        if (!Borrows(pod, name) && !given.emplace(resource, id).second)
          return Unexpected(fmt::format("device {} {} is assigned twice", resource, id));
      }
    }
  }
  if (names.empty()) return Status::Ok();
  return Unexpected(
      fmt::format("devices assigned to {}, which is no container of the pod", *names.begin()));
}

// As the scheduler does it, for a pod that came without its choice.
Result<cluster::AssignedDevices> DeviceAllocator::Choose(const json::Value& pod) const {
  std::map<std::string, std::vector<std::string>> chosen;
  std::set<std::string> resources;
  for (const cluster::Device& device : devices_) resources.insert(device.resource);
  for (const std::string& resource : resources) {
    cluster::DeviceSet free;
    int64_t soon = 0;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].resource != resource || !devices_[i].unhealthy.empty()) continue;
      const std::string owner = OwnerOf(resource, devices_[i].id);
      if (owner.empty()) free.Add(i);
      soon += owner.empty() || ends_(owner) ? 1 : 0;
    }
    const int64_t wanted = cluster::AmountOf(cluster::PodRequests(pod), resource);
    if (free.Count() < wanted && soon >= wanted) {
      return Error(Reason::kServiceUnavailable, "{} of {} {} belong to pods that end",
                   wanted - free.Count(), wanted, resource);
    }
    if (free.Count() < wanted) {
      return Error(Unexpected(fmt::format(
          "requested number of devices unavailable for {}. Requested: {}, Available: {}", resource,
          wanted, free.Count())));
    }
    const cluster::DeviceSet picked = cluster::DeviceLinks(devices_).Pick(free, wanted);
    for (const size_t position : picked.Positions())
      chosen[resource].push_back(devices_[position].id);
  }
  return cluster::ShareOutDevices(pod, chosen);
}

Result<cluster::AssignedDevices> DeviceAllocator::Assign(const json::Value& pod, bool runs) {
  const std::string uid = pod["metadata"]["uid"].Str();
  const auto known = assigned_.find(uid);
  if (known != assigned_.end() && runs) return known->second;
  cluster::AssignedDevices assigned =
      known != assigned_.end() ? known->second : cluster::PodAssignedDevices(pod);
  if (!runs) {
    if (assigned.empty()) {
      ASSIGN_OR_RETURN(assigned, Choose(pod));
    } else {
      RETURN_IF_ERROR(Check(pod, assigned));
    }
  }
  Adopt(uid, assigned);
  return assigned;
}

void DeviceAllocator::Release(const std::string& pod_uid) {
  assigned_.erase(pod_uid);
  std::erase_if(owners_, [&](const auto& entry) { return entry.second == pod_uid; });
}

std::string DeviceAllocator::OwnerOf(const std::string& resource, const std::string& id) const {
  const auto found = owners_.find({resource, id});
  return found == owners_.end() ? std::string() : found->second;
}

std::string DeviceAllocator::ContainerOf(const std::string& pod_uid, const std::string& resource,
                                         const std::string& id) const {
  const auto found = assigned_.find(pod_uid);
  if (found == assigned_.end()) return "";
  for (const auto& [container, lists] : found->second) {
    const std::vector<std::string> ids = IdsOf(found->second, container, resource);
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) return container;
  }
  return "";
}

std::vector<std::string> DeviceAllocator::FilesOf(const cluster::AssignedDevices& assigned,
                                                  const std::string& container,
                                                  const cluster::DeviceLists& peers) const {
  std::vector<std::string> files;
  const auto add = [&](const cluster::DeviceLists& lists) {
    for (const auto& [resource, ids] : lists) {
      for (const std::string& id : ids) {
        const cluster::Device* device = Find(resource, id);
        if (device == nullptr || device->minor < 0) continue;
        const std::string file = fmt::format("/dev/nvidia{}", device->minor);
        if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
      }
    }
  };
  const auto own = assigned.find(container);
  if (own != assigned.end()) add(own->second);
  if (files.empty()) return files;
  add(peers);
  files.insert(files.end(), control_files_.begin(), control_files_.end());
  return files;
}

std::vector<std::string> DevicesOf(const cluster::AssignedDevices& assigned,
                                   const std::string& container) {
  std::vector<std::string> ids;
  if (const auto found = assigned.find(container); found != assigned.end()) {
    for (const auto& [resource, list] : found->second)
      ids.insert(ids.end(), list.begin(), list.end());
  }
  return ids;
}

}  // namespace muster::agent
