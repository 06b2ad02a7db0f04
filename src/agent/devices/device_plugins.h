// src/agent/devices/device_plugins.h
//
// DevicePlugins: the kubelet's side of its device plugin API. Plugins register at `kubelet.sock` in
// the folder and have a socket of their own there; what they list is offered by the node, and they
// say what a container gets with a device.
//
// Life cycle: Start() once; destroy to stop. A plugin registers anew when `kubelet.sock` is made
//             anew, as it does with a kubelet.
// Thread:     the loop thread. Nothing is called from inside.
// Invariants: of one resource the plugin that registered last counts. What the node offers itself
//             (nvidia.com/gpu) no plugin may offer. While a plugin is gone its devices are
//             unhealthy, for kPluginPatience; then the resource is gone, too.
// Source:     the kubelet's pkg/kubelet/cm/devicemanager.

#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/devices/device_plugin_api.h"
#include "agent/devices/grpc_connection.h"
#include "cluster/devices.h"

namespace muster::agent {

inline constexpr Duration kPluginPatience = minutes(5);  // the kubelet's endpointStopGracePeriod
inline constexpr Duration kPluginCallTimeout = seconds(10);
inline constexpr Duration kPreStartTimeout = seconds(30);  // of PreStartContainer, as upstream
inline constexpr size_t kMaxPlugins = 32;        // resources, and connections that register
inline constexpr size_t kMaxDeviceIdBytes = 63;  // as upstream
inline constexpr std::string_view kKubeletPluginDir = "/var/lib/kubelet/device-plugins";

// The folder that pods see as kKubeletPluginDir.
std::string PluginDir(const std::string& data_dir);

class DevicePlugins {
 public:
  template <class T>
  using Done = Function<void(Result<T>)>;
  struct Hooks {
    Function<void()> on_change;  // of Devices()
    // An event of the node: its reason and message.
    Function<void(std::string_view reason, const std::string& message)> on_event;
  };

  DevicePlugins(AsioLoop& loop, std::string dir, Hooks hooks);
  ~DevicePlugins();

  // Takes former sockets away and listens.
  Status Start();

  // What is offered, by resource; at most `limit`.
  std::vector<cluster::Device> Devices(size_t limit) const;
  // Whether the node's devices of this resource are a plugin's, present or not.
  static bool IsOfPlugin(std::string_view resource);

  // What a container with these devices gets. ServiceUnavailable: the plugin is not there.
  void Allocate(const std::string& resource, const std::vector<std::string>& ids,
                Done<PluginAllocation> done);
  // Whether PreStart() has to be called before each start of a container.
  bool WantsPreStart(const std::string& resource) const;
  void PreStart(const std::string& resource, const std::vector<std::string>& ids,
                Function<void(Status)> done);

 private:
  struct Plugin {
    std::string resource, endpoint;
    PluginOptions options;
    std::unique_ptr<GrpcConnection> connection;  // null: it is gone
    std::vector<PluginDevice> devices;
    bool listed = false;  // by the present connection
    TimerId removal = 0;
  };
  void Accept();
  Result<std::string> OnCall(const std::string& method, std::string_view request);
  Status CheckRegistration(const RegisterRequest& request) const;
  void Dial(const RegisterRequest& request);
  void Watch(const std::string& resource, GrpcConnection* connection);
  Plugin* Current(const std::string& resource, const GrpcConnection* connection);
  void Call(const std::string& resource, const char* method, const std::string& request,
            Duration timeout, Done<std::string> done);
  void OnList(Plugin& plugin, std::string_view message);
  void Gone(Plugin& plugin, const std::string& why);
  void Drop(std::unique_ptr<GrpcConnection> connection);

  AsioLoop& loop_;
  const std::string dir_;
  Hooks hooks_;
  UniqueFd listener_;
  std::unique_ptr<FdWatch> watch_;
  std::list<std::unique_ptr<GrpcConnection>> registering_;
  std::map<std::string, Plugin> plugins_;  // by resource
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
