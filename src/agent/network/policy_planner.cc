#include "agent/network/policy_planner.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agent/network/service_planner.h"
#include "base/strings.h"
#include "schema/label_selector.h"
#include "schema/pod_phase.h"

namespace muster::agent {

namespace {

using json::Value;
using schema::LabelSelector;

// By name and protocol.
using NamedPorts = std::map<std::pair<std::string, ServiceProtocol>, uint16_t>;

struct Pod {
  std::string ns;
  Value labels;
  Ipv4 address;
  NamedPorts ports;
};

// One of a rule's ports, all that is given must hold.
struct Port {
  std::optional<ServiceProtocol> protocol = {};
  std::string name = {};
  uint16_t first = 0, last = 0;
};

// One of a rule's peers.
struct Peer {
  bool by_labels = false;
  std::optional<LabelSelector> namespaces = {}, pods = {};  // none: the own one; all
  std::optional<Ipv4Prefix> range = {};
  std::vector<Ipv4Prefix> except = {};
};

// What cannot be read selects nothing.
LabelSelector SelectorOf(const Value& selector) {
  auto parsed = LabelSelector::FromJson(selector);
  return parsed ? std::move(*parsed) : LabelSelector::Nothing();
}

NamedPorts NamedPortsOf(const Value& pod) {
  NamedPorts out;
  const auto add = [&](const Value& container) {
    for (const Value& port : container["ports"].items()) {
      const auto protocol = ParseProtocol(port["protocol"].AsString());
      const auto number = ParsePort(port["containerPort"]);
      const std::string name = port["name"].Str();
      if (protocol && number && !name.empty()) out.try_emplace({name, *protocol}, *number);
    }
  };
  for (const Value& container : pod["spec"]["containers"].items()) add(container);
  for (const Value& container : pod["spec"]["initContainers"].items()) {
    if (container["restartPolicy"].AsString() == "Always") add(container);
  }
  return out;
}

std::optional<Pod> ReadPod(const Value& pod) {
  if (pod["spec"]["hostNetwork"].AsBool()) return std::nullopt;
  const auto address = Ipv4::Parse(pod["status"]["podIP"].AsString());
  if (!address) return std::nullopt;
  const Value& meta = pod["metadata"];
  return Pod{meta["namespace"].Str(), meta["labels"], *address, NamedPortsOf(pod)};
}

// nullopt: it allows nothing.
std::optional<Port> ReadPort(const Value& port) {
  Port out;
  out.protocol = ParseProtocol(port["protocol"].AsString());
  if (!out.protocol) return std::nullopt;
  const Value& number = port["port"];
  if (number.IsNull()) return out;
  if (number.IsString()) {
    out.name = number.Str();
    return out;
  }
  const auto first = ParsePort(number);
  const auto last = port["endPort"].IsNull() ? first : ParsePort(port["endPort"]);
  if (!first || !last || *last < *first) return std::nullopt;
  out.first = *first;
  out.last = *last;
  return out;
}

std::optional<Peer> ReadPeer(const Value& peer) {
  Peer out;
  if (const Value& block = peer["ipBlock"]; !block.IsNull()) {
    const auto range = Ipv4Prefix::Parse(block["cidr"].AsString());
    if (!range) return std::nullopt;  // of IPv6, which pods do not have
    out.range = Ipv4Prefix{range->Network(), range->length};
    for (const Value& text : block["except"].items()) {
      const auto except = Ipv4Prefix::Parse(text.AsString());
      if (!except) return std::nullopt;
      out.except.push_back({except->Network(), except->length});
    }
    std::ranges::sort(out.except);
    return out;
  }
  out.by_labels = true;
  if (!peer["namespaceSelector"].IsNull()) out.namespaces = SelectorOf(peer["namespaceSelector"]);
  if (!peer["podSelector"].IsNull()) out.pods = SelectorOf(peer["podSelector"]);
  if (!out.namespaces && !out.pods) return std::nullopt;
  return out;
}

// Whether a policy restricts this direction.
bool Restricts(const Value& spec, bool ingress) {
  const Value& types = spec["policyTypes"];
  if (types.empty()) return ingress || !spec["egress"].empty();
  return std::ranges::any_of(types.items(), [&](const Value& type) {
    return type.AsString() == (ingress ? "Ingress" : "Egress");
  });
}

class Planner {
 public:
  explicit Planner(const PolicyInput& input) {
    for (const Value& ns : input.namespaces)
      namespaces_[ns["metadata"]["name"].Str()] = ns["metadata"]["labels"];
    for (const Value& pod : input.other_pods) {
      if (!schema::IsFinalPhase(pod["status"]["phase"].AsString())) AddPod(pod);
    }
    for (const Value& pod : input.local_pods) AddPod(pod);
    for (const Value& policy : input.policies)
      policies_[policy["metadata"]["namespace"].Str()].push_back(&policy);
  }

