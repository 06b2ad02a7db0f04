// The part of PodWorker that asks device plugins what a container gets with its devices.

#include <algorithm>

#include "agent/pod_workers/pod_inputs.h"
#include "agent/pod_workers/pod_worker.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// What this node's runtime cannot do must not be left out in silence.
Status CheckAllocation(const PluginAllocation& allocation) {
  std::vector<std::string> cdi = allocation.cdi_devices;
  for (const auto& [name, value] : allocation.annotations) {
    if (name.starts_with("cdi.k8s.io/")) cdi.push_back(value);
  }
  if (!cdi.empty()) {
    return Error(Reason::kInvalid,
                 "the plugin names CDI devices ({}), which this node does not inject; let it give "
                 "device nodes, mounts and variables (NVIDIA's: deviceListStrategy envvar)",
                 Join(cdi, ", "));
  }
  for (const PluginAllocation::DeviceNode& device : allocation.devices) {
    if (device.permissions.contains('r') && device.permissions.contains('w')) continue;
    return Error(Reason::kInvalid,
                 "the plugin gives {} with the permissions {:?}, and this node cannot restrict a "
                 "device to less than rw",
                 device.host_path, device.permissions);
  }
  return Status::Ok();
}

// What comes first stays, as with the kubelet.
void Merge(PluginAllocation more, PluginAllocation& into) {
  into.environment.merge(more.environment);
  into.mounts.insert(into.mounts.end(), more.mounts.begin(), more.mounts.end());
  into.devices.insert(into.devices.end(), more.devices.begin(), more.devices.end());
}

Status AllocateFailed(const Status& why) {
  return Error(why.reason(), "Allocate failed due to {}, which is unexpected", why.message());
}

}  // namespace

bool PodWorker::HasPluginDevices(const std::string& container) const {
  const auto lists = assigned_.find(container);
  return lists != assigned_.end() && std::ranges::any_of(lists->second, [](const auto& list) {
           return DevicePlugins::IsOfPlugin(list.first) && !list.second.empty();
         });
}

// All of the pod's containers at once, before any is made: then the pod fails if one says no.
bool PodWorker::AllocatedByPlugins() {
  for (const json::Value& each : AllContainers(pod_)) {
    const std::string name = each["name"].Str();
    if (!HasPluginDevices(name) || plugin_allocations_.contains(name)) continue;
    busy_ = true;
    AskPlugins(name, [this](const Status& status) {
      busy_ = false;
      if (!status.ok() && !ShouldStop()) Reject("UnexpectedAdmissionError", status.message());
      Sync();
    });
    return false;
  }
  return true;
}

struct PodWorker::PluginAsking {
  std::string container;
  std::vector<std::pair<std::string, std::vector<std::string>>> left;  // resources, with devices
  PluginAllocation given;
  Function<void(Status)> done;
};

void PodWorker::AskPlugins(const std::string& container, Function<void(Status)> done) {
  auto asking = std::make_shared<PluginAsking>();
  asking->container = container;
  asking->done = std::move(done);
  for (const auto& [resource, ids] : assigned_[container]) {
    if (DevicePlugins::IsOfPlugin(resource) && !ids.empty())
      asking->left.emplace_back(resource, ids);
  }
  AskNextPlugin(asking);
}

// One resource after another; what they gave is kept once all have.
void PodWorker::AskNextPlugin(const std::shared_ptr<PluginAsking>& asking) {
  if (asking->left.empty()) {
    plugin_allocations_[asking->container] = std::move(asking->given);
    return asking->done(Status::Ok());
  }
  if (context_.plugins == nullptr) return;  // the agent stops
  const auto [resource, ids] = std::move(asking->left.back());
  asking->left.pop_back();
  context_.plugins->Allocate(
      resource, ids, lifetime_.Guard([this, asking](Result<PluginAllocation> given) {
        const Status status = given ? CheckAllocation(*given) : given.error();
        if (!status.ok()) return asking->done(AllocateFailed(status));
        Merge(std::move(*given), asking->given);
        AskNextPlugin(asking);
      }));
}

// After a restart of the agent, and where the plugin wants to know of each start.
bool PodWorker::PluginsReady(size_t index) {
  const std::string name = state_.containers[index].name;
  if (!HasPluginDevices(name)) return true;
  if (!plugin_allocations_.contains(name)) {
    busy_ = true;
    AskPlugins(name, [this, index](const Status& status) {
      busy_ = false;
      if (!status.ok()) {
        WaitWith(index, "CreateContainerError", status.message());
        ScheduleSync(kFirstRetryDelay);
        return;
      }
      Sync();
    });
    return false;
  }
  if (pre_started_.contains(name)) return true;
  std::vector<std::string> resources;
  for (const auto& [resource, ids] : assigned_[name]) {
    if (DevicePlugins::IsOfPlugin(resource) && context_.plugins != nullptr &&
        context_.plugins->WantsPreStart(resource))
      resources.push_back(resource);
  }
  if (resources.empty()) return true;
  busy_ = true;
  AskBeforeStart(index, std::move(resources));
  return false;
}

void PodWorker::AskBeforeStart(size_t index, std::vector<std::string> resources) {
  const std::string name = state_.containers[index].name;
  if (context_.plugins == nullptr) return;  // the agent stops
  if (resources.empty()) {
    busy_ = false;
    pre_started_.insert(name);
    return Sync();
  }
  const std::string resource = std::move(resources.back());
  resources.pop_back();
  context_.plugins->PreStart(
      resource, assigned_[name][resource],
      lifetime_.Guard([this, index, left = std::move(resources)](const Status& status) mutable {
        if (status.ok()) return AskBeforeStart(index, std::move(left));
        busy_ = false;
        WaitWith(index, "PreStartContainerError", status.message());
        ScheduleSync(kFirstRetryDelay);
      }));
}

}  // namespace muster::agent
