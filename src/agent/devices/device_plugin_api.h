// src/agent/devices/device_plugin_api.h
//
// The messages of the kubelet's device plugin API, v1beta1, as they go over the wire.
//
// Thread: any (pure).
// Source: the contract, kubernetes/kubelet pkg/apis/deviceplugin/v1beta1/api.proto.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

inline constexpr std::string_view kDevicePluginVersion = "v1beta1";
inline constexpr const char* kRegisterMethod = "/v1beta1.Registration/Register";
inline constexpr const char* kOptionsMethod = "/v1beta1.DevicePlugin/GetDevicePluginOptions";
inline constexpr const char* kListAndWatchMethod = "/v1beta1.DevicePlugin/ListAndWatch";
inline constexpr const char* kAllocateMethod = "/v1beta1.DevicePlugin/Allocate";
inline constexpr const char* kPreStartMethod = "/v1beta1.DevicePlugin/PreStartContainer";

struct PluginOptions {
  bool pre_start_required = false;
  bool preferred_allocation = false;
};

struct RegisterRequest {
  std::string version, endpoint, resource;
};

struct PluginDevice {
  std::string id;
  bool healthy = false;
  int64_t numa_node = -1;  // the first that it names
  bool operator==(const PluginDevice&) const = default;
};

// What a container with some devices gets.
struct PluginAllocation {
  struct Mount {
    std::string container_path, host_path;
    bool read_only = false;
  };
  struct DeviceNode {
    std::string container_path, host_path, permissions;
  };
  std::map<std::string, std::string> environment, annotations;
  std::vector<Mount> mounts;
  std::vector<DeviceNode> devices;
  std::vector<std::string> cdi_devices;  // "vendor.com/class=name"
};

Result<RegisterRequest> ReadRegisterRequest(std::string_view message);
Result<PluginOptions> ReadPluginOptions(std::string_view message);
Result<std::vector<PluginDevice>> ReadDeviceList(std::string_view message);
// For one container.
std::string WriteAllocateRequest(const std::vector<std::string>& ids);
Result<PluginAllocation> ReadAllocateResponse(std::string_view message);
std::string WritePreStartRequest(const std::vector<std::string>& ids);

}  // namespace muster::agent
