#include "agent/pod_workers/host_ports.h"

#include <algorithm>

namespace muster::agent {

Status HostPorts::Take(const json::Value& pod) {
  const std::string uid = pod["metadata"]["uid"].Str();
  if (Has(uid)) return Status::Ok();
  std::vector<cluster::HostPort> wanted = cluster::ToPodRelations(pod).ports;
  if (wanted.empty()) return Status::Ok();
  for (const auto& [other, taken] : holders_) {
    for (const cluster::HostPort& port : wanted) {
      const auto collides = [&](const cluster::HostPort& held) { return Collide(held, port); };
      if (std::ranges::any_of(taken, collides))
        return Error(Reason::kConflict, "{}", kHostPortsTaken);
    }
  }
  // On the node's network the pod's own program is told.
  if (listeners_ != nullptr && !pod["spec"]["hostNetwork"].AsBool())
    RETURN_IF_ERROR(CheckListeners(wanted));
  holders_.emplace(uid, std::move(wanted));
  return Status::Ok();
}

Status HostPorts::CheckListeners(const std::vector<cluster::HostPort>& wanted) const {
  for (const cluster::HostPort& port : wanted) {
    for (const cluster::HostPort& listener : listeners_(port.protocol)) {
      if (!Collide(listener, port)) continue;
      return Error(Reason::kServiceUnavailable,
                   "hostPort {}/{} is not free: a program of the node itself listens at {}:{}; end "
                   "it, or give the pod another hostPort, or a hostIP at which nobody listens",
                   port.port, port.protocol, listener.ip, listener.port);
    }
  }
  return Status::Ok();
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
