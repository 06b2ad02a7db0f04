// src/gpu/inventory.h
//
// What a machine's NVIDIA driver says of its GPUs, as a value that travels as JSON from the process
// that asks the driver (probe_process.h).
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace muster::gpu {

inline constexpr std::string_view kGpuResource = "nvidia.com/gpu";
inline constexpr size_t kMaxGpusPerNode = 64;

// What a GPU does right now. -1: the driver does not tell.
struct GpuSample {
  int64_t utilization_percent = -1;
  int64_t memory_used_bytes = -1, memory_free_bytes = -1;
  int64_t temperature_celsius = -1;
  int64_t power_milliwatts = -1;
  int64_t memory_busy_percent = -1;  // of the time in which memory was read or written
  bool operator==(const GpuSample&) const = default;
};

// How fast a GPU may go, and what holds it back. -1: the driver does not tell.
struct GpuPace {
  int64_t sm_clock_mhz = -1, max_sm_clock_mhz = -1;
  int64_t slowdown_reasons = -1;    // the driver's bits: NVML's clocks event (throttle) reasons
  int64_t uncorrected_errors = -1;  // of its memory (ECC), since the driver was loaded
  bool operator==(const GpuPace&) const = default;
};

struct Gpu {
  std::string uuid;  // "GPU-4d830ef6-..."
  int64_t index = 0;
  int64_t minor = 0;  // /dev/nvidia<minor>
  std::string model;  // "NVIDIA H200"
  int64_t memory_bytes = 0;
  std::string pci_bus_id;  // "00000000:04:00.0"
  int64_t numa_node = -1;  // of the memory next to it; -1: the driver does not tell
  int64_t pci_class = 0;   // 0x030200: a 3D controller
  int64_t compute_major = 0, compute_minor = 0;
  bool mig_capable = false;
  // NVLink peers on this machine, by uuid: how many links lead there. Through NVSwitches every GPU
  // reaches every other with all its links.
  std::map<std::string, int64_t> links;
  GpuSample sample;
  GpuPace pace;
  // The driver tells of its XIDs (xids.h), and these have come since the look before, each once.
  bool tells_xids = false;
  std::vector<int64_t> xids;
  // Why it cannot be used, in the driver's words; "": it can.
  std::string fault;
};

struct Inventory {
  std::string driver_version;              // "580.159.04"
  int64_t cuda_version = 0;                // 13000 is 13.0
  std::string library;                     // the file of the NVML library, links resolved
  std::vector<std::string> control_files;  // /dev/nvidiactl, ... that every user of a GPU needs
  std::vector<Gpu> gpus;
  std::string fault;  // the driver answers, but a GPU that it counts has no name, and why
};

json::Value ToJson(const Inventory& inventory);
Inventory InventoryFromJson(const json::Value& value);

}  // namespace muster::gpu
