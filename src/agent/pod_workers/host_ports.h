// src/agent/pod_workers/host_ports.h
//
// HostPorts: which pod of this node has which hostPort. The scheduler keeps pods that want one port
// apart; one that came past it is refused here. One that wants a port at which a program of the
// node listens has to wait: that program, sshd or the API server, would hear nothing any more.
//
// Life cycle: one per agent. Ports of pods of an earlier run are adopted before a new pod may ask.
// Thread:     the loop thread.
// Invariants: of two pods with one address, protocol and port, one has it.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cluster/pod_relations.h"
#include "json/value.h"

namespace muster::agent {

// The kubelet's.
inline constexpr std::string_view kHostPortsTaken =
    "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";

class HostPorts {
 public:
  // Of one protocol, in the node's network.
  using Listeners = std::function<std::vector<cluster::HostPort>(const std::string& protocol)>;

  HostPorts() = default;  // where the node's network is none of the machine's
  explicit HostPorts(Listeners listeners) : listeners_(std::move(listeners)) {}

  // Conflict, and nothing is taken: another pod has one of the ports. ServiceUnavailable: a program
  // of the node has. May be repeated.
  Status Take(const json::Value& pod);
  // What the pod had, as ToJson() said it.
  void Adopt(const std::string& pod_uid, const json::Value& ports);
  void Release(const std::string& pod_uid) { holders_.erase(pod_uid); }
  bool Has(const std::string& pod_uid) const { return holders_.contains(pod_uid); }
  json::Value ToJson(const std::string& pod_uid) const;

 private:
  Status CheckListeners(const std::vector<cluster::HostPort>& wanted) const;

  Listeners listeners_;  // nullptr: not asked
  std::map<std::string, std::vector<cluster::HostPort>> holders_;  // by uid
};

}  // namespace muster::agent
