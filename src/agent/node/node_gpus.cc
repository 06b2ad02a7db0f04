#include "agent/node/node_gpus.h"

#include "base/log.h"
#include "gpu/labels.h"

namespace muster::agent {
namespace {

cluster::Device ToDevice(const gpu::GpuHealth::Known& known) {
  cluster::Device device;
  device.resource = gpu::kGpuResource;
  device.id = known.gpu.uuid;
  device.index = known.gpu.index;
  device.model = known.gpu.model;
  device.minor = known.gpu.minor;
  device.memory_bytes = known.gpu.memory_bytes;
  device.pci_bus_id = known.gpu.pci_bus_id;
  device.numa_node = known.gpu.numa_node;
  device.links = known.gpu.links;
  if (!known.healthy) device.unhealthy = known.why;
  device.health_unknown = known.unknown;
  return device;
}

}  // namespace

json::Value NodeReference(const std::string& name) {
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "Node"},
                    {"metadata", json::Obj({{"name", name}, {"uid", name}})}});
}

NodeGpus::NodeGpus(AsioLoop& loop, client::InformerSet& informers, client::EventRecorder& events,
                   const DeviceAllocator& allocator, std::string node_name, Duration steady,
                   std::function<void()> on_change)
    : events_(events),
      node_(NodeReference(node_name)),
      on_change_(std::move(on_change)),
      slices_(allocator),
      time_slicing_(informers, events, node_,
                    [this](const gpu::TimeSlicing& slicing) { return TakeTimeSlicing(slicing); }),
      prober_(loop, gpu::ExecuteProbe, {}),
      monitor_(loop, prober_, steady, [this] {
        Tell();
        on_change_();
        if (!monitor_.health().gpus().empty()) time_slicing_.Watch();
      }) {}

void NodeGpus::Tell() {
  for (const gpu::GpuHealth::Known& known : monitor_.health().gpus()) {
    for (const int64_t xid : known.gpu.xids)
      LOG_WARN("gpu: {}: {}", gpu::Describe(known.gpu), gpu::DescribeXid(xid));
    const auto [entry, is_new] = was_healthy_.emplace(known.gpu.uuid, true);
    if (is_new) LOG_INFO("gpu: found {} minor={}", gpu::Describe(known.gpu), known.gpu.minor);
    if (entry->second == known.healthy) continue;
    entry->second = known.healthy;
    const std::string name = gpu::Describe(known.gpu);
    if (known.healthy) {
      events_.Record(node_, client::EventType::kNormal, "GPUHealthy",
                     fmt::format("{} is steady again and is offered to pods", name));
    } else {
      events_.Record(node_, client::EventType::kWarning, "GPUUnhealthy",
                     fmt::format("{} is not offered to pods any more: {}", name, known.why));
    }
  }
}

Status NodeGpus::TakeTimeSlicing(const gpu::TimeSlicing& slicing) {
  if (slicing == slices_.wish()) return Status::Ok();
  const size_t gpus = monitor_.health().gpus().size();
  if (gpus * static_cast<size_t>(slicing.replicas) > cluster::kMaxDevicesPerNode) {
    return Error(Reason::kInvalid, "replicas: {} of {} GPUs are more than the {} devices of a node",
                 slicing.replicas, gpus, cluster::kMaxDevicesPerNode);
  }
  slices_.Wish(slicing);
  on_change_();
  std::string message =
      slicing.replicas == 1
          ? "each GPU is offered whole"
          : fmt::format("each GPU is offered as {} {}", slicing.replicas,
                        slicing.renamed ? gpu::kSharedGpuResource : gpu::kGpuResource);
  if (waits())
    message += fmt::format("; {} of {} only when no pod has any of it", slices_.waiting(), gpus);
  events_.Record(node_, client::EventType::kNormal, "TimeSlicing", message);
  return Status::Ok();
}

void NodeGpus::Fill(NodeFacts& facts) {
  const gpu::GpuHealth& health = monitor_.health();
  std::vector<gpu::Gpu> gpus;
  std::vector<cluster::Device> devices;
  for (const gpu::GpuHealth::Known& known : health.gpus()) {
    gpus.push_back(known.gpu);
    devices.push_back(ToDevice(known));
  }
  facts.devices = slices_.Cut(devices);
  facts.gpu_labels = gpu::NodeLabels(health.inventory(), gpus, facts.machine, slices_.wish());
  facts.gpu_fault_reason = monitor_.absent() ? "" : std::string(health.fault_reason());
  facts.gpu_fault_message = monitor_.absent() ? "" : health.fault_message();
}

}  // namespace muster::agent
