#include "agent/network/host_port_planner.h"

#include "agent/network/service_planner.h"

namespace muster::agent {

namespace {

void AddPorts(const json::Value& container, Ipv4 pod, ServiceTable& rows) {
  for (const json::Value& port : container["ports"].items()) {
    const auto host_port = ParsePort(port["hostPort"]);
    const auto container_port = ParsePort(port["containerPort"]);
    const auto protocol = ParseProtocol(port["protocol"].AsString());
    const std::string_view host_ip = port["hostIP"].AsString();
    const auto address = host_ip.empty() ? Ipv4{} : Ipv4::Parse(host_ip);
    if (!host_port || !container_port || !protocol || !address) continue;
    rows.try_emplace({*address, *protocol, *host_port, true},
                     ServiceBackend{.endpoints = {{pod, *container_port}}});
  }
}

}  // namespace

ServiceTable PlanHostPorts(const json::Value& pod) {
  ServiceTable rows;
  const json::Value& spec = pod["spec"];
  const auto address = Ipv4::Parse(pod["status"]["podIP"].AsString());
  if (!address || spec["hostNetwork"].AsBool()) return rows;
  for (const json::Value& container : spec["containers"].items())
    AddPorts(container, *address, rows);
  for (const json::Value& container : spec["initContainers"].items()) {
    if (container["restartPolicy"].AsString() == "Always") AddPorts(container, *address, rows);
  }
  return rows;
}

}  // namespace muster::agent
