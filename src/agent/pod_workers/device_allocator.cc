#include "agent/pod_workers/device_allocator.h"

#include <algorithm>

#include "agent/pod_workers/pod_inputs.h"
#include "cluster/device_picker.h"
#include "cluster/device_shares.h"
#include "cluster/packing/gpu_state.h"
#include "cluster/quantity.h"
#include "cluster/resources.h"
#include "gpu/time_slicing.h"

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

bool IsShare(const cluster::Device& device) { return cluster::GpuOf(device.id) != device.id; }

Status Unexpected(const std::string& why) {
  return Error(Reason::kConflict, "Allocate failed due to {}, which is unexpected", why);
}

// `names`: those that devices are assigned to, the pod's containers taken away.
Status CheckNoneLeft(const std::set<std::string>& names) {
  if (names.empty()) return Status::Ok();
  return Unexpected(
      fmt::format("devices assigned to {}, which is no container of the pod", *names.begin()));
}

}  // namespace

void DeviceAllocator::SetDevices(std::vector<cluster::Device> devices,
                                 std::vector<std::string> control_files, bool one_each) {
  known_ = true;
  one_each_ = one_each;
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

int64_t DeviceAllocator::ShareOf(const json::Value& pod) {
  return cluster::AmountOf(cluster::PodRequests(pod), cluster::resource::kGpuMilli);
}

bool DeviceAllocator::Wants(const json::Value& pod) const {
  if (!cluster::PodAssignedDevices(pod).empty() || ShareOf(pod) > 0) return true;
  const cluster::ResourceList requests = cluster::PodRequests(pod);
  return cluster::AmountOf(requests, cluster::resource::kNvidiaGpu) > 0 ||
         cluster::AmountOf(requests, gpu::kSharedGpuResource) > 0;
}

void DeviceAllocator::Adopt(const std::string& pod_uid, cluster::AssignedDevices assigned,
                            int64_t gpu_milli) {
  for (const auto& [container, resources] : assigned) {
    for (const auto& [resource, ids] : resources) {
      for (const std::string& id : ids)
        owners_[{resource, id}][pod_uid] = gpu_milli > 0 ? gpu_milli : cluster::kWholeGpu;
    }
  }
  assigned_[pod_uid] = std::move(assigned);
}

DeviceAllocator::Taken DeviceAllocator::TakenOf(const std::string& resource, const std::string& id,
                                                const std::string& uid) const {
  Taken taken;
  const auto owners = owners_.find({resource, id});
  if (owners == owners_.end()) return taken;
  for (const auto& [owner, milli] : owners->second) {
    if (owner == uid) continue;
    taken.milli += milli;
    if (ends_(owner)) {
      taken.ending += milli;
      taken.by_ending = owner;
    } else {
      taken.by = owner;
    }
  }
  return taken;
}

Status DeviceAllocator::CheckDevice(const std::string& resource, const std::string& id,
                                    const std::string& uid, int64_t milli) const {
  const cluster::Device* device = Find(resource, id);
  if (device == nullptr)
    return Unexpected(fmt::format("device {} {} is not on this node", resource, id));
  const Taken taken = TakenOf(resource, id, uid);
  if (taken.milli + milli > cluster::kWholeGpu) {
    if (taken.milli - taken.ending + milli <= cluster::kWholeGpu) {
      return Error(Reason::kServiceUnavailable, "device {} {} belongs to a pod that ends (uid {})",
                   resource, id, taken.by_ending);
    }
    if (milli < cluster::kWholeGpu) {
      return Unexpected(fmt::format(
          "{} thousandths of device {} {} belong to other pods (one has uid {}), and {} are asked "
          "for",
          taken.milli, resource, id, taken.by, milli));
    }
    return Unexpected(
        fmt::format("device {} {} belongs to another pod (uid {})", resource, id, taken.by));
  }
  if (device->unhealthy.empty()) return Status::Ok();
  return Unexpected(
      fmt::format("previously allocated devices are no longer healthy; cannot allocate "
                  "unhealthy devices {} {} ({})",
                  resource, id, device->unhealthy));
}

// One GPU, the same for each container that asks for a share of it.
Status DeviceAllocator::CheckShare(const json::Value& pod,
                                   const cluster::AssignedDevices& assigned) const {
  const std::string gpu(cluster::resource::kNvidiaGpu);
  std::set<std::string> names;
  for (const auto& [name, lists] : assigned) names.insert(name);
  std::set<std::string> gpus;
  for (const json::Value& container : AllContainers(pod)) {
    const std::string name = container["name"].Str();
    names.erase(name);
    const std::vector<std::string> ids = DevicesOf(assigned, name);
    const int64_t wanted = Wanted(container, std::string(cluster::resource::kGpuMilli));
    if (ids.size() != (wanted > 0 ? 1U : 0U) || IdsOf(assigned, name, gpu) != ids) {
      return Unexpected(
          fmt::format("container {} asks for {} thousandths of a GPU, and {} devices are assigned "
                      "to it",
                      name, wanted, ids.size()));
    }
    gpus.insert(ids.begin(), ids.end());
  }
  RETURN_IF_ERROR(CheckNoneLeft(names));
  if (gpus.size() != 1)
    return Unexpected(fmt::format("a share of {} GPUs is assigned to one pod", gpus.size()));
  return CheckDevice(gpu, *gpus.begin(), pod["metadata"]["uid"].Str(), ShareOf(pod));
}

// What is assigned is what the containers ask for, no more and no less.
Status DeviceAllocator::Check(const json::Value& pod,
                              const cluster::AssignedDevices& assigned) const {
  if (ShareOf(pod) > 0) return CheckShare(pod, assigned);
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
        RETURN_IF_ERROR(CheckDevice(resource, id, uid, cluster::kWholeGpu));
        if (!Borrows(pod, name) && !given.emplace(resource, id).second)
          return Unexpected(fmt::format("device {} {} is assigned twice", resource, id));
      }
    }
  }
  return CheckNoneLeft(names);
}

