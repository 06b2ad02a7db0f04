// The part of PodWorker that tells how the pod's devices do.

#include <algorithm>

#include "agent/pod_workers/pod_worker.h"

namespace muster::agent {
namespace {

constexpr std::string_view kUnhealthy = "Unhealthy";

AllocatedDevice Judge(const DeviceAllocator& devices, const std::string& resource,
                      const std::string& id) {
  AllocatedDevice out{resource, id, "Unknown", ""};
  if (!devices.known()) return out;
  const auto found = std::ranges::find_if(devices.devices(), [&](const cluster::Device& device) {
    return device.resource == resource && device.id == id;
  });
  if (found == devices.devices().end()) {
    out.message = "the node does not know it";
    return out;
  }
  out.message = found->unhealthy;
  if (!found->health_unknown) out.health = found->unhealthy.empty() ? "Healthy" : kUnhealthy;
  return out;
}

}  // namespace

std::vector<AllocatedDevice> PodWorker::DevicesNow(const std::string& container) const {
  std::vector<AllocatedDevice> out;
  const auto lists = assigned_.find(container);
  if (lists == assigned_.end()) return out;
  for (const auto& [resource, ids] : lists->second) {
    for (const std::string& id : ids) out.push_back(Judge(context_.devices, resource, id));
  }
  return out;
}

bool PodWorker::LookAtDevices() {
  bool changed = false;
  for (ContainerRuntimeState& container : state_.containers) {
    std::vector<AllocatedDevice> now = DevicesNow(container.name);
    if (now == container.devices) continue;
    changed = true;
    for (const AllocatedDevice& device : now) {
      const auto before = std::ranges::find(container.devices, device.id, &AllocatedDevice::id);
      const bool known = before != container.devices.end() && before->health == kUnhealthy;
      if (device.health != kUnhealthy || known) continue;
      Event(client::EventType::kWarning, "DeviceUnhealthy",
            fmt::format("{} {} of container {}: {}", device.resource, device.id, container.name,
                        device.message));
    }
    container.devices = std::move(now);
  }
  return changed;
}

void PodWorker::DevicesChanged() {
  if (LookAtDevices() && !removed_) MarkStatus();
}

}  // namespace muster::agent
