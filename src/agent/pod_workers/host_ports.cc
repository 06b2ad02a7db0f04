#include "agent/pod_workers/host_ports.h"

#include <algorithm>

namespace muster::agent {

bool HostPorts::Take(const json::Value& pod) {
  const std::string uid = pod["metadata"]["uid"].Str();
  if (Has(uid)) return true;
  std::vector<cluster::HostPort> wanted = cluster::ToPodRelations(pod).ports;
  if (wanted.empty()) return true;
  for (const auto& [other, taken] : holders_) {
    for (const cluster::HostPort& port : wanted) {
      const auto collides = [&](const cluster::HostPort& held) { return Collide(held, port); };
      if (std::ranges::any_of(taken, collides)) return false;
    }
  }
  holders_.emplace(uid, std::move(wanted));
  return true;
}

void HostPorts::Adopt(const std::string& pod_uid, const json::Value& ports) {
  for (const json::Value& port : ports.items()) {
    holders_[pod_uid].push_back(
        {port["hostIP"].Str(), port["protocol"].Str(), port["hostPort"].AsInt()});
  }
}

json::Value HostPorts::ToJson(const std::string& pod_uid) const {
  json::Array out;
  if (const auto found = holders_.find(pod_uid); found != holders_.end()) {
    for (const cluster::HostPort& port : found->second)
      out.push_back(
          json::Obj({{"hostIP", port.ip}, {"protocol", port.protocol}, {"hostPort", port.port}}));
  }
  return out;
}

}  // namespace muster::agent
