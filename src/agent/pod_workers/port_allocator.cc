#include "agent/pod_workers/port_allocator.h"

#include <vector>

#include <fmt/core.h>

#include "agent/pod_workers/listeners.h"
#include "agent/pod_workers/pod_inputs.h"

namespace muster::agent {
namespace {

constexpr std::string_view kRemedy =
    "without user namespaces all pods share the machine's ports: give this one another port, or "
    "end the other first";

std::vector<PortKey> PortsOf(const json::Value& pod) {
  std::vector<PortKey> out;
  for (const json::Value& container : AllContainers(pod)) {
    for (const json::Value& port : container["ports"].items())
      out.emplace_back(port["protocol"].Str("TCP"), port["containerPort"].AsInt());
  }
  return out;
}

std::string OwnerOf(const json::Value& pod) {
  for (const json::Value& owner : pod["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].AsBool()) return owner["uid"].Str();
  }
  return pod["metadata"]["uid"].Str();
}

}  // namespace

std::set<int64_t> PortAllocator::MachinePorts(const std::string& protocol) {
  std::set<int64_t> out;
  for (const cluster::HostPort& each : MachineListeners(protocol)) out.insert(each.port);
  return out;
}

PortAllocator::PortAllocator(
    std::function<std::set<int64_t>(const std::string& protocol)> listening)
    : listening_(std::move(listening)) {}

Status PortAllocator::Take(const json::Value& pod, bool is_new) {
  const std::string owner = OwnerOf(pod);
  const std::vector<PortKey> ports = PortsOf(pod);
  for (const PortKey& key : ports) {
    const auto found = holders_.find(key);
    if (found != holders_.end() && found->second.owner == owner) continue;
    if (found != holders_.end()) {
      return Error(Reason::kConflict, "port {}/{} is taken by pod {}; {}", key.second, key.first,
                   found->second.pods.begin()->second, kRemedy);
    }
    if (is_new && listening_(key.first).contains(key.second)) {
      return Error(Reason::kConflict, "port {}/{} is taken by a program of this machine; {}",
                   key.second, key.first, kRemedy);
    }
  }
  const json::Value& meta = pod["metadata"];
  for (const PortKey& key : ports) {
    Holder& holder = holders_[key];
    holder.owner = owner;
    holder.pods[meta["uid"].Str()] =
        fmt::format("{}/{}", meta["namespace"].AsString(), meta["name"].AsString());
  }
  return Status::Ok();
}

void PortAllocator::Release(const std::string& pod_uid) {
  for (auto next = holders_.begin(); next != holders_.end();) {
    const auto entry = next++;
    entry->second.pods.erase(pod_uid);
    if (entry->second.pods.empty()) holders_.erase(entry);
  }
}

}  // namespace muster::agent
