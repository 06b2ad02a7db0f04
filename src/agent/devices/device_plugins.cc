#include "agent/devices/device_plugins.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "agent/runtime/files.h"
#include "agent/runtime/wire.h"
#include "base/log.h"
#include "cluster/resources.h"
#include "gpu/time_slicing.h"

namespace muster::agent {
namespace {

constexpr const char* kKubeletSocket = "kubelet.sock";

void RemoveSockets(const std::string& dir) {
  for (const std::string& name : ListDir(dir)) {
    const std::string path = dir + "/" + name;
    struct stat info = {};
    if (lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) (void)unlink(path.c_str());
  }
}

}  // namespace

std::string PluginDir(const std::string& data_dir) { return data_dir + "/kubelet/device-plugins"; }

DevicePlugins::DevicePlugins(AsioLoop& loop, std::string dir, Hooks hooks)
    : loop_(loop), dir_(std::move(dir)), hooks_(std::move(hooks)) {}

DevicePlugins::~DevicePlugins() {
  for (const auto& [resource, plugin] : plugins_) loop_.Cancel(plugin.removal);
}

Status DevicePlugins::Start() {
  RETURN_IF_ERROR(MakeDirs(dir_, 0750));
  RemoveSockets(dir_);
  ASSIGN_OR_RETURN(listener_, ListenUnix(dir_, kKubeletSocket));
  const int flags = fcntl(listener_.get(), F_GETFL);
  (void)fcntl(listener_.get(), F_SETFL, flags | O_NONBLOCK);
  watch_ = loop_.WatchReadable(listener_.get(), [this] { Accept(); });
  return Status::Ok();
}

void DevicePlugins::Accept() {
  while (true) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid() && errno == EINTR) continue;
    if (!socket.valid()) return;
    if (registering_.size() >= kMaxPlugins) continue;
    registering_.push_front(std::make_unique<GrpcConnection>(
        loop_, std::move(socket), [this](const std::string& method, std::string_view request) {
          return OnCall(method, request);
        }));
    const auto at = registering_.begin();
    (*at)->OnClosed([this, at] { registering_.erase(at); });
  }
}

Result<std::string> DevicePlugins::OnCall(const std::string& method, std::string_view message) {
  if (method != kRegisterMethod) return Error(Reason::kNotFound, "unknown method {}", method);
  ASSIGN_OR_RETURN(const RegisterRequest request, ReadRegisterRequest(message));
  if (const Status status = CheckRegistration(request); !status.ok()) {
    LOG_WARN("agent: device plugin: {}", status.message());
    hooks_.on_event("DevicePluginRefused", status.message());
    return Error(status);
  }
  // It is dialed once it has its answer.
  loop_.Post(lifetime_.Guard([this, request] { Dial(request); }));
  return "";
}

Status DevicePlugins::CheckRegistration(const RegisterRequest& request) const {
  if (request.version != kDevicePluginVersion) {
    return Error(Reason::kInvalid,
                 "requested API version {:?} is not supported by this node. Supported version is "
                 "{:?}",
                 request.version, kDevicePluginVersion);
  }
  if (!cluster::IsExtendedResource(request.resource))
    return Error(Reason::kInvalid, "the ResourceName {:?} is invalid", request.resource);
  if (!IsOfPlugin(request.resource)) {
    return Error(Reason::kInvalid,
                 "this node offers {} itself, without a device plugin (docs/gpus.md); the plugin "
                 "that registered for it is not needed",
                 request.resource);
  }
  if (!IsFileName(request.endpoint) || request.endpoint == kKubeletSocket) {
    return Error(Reason::kInvalid, "the endpoint {:?} of {} is no name of a socket",
                 request.endpoint, request.resource);
  }
  if (plugins_.size() >= kMaxPlugins && !plugins_.contains(request.resource)) {
    return Error(Reason::kInvalid, "{} is one resource more than the {} that plugins may have",
                 request.resource, kMaxPlugins);
  }
  return Status::Ok();
}

bool DevicePlugins::IsOfPlugin(std::string_view resource) {
  return resource != cluster::resource::kNvidiaGpu && resource != gpu::kSharedGpuResource &&
         resource != cluster::resource::kGpuMilli;
}

void DevicePlugins::Dial(const RegisterRequest& request) {
  Plugin& plugin = plugins_[request.resource];
  plugin.resource = request.resource;
  plugin.endpoint = request.endpoint;
  plugin.listed = false;
  Drop(std::move(plugin.connection));
  Result<UniqueFd> socket = ConnectUnix(dir_, request.endpoint);
  if (!socket) return Gone(plugin, socket.error().message());
  plugin.connection = std::make_unique<GrpcConnection>(loop_, std::move(*socket));
  GrpcConnection* connection = plugin.connection.get();
  auto answer = std::make_shared<std::string>();
  GrpcConnection::CallEvents events;
  events.on_message = [answer](std::string_view message) { *answer = message; };
  events.on_end = [this, answer, connection, resource = request.resource](Status status) {
    Plugin* current = Current(resource, connection);
    if (current == nullptr) return;
    Result<PluginOptions> options = ReadPluginOptions(*answer);
    if (status.ok() && !options) status = options.error();
    if (!status.ok()) return Gone(*current, status.message());
    current->options = *options;
    Watch(resource, connection);
  };
  connection->Call(kOptionsMethod, "", kPluginCallTimeout, std::move(events));
}

