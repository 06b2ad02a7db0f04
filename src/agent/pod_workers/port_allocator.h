// src/agent/pod_workers/port_allocator.h
//
// PortAllocator: on a node without namespaces all pods share the machine's ports. A port that a pod
// names (ports[].containerPort) is its job's: a second pod on it is refused before it starts.
//
// Life cycle: one per agent, on such a node only.
// Thread:     the loop thread; Take() reads a kernel file.
// Invariants: a port has pods of one owner (the controller, or the pod itself) at a time: of a
//             job's pods, which all name the port, one listens by design.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

// ("TCP", 8000)
using PortKey = std::pair<std::string, int64_t>;

class PortAllocator {
 public:
  // `listening`: who listens on this machine, for one protocol.
  explicit PortAllocator(
      std::function<std::set<int64_t>(const std::string& protocol)> listening = MachinePorts);

  // Conflict, with who has the port and what helps. `is_new`: nothing of the pod runs yet, so
  // whoever listens is somebody else.
  Status Take(const json::Value& pod, bool is_new);
  void Release(const std::string& pod_uid);

 private:
  static std::set<int64_t> MachinePorts(const std::string& protocol);

  struct Holder {
    std::string owner;                        // uid
    std::map<std::string, std::string> pods;  // uid -> namespace/name
  };
  std::function<std::set<int64_t>(const std::string&)> listening_;
  std::map<PortKey, Holder> holders_;
};

}  // namespace muster::agent
