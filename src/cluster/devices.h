// src/cluster/devices.h
//
// Which devices a node has and which of them a pod got.
//
// A node says what it has in annotation muster.dev/devices:
//   {"nvidia.com/gpu":[{"id":"GPU-sim-0","index":0,"model":"Simulated-GPU"}]}
// and, of real ones, also "minor" (/dev/nvidia<minor>), "memory" (bytes), "pci", "numa", "links"
// (NVLink peers: {"<id>":<number of links>}) and, while it is not offered, "unhealthy" (why).
// The scheduler says what a pod gets in annotation muster.dev/assigned-devices of the Binding,
// which the API server copies onto the pod:
//   {"<container>":{"nvidia.com/gpu":["GPU-sim-0"]}}
// Where the pods of a gang share a sandbox (annotation muster.dev/gang-sandbox: shared), CUDA maps
// memory of its peers' GPUs and has to open them. So the Binding also says which devices the gang
// has on the node, in annotation muster.dev/gang-devices:
//   {"nvidia.com/gpu":["GPU-sim-0","GPU-sim-1"]}
//
// Thread: any (values and pure functions).

#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json/projection.h"
#include "json/value.h"

namespace muster::cluster {

inline constexpr std::string_view kDevicesAnnotation = "muster.dev/devices";
inline constexpr std::string_view kAssignedDevicesAnnotation = "muster.dev/assigned-devices";
inline constexpr std::string_view kGangSandboxAnnotation = "muster.dev/gang-sandbox";
inline constexpr std::string_view kGangSandboxShared = "shared";
inline constexpr std::string_view kGangDevicesAnnotation = "muster.dev/gang-devices";

// Devices of one node that we can tell apart. Those beyond are not offered.
inline constexpr size_t kMaxDevicesPerNode = 128;

// A set of positions in NodeInfo::devices.
class DeviceSet {
 public:
  bool Has(size_t position) const { return (words_[position / 64] >> (position % 64)) & 1; }
  void Add(size_t position) { words_[position / 64] |= uint64_t{1} << (position % 64); }
  void Remove(const DeviceSet& other) {
    words_[0] &= ~other.words_[0];
    words_[1] &= ~other.words_[1];
  }
  void Add(const DeviceSet& other) {
    words_[0] |= other.words_[0];
    words_[1] |= other.words_[1];
  }
  DeviceSet And(const DeviceSet& other) const {
    DeviceSet both;
    both.words_ = {words_[0] & other.words_[0], words_[1] & other.words_[1]};
    return both;
  }
  int64_t Count() const { return std::popcount(words_[0]) + std::popcount(words_[1]); }
  bool IsEmpty() const { return (words_[0] | words_[1]) == 0; }
  // The `count` lowest positions. REQUIRES: count <= Count().
  DeviceSet Lowest(int64_t count) const;
  std::vector<size_t> Positions() const;  // ascending
  bool operator==(const DeviceSet&) const = default;

 private:
  std::array<uint64_t, kMaxDevicesPerNode / 64> words_{};
};

struct Device {
  std::string resource;  // "nvidia.com/gpu"
  std::string id;        // "GPU-sim-0"
  int64_t index = 0;
  std::string model;
  int64_t minor = -1;  // -1: it has no device node
  int64_t memory_bytes = 0;
  std::string pci_bus_id = {};
  int64_t numa_node = -1;
  std::map<std::string, int64_t> links = {};  // id of the peer -> NVLinks that lead there
  std::string unhealthy = {};                 // why no pod may get it; "": it is fine
  bool health_unknown = false;                // unhealthy because nobody can tell; the node's own
  bool operator==(const Device&) const = default;
};

// By resource name, then index, then id; at most kMaxDevicesPerNode. Empty if the annotation is
// absent or unreadable.
std::vector<Device> NodeDevices(const json::Value& node);

// The text of a node's annotation.
std::string WriteNodeDevices(const std::vector<Device>& devices);

// container -> resource -> device ids.
using AssignedDevices = std::map<std::string, std::map<std::string, std::vector<std::string>>>;
json::Value ToJson(const AssignedDevices& assigned);
AssignedDevices AssignedDevicesFromJson(const json::Value& value);
// What the scheduler chose; empty if it did not.
AssignedDevices PodAssignedDevices(const json::Value& pod);
std::string WriteAssignedDevices(const AssignedDevices& assigned);  // the annotation's text
// What the pod has: what the node says that it gave (allocatedResourcesStatus of its containers),
// and before that the scheduler's choice.
AssignedDevices PodDevices(const json::Value& pod);
const json::Fields& PodDevicesFields();  // what that reads

// resource -> device ids.
using DeviceLists = std::map<std::string, std::vector<std::string>>;
DeviceLists PodGangDevices(const json::Value& pod);
std::string WriteGangDevices(const DeviceLists& devices);  // the annotation's text
bool SharesGangSandbox(const json::Value& metadata);

// Shares the chosen devices (resource -> ids) out to the pod's containers: main containers and
// sidecars get their own, plain init containers borrow from the main containers, which start after
// them. REQUIRES: for each resource as many ids as PodRequests() says.
AssignedDevices ShareOutDevices(const json::Value& pod,
                                const std::map<std::string, std::vector<std::string>>& chosen);

}  // namespace muster::cluster