  PolicyTable Plan(const std::vector<Value>& local_pods) {
    for (const bool ingress : {true, false}) {
      // Which chains hold at an address.
      std::map<Ipv4, std::set<std::string>> chains;
      for (const Value& object : local_pods) {
        const std::optional<Pod> pod = ReadPod(object);
        if (!pod) continue;
        if (auto chain = ChainOf(object, *pod, ingress))
          chains[pod->address].insert(Name(std::move(*chain)));
      }
      for (const auto& [address, names] : chains) {
        (ingress ? table_.ingress : table_.egress)[address] =
            names.size() == 1 ? *names.begin()
                              : Name({.ingress = ingress, .both = {names.begin(), names.end()}});
      }
    }
    return std::move(table_);
  }

 private:
  void AddPod(const Value& object) {
    if (auto pod = ReadPod(object)) pods_[pod->ns].push_back(std::move(*pod));
  }

  // What the policies that select the pod allow together; nullopt: none does.
  std::optional<PolicyChain> ChainOf(const Value& object, const Pod& pod, bool ingress) {
    const auto found = policies_.find(pod.ns);
    if (found == policies_.end()) return std::nullopt;
    std::optional<PolicyChain> chain;
    for (const Value* policy : found->second) {
      if (!Restricts((*policy)["spec"], ingress) || !PolicySelects(*policy, object)) continue;
      if (!chain) chain = PolicyChain{.ingress = ingress};
      for (const Value& rule : (*policy)["spec"][ingress ? "ingress" : "egress"].items())
        AddRule(rule, pod, *chain);
    }
    if (!chain) return std::nullopt;
    std::ranges::sort(chain->allow);
    const auto [from, to] = std::ranges::unique(chain->allow);
    chain->allow.erase(from, to);
    return chain;
  }

  void AddRule(const Value& rule, const Pod& pod, PolicyChain& chain) {
    std::vector<Port> ports;
    for (const Value& port : rule["ports"].items()) {
      if (auto read = ReadPort(port)) ports.push_back(std::move(*read));
    }
    if (rule["ports"].empty()) ports.emplace_back();
    const Value& peers = rule[chain.ingress ? "from" : "to"];
    for (const Port& port : ports) {
      if (peers.empty()) AddMatches(Peer(), port, pod, chain);
      for (const Value& peer : peers.items()) {
        if (const auto read = ReadPeer(peer)) AddMatches(*read, port, pod, chain);
      }
    }
  }

  void AddMatches(const Peer& peer, const Port& port, const Pod& pod, PolicyChain& chain) {
    PolicyMatch match{.range = peer.range,
                      .except = peer.except,
                      .protocol = port.protocol,
                      .first_port = port.first,
                      .last_port = port.last};
    if (!port.name.empty() && chain.ingress) {
      const auto number = pod.ports.find({port.name, *port.protocol});
      if (number == pod.ports.end()) return;
      match.first_port = match.last_port = number->second;
    }
    if (!port.name.empty() && !chain.ingress) {
      // The same name may be another number at each of them.
      for (const uint16_t number : NumbersOf(port)) {
        match.first_port = match.last_port = number;
        match.peers = PeersOf(peer, pod.ns, &port, number);
        chain.allow.push_back(match);
      }
      return;
    }
    if (peer.by_labels) match.peers = PeersOf(peer, pod.ns, nullptr, 0);
    chain.allow.push_back(std::move(match));
  }

