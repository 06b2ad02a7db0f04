#include "gpu/inventory.h"

namespace muster::gpu {
namespace {

json::Value ToJson(const GpuPace& pace) {
  return json::Obj({{"clock", pace.sm_clock_mhz},
                    {"maxClock", pace.max_sm_clock_mhz},
                    {"reasons", pace.slowdown_reasons},
                    {"errors", pace.uncorrected_errors}});
}

GpuPace PaceFromJson(const json::Value& value) {
  return {value["clock"].AsInt(-1), value["maxClock"].AsInt(-1), value["reasons"].AsInt(-1),
          value["errors"].AsInt(-1)};
}

// Links by the place of the peer, which keeps the text of many GPUs short.
json::Value ToJson(const Gpu& gpu, const std::vector<Gpu>& all) {
  json::Array links;
  for (const Gpu& peer : all) {
    const auto found = gpu.links.find(peer.uuid);
    links.emplace_back(found == gpu.links.end() ? int64_t{0} : found->second);
  }
  return json::Obj({{"uuid", gpu.uuid},
                    {"index", gpu.index},
                    {"minor", gpu.minor},
                    {"model", gpu.model},
                    {"memory", gpu.memory_bytes},
                    {"pci", gpu.pci_bus_id},
                    {"numa", gpu.numa_node},
                    {"pciClass", gpu.pci_class},
                    {"computeMajor", gpu.compute_major},
                    {"computeMinor", gpu.compute_minor},
                    {"mig", gpu.mig_capable},
                    {"links", std::move(links)},
                    {"utilization", gpu.sample.utilization_percent},
                    {"memoryUsed", gpu.sample.memory_used_bytes},
                    {"memoryFree", gpu.sample.memory_free_bytes},
                    {"temperature", gpu.sample.temperature_celsius},
                    {"power", gpu.sample.power_milliwatts},
                    {"memoryBusy", gpu.sample.memory_busy_percent},
                    {"tellsXids", gpu.tells_xids},
                    {"xids", json::Array(gpu.xids.begin(), gpu.xids.end())},
                    {"pace", ToJson(gpu.pace)},
                    {"fault", gpu.fault}});
}

Gpu GpuFromJson(const json::Value& value) {
  Gpu gpu;
  gpu.uuid = value["uuid"].Str();
  gpu.index = value["index"].AsInt();
  gpu.minor = value["minor"].AsInt();
  gpu.model = value["model"].Str();
  gpu.memory_bytes = value["memory"].AsInt();
  gpu.pci_bus_id = value["pci"].Str();
  gpu.numa_node = value["numa"].AsInt(-1);
  gpu.pci_class = value["pciClass"].AsInt();
  gpu.compute_major = value["computeMajor"].AsInt();
  gpu.compute_minor = value["computeMinor"].AsInt();
  gpu.mig_capable = value["mig"].AsBool();
  gpu.sample = {value["utilization"].AsInt(-1), value["memoryUsed"].AsInt(-1),
                value["memoryFree"].AsInt(-1),  value["temperature"].AsInt(-1),
                value["power"].AsInt(-1),       value["memoryBusy"].AsInt(-1)};
  gpu.tells_xids = value["tellsXids"].AsBool();
  for (const json::Value& xid : value["xids"].items()) gpu.xids.push_back(xid.AsInt());
  gpu.pace = PaceFromJson(value["pace"]);
  gpu.fault = value["fault"].Str();
  return gpu;
}

}  // namespace

json::Value ToJson(const Inventory& inventory) {
  json::Array gpus;
  for (const Gpu& gpu : inventory.gpus) gpus.push_back(ToJson(gpu, inventory.gpus));
  return json::Obj({{"driver", inventory.driver_version},
                    {"cuda", inventory.cuda_version},
                    {"library", inventory.library},
                    {"controlFiles", json::Strings(inventory.control_files)},
                    {"gpus", std::move(gpus)},
                    {"fault", inventory.fault}});
}

Inventory InventoryFromJson(const json::Value& value) {
  Inventory inventory;
  inventory.driver_version = value["driver"].Str();
  inventory.cuda_version = value["cuda"].AsInt();
  inventory.library = value["library"].Str();
  inventory.control_files = json::ToStrings(value["controlFiles"]);
  for (const json::Value& gpu : value["gpus"].items()) {
    if (inventory.gpus.size() == kMaxGpusPerNode) break;
    inventory.gpus.push_back(GpuFromJson(gpu));
  }
  for (size_t i = 0; i < inventory.gpus.size(); ++i) {
    const json::Value& links = value["gpus"].At(i)["links"];
    for (size_t peer = 0; peer < inventory.gpus.size(); ++peer) {
      const int64_t count = links.At(peer).AsInt();
      if (count > 0) inventory.gpus[i].links[inventory.gpus[peer].uuid] = count;
    }
  }
  inventory.fault = value["fault"].Str();
  return inventory;
}

}  // namespace muster::gpu