// The GPU with the least left that suffices, as the scheduler chooses.
Result<std::string> DeviceAllocator::ChooseShare(const json::Value& pod, int64_t milli) const {
  const std::string uid = pod["metadata"]["uid"].Str();
  const cluster::Device* best = nullptr;
  int64_t least_left = 0;
  bool soon = false;
  for (const cluster::Device& device : devices_) {
    if (device.resource != cluster::resource::kNvidiaGpu || !device.unhealthy.empty()) continue;
    if (IsShare(device)) continue;
    const Taken taken = TakenOf(device.resource, device.id, uid);
    const int64_t left = cluster::kWholeGpu - taken.milli;
    soon |= left + taken.ending >= milli;
    if (left < milli || (best != nullptr && left >= least_left)) continue;
    best = &device;
    least_left = left;
  }
  if (best != nullptr) return best->id;
  if (soon) {
    return Error(Reason::kServiceUnavailable, "{} thousandths of a GPU belong to pods that end",
                 milli);
  }
  return Error(Unexpected(
      fmt::format("no GPU of this node has {} of its thousandths left for the pod", milli)));
}

// As the scheduler does it, for a pod that came without its choice.
Result<cluster::AssignedDevices> DeviceAllocator::Choose(const json::Value& pod) const {
  std::map<std::string, std::vector<std::string>> chosen;
  if (const int64_t milli = ShareOf(pod); milli > 0) {
    ASSIGN_OR_RETURN(const std::string gpu, ChooseShare(pod, milli));
    chosen[std::string(cluster::resource::kNvidiaGpu)] = {gpu};
    return cluster::ShareOutDevices(pod, chosen);
  }
  std::set<std::string> resources;
  for (const cluster::Device& device : devices_) resources.insert(device.resource);
  for (const std::string& resource : resources) {
    cluster::DeviceSet free;
    int64_t soon = 0;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].resource != resource || !devices_[i].unhealthy.empty()) continue;
      const Taken taken = TakenOf(resource, devices_[i].id, "");
      if (taken.milli == 0) free.Add(i);
      soon += taken.milli == taken.ending ? 1 : 0;
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

