// src/agent/pod_workers/host_ports.h
//
// HostPorts: which pod of this node has which hostPort. The scheduler keeps pods that want one port
// apart; one that came past it is refused here.
//
// Life cycle: one per agent. Ports of pods of an earlier run are adopted before a new pod may ask.
// Thread:     the loop thread.
// Invariants: of two pods with one address, protocol and port, one has it.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/pod_relations.h"
#include "json/value.h"

namespace muster::agent {

// The kubelet's.
inline constexpr std::string_view kHostPortsTaken =
    "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";

class HostPorts {
 public:
  // False, and nothing is taken: another pod has one of the ports. May be repeated.
  bool Take(const json::Value& pod);
  // What the pod had, as ToJson() said it.
  void Adopt(const std::string& pod_uid, const json::Value& ports);
  void Release(const std::string& pod_uid) { holders_.erase(pod_uid); }
  bool Has(const std::string& pod_uid) const { return holders_.contains(pod_uid); }
  json::Value ToJson(const std::string& pod_uid) const;

 private:
  std::map<std::string, std::vector<cluster::HostPort>> holders_;  // by uid
};

}  // namespace muster::agent