  // That ports of this name have, of whatever pod.
  std::set<uint16_t> NumbersOf(const Port& port) const {
    std::set<uint16_t> numbers;
    for (const auto& [ns, pods] : pods_) {
      for (const Pod& pod : pods) {
        const auto number = pod.ports.find({port.name, *port.protocol});
        if (number != pod.ports.end()) numbers.insert(number->second);
      }
    }
    return numbers;
  }

  // The set of addresses of the pods that are meant; with a `port`, of those where it has this
  // number.
  std::string PeersOf(const Peer& peer, const std::string& own_ns, const Port* port,
                      uint16_t number) {
    const bool own = peer.by_labels && !peer.namespaces;
    // Neither names nor labels have the signs that keep the parts apart.
    std::string meaning = fmt::format("{}|{}|{}|", own ? "own " + own_ns : "",
                                      peer.namespaces ? TextOf(*peer.namespaces) : "",
                                      peer.pods ? TextOf(*peer.pods) : "");
    if (port != nullptr) {
      meaning += fmt::format("{} {} {}", port->name, static_cast<int>(*port->protocol), number);
    }
    const auto [known, is_new] = peer_names_.try_emplace(std::move(meaning));
    if (!is_new) return known->second;
    known->second = Unused(kPolicyPeersPrefix, known->first,
                           [this](const std::string& name) { return table_.peers.contains(name); });
    std::set<Ipv4>& addresses = table_.peers[known->second];
    for (const auto& [ns, pods] : pods_) {
      if (own ? ns != own_ns : peer.namespaces && !MatchesNamespace(*peer.namespaces, ns)) continue;
      for (const Pod& pod : pods) {
        if (peer.pods && !peer.pods->Matches(pod.labels)) continue;
        if (port != nullptr) {
          const auto has = pod.ports.find({port->name, *port->protocol});
          if (has == pod.ports.end() || has->second != number) continue;
        }
        addresses.insert(pod.address);
      }
    }
    return known->second;
  }

  static std::string TextOf(const LabelSelector& selector) {
    return selector.selects_nothing() ? "nothing" : "all " + selector.ToString();
  }

  bool MatchesNamespace(const LabelSelector& selector, const std::string& ns) const {
    const auto labels = namespaces_.find(ns);
    return labels != namespaces_.end() && selector.Matches(labels->second);
  }

  // Pods of the same rules share a chain.
  std::string Name(PolicyChain chain) {
    const auto known = chain_names_.find(chain);
    if (known != chain_names_.end()) return known->second;
    std::string text = chain.ingress ? "in" : "out";
    for (const PolicyMatch& match : chain.allow) text += "\n" + ToText(match);
    for (const std::string& other : chain.both) text += "\n" + other;
    std::string name = Unused(kPolicyChainPrefix, text, [this](const std::string& candidate) {
      return table_.chains.contains(candidate);
    });
    chain_names_[chain] = name;
    table_.chains[name] = std::move(chain);
    return name;
  }

  // The same for the same text, so that little changes from one table to the next.
  template <class Taken>
  static std::string Unused(std::string_view prefix, std::string_view text, Taken taken) {
    for (uint64_t hash = Hash64(text);; ++hash) {
      std::string name = fmt::format("{}{:016x}", prefix, hash);
      if (!taken(name)) return name;
    }
  }

  std::map<std::string, Value> namespaces_;                    // labels by name
  std::map<std::string, std::vector<Pod>> pods_;               // by namespace
  std::map<std::string, std::vector<const Value*>> policies_;  // by namespace
  std::map<std::string, std::string> peer_names_;              // by what they mean
  std::map<PolicyChain, std::string> chain_names_;
  PolicyTable table_;
};

}  // namespace

bool PolicySelects(const Value& policy, const Value& pod) {
  if (pod["spec"]["hostNetwork"].AsBool()) return false;
  if (policy["metadata"]["namespace"] != pod["metadata"]["namespace"]) return false;
  const Value& selector = policy["spec"]["podSelector"];
  if (selector.IsNull()) return true;
  const auto parsed = LabelSelector::FromJson(selector);
  // What cannot be read restricts.
  return !parsed || parsed->Matches(pod["metadata"]["labels"]);
}

PolicyTable PlanPolicies(const PolicyInput& input) { return Planner(input).Plan(input.local_pods); }

}  // namespace muster::agent