// Some of them belong to a pod that came without the scheduler's choice.
bool DeviceAllocator::WereChosenHere(const cluster::AssignedDevices& assigned) const {
  for (const auto& [container, lists] : assigned) {
    for (const auto& [resource, ids] : lists) {
      for (const std::string& id : ids) {
        const std::vector<std::string> owners = OwnersOf(resource, id);
        if (std::ranges::any_of(owners,
                                [&](const auto& uid) { return chosen_here_.contains(uid); }))
          return true;
      }
    }
  }
  return false;
}

// The scheduler chose what a GPU was offered as before it was cut for sharing, or made whole.
bool DeviceAllocator::AreOfferedAnew(const cluster::AssignedDevices& assigned) const {
  for (const auto& [container, lists] : assigned) {
    for (const auto& [resource, ids] : lists) {
      for (const std::string& id : ids) {
        if (Find(resource, id) != nullptr) continue;
        if (std::ranges::any_of(devices_, [&](const cluster::Device& device) {
              return device.resource == resource && cluster::GpuOf(device.id) == cluster::GpuOf(id);
            }))
          return true;
      }
    }
  }
  return false;
}

// NVIDIA's own words.
Status DeviceAllocator::CheckOneEach(const json::Value& pod) const {
  for (const cluster::Device& device : devices_) {
    if (!one_each_ || !IsShare(device)) continue;
    for (const json::Value& container : AllContainers(pod)) {
      if (const int64_t wanted = Wanted(container, device.resource); wanted > 1) {
        return Unexpected(fmt::format(
            "invalid request: maximum request size for shared resources is 1; found {}", wanted));
      }
    }
  }
  return Status::Ok();
}

Result<cluster::AssignedDevices> DeviceAllocator::Assign(const json::Value& pod, bool runs) {
  const std::string uid = pod["metadata"]["uid"].Str();
  const auto known = assigned_.find(uid);
  if (known != assigned_.end() && runs) return known->second;
  cluster::AssignedDevices assigned =
      known != assigned_.end() ? known->second : cluster::PodAssignedDevices(pod);
  if (!runs) {
    RETURN_IF_ERROR(CheckOneEach(pod));
    if (assigned.empty()) {
      ASSIGN_OR_RETURN(assigned, Choose(pod));
      if (!assigned.empty()) chosen_here_.insert(uid);
    } else if (const Status fits = Check(pod, assigned); !fits.ok()) {
      // The devices of a gang that shares a sandbox are known to all of it.
      const bool anew = AreOfferedAnew(assigned);
      const bool again = fits.reason() == Reason::kConflict && known == assigned_.end() &&
                         (anew || WereChosenHere(assigned)) && cluster::PodGangDevices(pod).empty();
      Result<cluster::AssignedDevices> others = again ? Choose(pod) : Error(fits);
      if (!others && others.error().reason() != Reason::kServiceUnavailable) return Error(fits);
      if (others && anew) chosen_here_.insert(uid);
      ASSIGN_OR_RETURN(assigned, std::move(others));
    }
  }
  Adopt(uid, assigned, ShareOf(pod));
  return assigned;
}

void DeviceAllocator::Release(const std::string& pod_uid) {
  assigned_.erase(pod_uid);
  chosen_here_.erase(pod_uid);
  for (auto at = owners_.begin(); at != owners_.end();) {
    at->second.erase(pod_uid);
    at = at->second.empty() ? owners_.erase(at) : std::next(at);
  }
  released_();
}

std::string DeviceAllocator::OwnerOf(const std::string& resource, const std::string& id) const {
  const std::vector<std::string> owners = OwnersOf(resource, id);
  return owners.size() == 1 ? owners.front() : std::string();
}

std::vector<std::string> DeviceAllocator::OwnersOf(const std::string& resource,
                                                   const std::string& id) const {
  std::vector<std::string> owners;
  if (const auto found = owners_.find({resource, id}); found != owners_.end()) {
    for (const auto& [uid, milli] : found->second) owners.push_back(uid);
  }
  return owners;
}

std::vector<DeviceAllocator::GpuUse> DeviceAllocator::UsesOf(const std::string& gpu) const {
  std::vector<GpuUse> uses;
  for (const auto& [device, owners] : owners_) {
    const auto& [resource, id] = device;
    if (cluster::GpuOf(id) == gpu) uses.push_back({resource, id, OwnersOf(resource, id)});
  }
  return uses;
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