void DevicePlugins::Watch(const std::string& resource, GrpcConnection* connection) {
  GrpcConnection::CallEvents events;
  events.on_message = [this, resource, connection](std::string_view message) {
    if (Plugin* plugin = Current(resource, connection)) OnList(*plugin, message);
  };
  events.on_end = [this, resource, connection](const Status& status) {
    Plugin* plugin = Current(resource, connection);
    if (plugin != nullptr) Gone(*plugin, status.ok() ? "its list ended" : status.message());
  };
  connection->Call(kListAndWatchMethod, "", std::nullopt, std::move(events));
}

DevicePlugins::Plugin* DevicePlugins::Current(const std::string& resource,
                                              const GrpcConnection* connection) {
  const auto found = plugins_.find(resource);
  if (found == plugins_.end() || found->second.connection.get() != connection) return nullptr;
  return &found->second;
}

void DevicePlugins::OnList(Plugin& plugin, std::string_view message) {
  Result<std::vector<PluginDevice>> listed = ReadDeviceList(message);
  if (!listed) return Gone(plugin, listed.error().message());
  std::set<std::string> ids;
  std::erase_if(*listed, [&](const PluginDevice& device) {
    if (!device.id.empty() && device.id.size() <= kMaxDeviceIdBytes && ids.insert(device.id).second)
      return false;
    LOG_WARN("agent: device plugin of {}: the device id {:?} is empty, too long or there twice",
             plugin.resource, device.id);
    return true;
  });
  // Many plugins list theirs in another order each time.
  std::ranges::sort(*listed, {}, &PluginDevice::id);
  if (!plugin.listed) {
    LOG_INFO("agent: device plugin of {} offers {} devices", plugin.resource, listed->size());
    loop_.Cancel(plugin.removal);
    plugin.removal = 0;
  } else if (plugin.devices == *listed) {
    return;
  }
  plugin.listed = true;
  plugin.devices = std::move(*listed);
  hooks_.on_change();
}

// Pods that run keep what they have.
void DevicePlugins::Gone(Plugin& plugin, const std::string& why) {
  LOG_WARN("agent: device plugin of {} is gone: {}", plugin.resource, why);
  plugin.listed = false;
  loop_.Cancel(plugin.removal);
  plugin.removal = loop_.After(kPluginPatience, lifetime_.Guard([this, name = plugin.resource] {
    plugins_.erase(name);
    hooks_.on_change();
  }));
  Drop(std::move(plugin.connection));
  hooks_.on_change();
}

// Who waits for an answer of it is told first, and its own callback may be under way.
void DevicePlugins::Drop(std::unique_ptr<GrpcConnection> connection) {
  if (connection == nullptr) return;
  connection->Close("the device plugin is gone, or has registered anew");
  loop_.Post([connection = std::move(connection)] {});
}

std::vector<cluster::Device> DevicePlugins::Devices(size_t limit) const {
  std::vector<cluster::Device> out;
  for (const auto& [resource, plugin] : plugins_) {
    int64_t index = 0;
    for (const PluginDevice& listed : plugin.devices) {
      if (out.size() == limit) {
        LOG_WARN("agent: only the first {} devices of plugins are offered", limit);
        return out;
      }
      cluster::Device device{resource, listed.id, index++, ""};
      device.numa_node = listed.numa_node;
      if (!plugin.listed) {
        device.unhealthy = "its device plugin is gone";
      } else if (!listed.healthy) {
        device.unhealthy = "its device plugin says that it is unhealthy";
      }
      out.push_back(std::move(device));
    }
  }
  return out;
}

void DevicePlugins::Call(const std::string& resource, const char* method,
                         const std::string& request, Duration timeout, Done<std::string> done) {
  const auto found = plugins_.find(resource);
  if (found == plugins_.end() || !found->second.listed) {
    loop_.Post(lifetime_.Guard([done = std::move(done), resource]() mutable {
      done(Error(Reason::kServiceUnavailable, "the device plugin of {} is not there", resource));
    }));
    return;
  }
  auto answer = std::make_shared<std::string>();
  GrpcConnection::CallEvents events;
  events.on_message = [answer](std::string_view message) { *answer = message; };
  events.on_end = [answer, done = std::move(done)](Status status) mutable {
    done(status.ok() ? Result<std::string>(std::move(*answer)) : Error(std::move(status)));
  };
  found->second.connection->Call(method, request, timeout, std::move(events));
}

void DevicePlugins::Allocate(const std::string& resource, const std::vector<std::string>& ids,
                             Done<PluginAllocation> done) {
  Call(resource, kAllocateMethod, WriteAllocateRequest(ids), kPluginCallTimeout,
       [done = std::move(done)](Result<std::string> answer) mutable {
         if (!answer) return done(std::unexpected(std::move(answer).error()));
         done(ReadAllocateResponse(*answer));
       });
}

bool DevicePlugins::WantsPreStart(const std::string& resource) const {
  const auto found = plugins_.find(resource);
  return found != plugins_.end() && found->second.options.pre_start_required;
}

void DevicePlugins::PreStart(const std::string& resource, const std::vector<std::string>& ids,
                             Function<void(Status)> done) {
  Call(resource, kPreStartMethod, WritePreStartRequest(ids), kPreStartTimeout,
       [done = std::move(done)](const Result<std::string>& answer) mutable {
         done(answer ? Status::Ok() : answer.error());
       });
}

}  // namespace muster::agent
