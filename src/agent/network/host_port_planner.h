// src/agent/network/host_port_planner.h
//
// What the hostPorts of a Pod mean for the packet filter of its node: a pure function from the Pod
// to rows of the ServiceTable, as CNI's portmap plugin is told them by the container runtime.
//
// Thread: any (pure).

#pragma once

#include "agent/network/service_table.h"
#include "json/value.h"

namespace muster::agent {

// `pod` is a v1 Pod with its address in status.podIP. Ports of containers and sidecars; of those
// that would be one, the first. None on the node's network, where a hostPort is the pod's own. A
// hostIP that is no address of IPv4 leads nowhere.
ServiceTable PlanHostPorts(const json::Value& pod);

}  // namespace muster::agent
