// src/scheduler/plain_rules_test_support.h
//
// A second, plain implementation of the filters, written from the Kubernetes documentation and on
// the objects as users write them: slow loops over all pods, nothing shared with rules.* and
// pod_rules.*. For the oracles.
//
// Thread: any (pure functions).

#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "json/parse.h"
#include "json/value.h"
#include "scheduler/plain_volumes_test_support.h"

namespace muster::scheduler::plain {

using json::Value;

struct World {
  std::vector<Value> nodes;
  std::map<std::string, Value> pods;  // by name; those with spec.nodeName run
  std::map<std::string, Value> namespace_labels;
  Storage storage;
};

using Text = std::optional<std::string>;

inline Text Label(const Value& labels, const std::string& key) {
  if (!labels.Has(key)) return std::nullopt;
  return labels[key].Str();
}

inline bool IsOneOf(const std::string& text, const Value& list) {
  for (const Value& each : list.items()) {
    if (each.AsString() == text) return true;
  }
  return false;
}

inline std::optional<long> Integer(const std::string& text) {
  char* end = nullptr;
  const long number = strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') return std::nullopt;
  return number;
}

inline bool Holds(const Value& expression, const Text& value) {
  const std::string op = expression["operator"].Str();
  const Value& values = expression["values"];
  if (op == "In") return value && IsOneOf(*value, values);
  if (op == "NotIn") return !value || !IsOneOf(*value, values);
  if (op == "Exists") return value.has_value();
  if (op == "DoesNotExist") return !value.has_value();
  const auto have = Integer(value.value_or(""));
  const auto limit = Integer(values.At(0).Str());
  if (!have || !limit) return false;
  return op == "Gt" ? *have > *limit : *have < *limit;
}

inline bool Selects(const Value& selector, const Value& labels) {
  if (selector.IsNull()) return false;
  for (const auto& [key, value] : selector["matchLabels"].members()) {
    if (Label(labels, std::string(key)) != value.Str()) return false;
  }
  for (const Value& expression : selector["matchExpressions"].items()) {
    if (!Holds(expression, Label(labels, expression["key"].Str()))) return false;
  }
  return true;
}

inline bool TermHolds(const Value& term, const Value& node) {
  bool holds = !term["matchExpressions"].empty() || !term["matchFields"].empty();
  for (const Value& expression : term["matchExpressions"].items())
    holds = holds && Holds(expression, Label(node["metadata"]["labels"], expression["key"].Str()));
  for (const Value& field : term["matchFields"].items())
    holds = holds && Holds(field, node["metadata"]["name"].Str());
  return holds;
}

inline bool MatchesNodeAffinity(const Value& pod, const Value& node) {
  const Value& labels = node["metadata"]["labels"];
  for (const auto& [key, value] : pod["spec"]["nodeSelector"].members()) {
    if (Label(labels, std::string(key)) != value.Str()) return false;
  }
  const Value& required =
      pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  if (required.IsNull()) return true;
  for (const Value& term : required["nodeSelectorTerms"].items()) {
    if (TermHolds(term, node)) return true;
  }
  return false;
}

inline bool Tolerated(const Value& pod, const Value& taint) {
  for (const Value& toleration : pod["spec"]["tolerations"].items()) {
    const bool exists = toleration["operator"].AsString() == "Exists";
    const std::string effect = toleration["effect"].Str();
    if (!effect.empty() && effect != taint["effect"].Str()) continue;
    if (toleration["key"].Str().empty()
            ? exists
            : toleration["key"].Str() == taint["key"].Str() &&
                  (exists || toleration["value"].Str() == taint["value"].Str())) {
      return true;
    }
  }
  return false;
}

// The first taint that keeps the pod away.
inline Text Untolerated(const Value& pod, const Value& node) {
  for (const Value& taint : node["spec"]["taints"].items()) {
    if (taint["effect"].AsString() == "PreferNoSchedule" || Tolerated(pod, taint)) continue;
    return fmt::format("{{{}: {}}}", taint["key"].Str(), taint["value"].Str());
  }
  return std::nullopt;
}

// cpu in thousandths, all else in ones; the clusters below write only such amounts.
inline long Amount(const Value& resources, const std::string& name) {
  const std::string text = resources[name].Str("0");
  if (text.ends_with("m")) return std::stol(text);
  if (text.ends_with("Mi")) return std::stol(text) << 20;
  return std::stol(text) * (name == "cpu" ? 1000 : 1);
}

inline long Demand(const Value& pod, const std::string& name) {
  long running = 0;
  long sidecars = 0;
  long starting = 0;
  for (const Value& container : pod["spec"]["initContainers"].items()) {
    const long own = Amount(container["resources"]["requests"], name);
    if (container["restartPolicy"].AsString() == "Always") {
      sidecars += own;
      starting = std::max(starting, sidecars);
    } else {
      starting = std::max(starting, sidecars + own);
    }
  }
  for (const Value& container : pod["spec"]["containers"].items())
    running += Amount(container["resources"]["requests"], name);
  return std::max(running + sidecars, starting) + Amount(pod["spec"]["overhead"], name);
}

inline bool RunsOn(const Value& pod, const Value& node) {
  const std::string phase = pod["status"]["phase"].Str();
  return pod["spec"]["nodeName"].Str() == node["metadata"]["name"].Str() && phase != "Succeeded" &&
         phase != "Failed";
}

inline std::vector<std::string> Lacking(const World& world, const Value& pod, const Value& node) {
  std::vector<std::string> out;
  for (const char* name : {"cpu", "memory", "nvidia.com/gpu", "pods"}) {
    const bool counts_pods = std::string(name) == "pods";
    long free = Amount(node["status"]["allocatable"], name);
    for (const auto& [key, other] : world.pods) {
      if (RunsOn(other, node)) free -= counts_pods ? 1 : Demand(other, name);
    }
    const long wanted = counts_pods ? 1 : Demand(pod, name);
    if (wanted > 0 && wanted > free)
      out.push_back(counts_pods ? "Too many pods" : fmt::format("Insufficient {}", name));
  }
  return out;
}

inline std::vector<Value> HostPorts(const Value& pod) {
  std::vector<Value> out;
  const auto take = [&](const Value& container) {
    for (const Value& port : container["ports"].items()) {
      if (port["hostPort"].AsInt() > 0) out.push_back(port);
    }
  };
  for (const Value& container : pod["spec"]["containers"].items()) take(container);
  for (const Value& container : pod["spec"]["initContainers"].items()) {
    if (container["restartPolicy"].AsString() == "Always") take(container);
  }
  return out;
}

inline bool PortsAreTaken(const World& world, const Value& pod, const Value& node) {
  for (const auto& [key, other] : world.pods) {
    if (!RunsOn(other, node)) continue;
    for (const Value& a : HostPorts(pod)) {
      for (const Value& b : HostPorts(other)) {
        const std::string ip_a = a["hostIP"].Str("0.0.0.0");
        const std::string ip_b = b["hostIP"].Str("0.0.0.0");
        const bool same_ip = ip_a == ip_b || ip_a == "0.0.0.0" || ip_b == "0.0.0.0";
        if (same_ip && a["hostPort"].AsInt() == b["hostPort"].AsInt() &&
            a["protocol"].Str("TCP") == b["protocol"].Str("TCP")) {
          return true;
        }
      }
    }
  }
  return false;
}

inline bool AgreeOn(const Value& keys, const Value& a, const Value& b) {
  for (const Value& key : keys.items()) {
    const Text value = Label(a, key.Str());
    if (value && Label(b, key.Str()) != value) return false;
  }
  return true;
}

inline bool DifferOn(const Value& keys, const Value& a, const Value& b) {
  for (const Value& key : keys.items()) {
    const Text value = Label(a, key.Str());
    if (value && Label(b, key.Str()) == value) return false;
  }
  return true;
}

// The term of `owner` means `other`.
inline bool TermMeans(const World& world, const Value& owner, const Value& term,
                      const Value& other) {
  const std::string ns = other["metadata"]["namespace"].Str();
  const Value& labels = other["metadata"]["labels"];
  const Value& own = owner["metadata"]["labels"];
  const Value& by_selector = term["namespaceSelector"];
  bool in_namespace = IsOneOf(ns, term["namespaces"]);
  if (term["namespaces"].empty() && by_selector.IsNull())
    in_namespace = ns == owner["metadata"]["namespace"].Str();
  in_namespace |= Selects(by_selector, world.namespace_labels.at(ns));
  return in_namespace && Selects(term["labelSelector"], labels) &&
         AgreeOn(term["matchLabelKeys"], own, labels) &&
         DifferOn(term["mismatchLabelKeys"], own, labels);
}

inline const Value& Required(const Value& pod, const char* kind) {
  return pod["spec"]["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"];
}

inline bool AllTermsMean(const World& world, const Value& owner, const Value& other) {
  for (const Value& term : Required(owner, "podAffinity").items()) {
    if (!TermMeans(world, owner, term, other)) return false;
  }
  return true;
}

// Both nodes have the label, with one value.
inline bool InOneDomain(const std::string& key, const Value& a, const Value& b) {
  const Text value = Label(a["metadata"]["labels"], key);
  return value && value == Label(b["metadata"]["labels"], key);
}

inline bool SuitsAffinity(const World& world, const Value& pod, const Value& node) {
  const Value& terms = Required(pod, "podAffinity");
  bool some_anywhere = false;
  bool all_here = true;
  for (const Value& term : terms.items()) {
    const std::string key = term["topologyKey"].Str();
    if (!Label(node["metadata"]["labels"], key)) return false;
    bool here = false;
    for (const auto& [name, other] : world.pods) {
      for (const Value& place : world.nodes) {
        if (!RunsOn(other, place) || !AllTermsMean(world, pod, other)) continue;
        some_anywhere |= Label(place["metadata"]["labels"], key).has_value();
        here |= InOneDomain(key, node, place);
      }
    }
    all_here &= here;
  }
  return all_here || (!some_anywhere && AllTermsMean(world, pod, pod));
}

// A term of `owner` forbids `other` next to `place`, seen from `node`.
inline bool Forbids(const World& world, const Value& owner, const Value& other, const Value& place,
                    const Value& node) {
  for (const Value& term : Required(owner, "podAntiAffinity").items()) {
    if (TermMeans(world, owner, term, other) && InOneDomain(term["topologyKey"].Str(), place, node))
      return true;
  }
  return false;
}

inline Text AffinityReason(const World& world, const Value& pod, const Value& node) {
  if (!SuitsAffinity(world, pod, node)) return "node(s) didn't match pod affinity rules";
  bool forbids = false;
  bool is_forbidden = false;
  for (const auto& [name, other] : world.pods) {
    for (const Value& place : world.nodes) {
      if (!RunsOn(other, place)) continue;
      forbids |= Forbids(world, pod, other, place, node);
      is_forbidden |= Forbids(world, other, pod, place, node);
    }
  }
  if (forbids) return "node(s) didn't match pod anti-affinity rules";
  if (is_forbidden) return "node(s) didn't satisfy existing pods anti-affinity rules";
  return std::nullopt;
}

inline std::vector<Value> Constraints(const Value& pod, const char* when_unsatisfiable) {
  std::vector<Value> out;
  for (const Value& constraint : pod["spec"]["topologySpreadConstraints"].items()) {
    if (constraint["whenUnsatisfiable"].AsString() == when_unsatisfiable) out.push_back(constraint);
  }
  return out;
}

inline bool HasAllKeys(const std::vector<Value>& constraints, const Value& node) {
  for (const Value& each : constraints) {
    if (!Label(node["metadata"]["labels"], each["topologyKey"].Str())) return false;
  }
  return true;
}

inline bool CountsForSpread(const Value& pod, const Value& constraint, const Value& node) {
  if (constraint["nodeAffinityPolicy"].Str("Honor") == "Honor" && !MatchesNodeAffinity(pod, node))
    return false;
  return constraint["nodeTaintsPolicy"].Str("Ignore") == "Ignore" || !Untolerated(pod, node);
}

// Upstream counts no pods for the selector {}.
inline bool SpreadMeans(const Value& pod, const Value& constraint, const Value& other) {
  const Value& selector = constraint["labelSelector"];
  if (selector["matchLabels"].empty() && selector["matchExpressions"].empty()) return false;
  return other["metadata"]["namespace"].Str() == pod["metadata"]["namespace"].Str() &&
         Selects(selector, other["metadata"]["labels"]) &&
         AgreeOn(constraint["matchLabelKeys"], pod["metadata"]["labels"],
                 other["metadata"]["labels"]);
}

inline Text SpreadReason(const World& world, const Value& pod, const Value& node) {
  const std::vector<Value> constraints = Constraints(pod, "DoNotSchedule");
  for (const Value& constraint : constraints) {
    const std::string key = constraint["topologyKey"].Str();
    const Text here = Label(node["metadata"]["labels"], key);
    if (!here)
      return "node(s) didn't match pod topology spread constraints (missing required label)";
    std::map<std::string, long> count;
    for (const Value& place : world.nodes) {
      if (!HasAllKeys(constraints, place) || !CountsForSpread(pod, constraint, place)) continue;
      long& domain = count[*Label(place["metadata"]["labels"], key)];
      for (const auto& [name, other] : world.pods) {
        if (RunsOn(other, place) && !other["metadata"].Has("deletionTimestamp") &&
            SpreadMeans(pod, constraint, other))
          ++domain;
      }
    }
    long least = count.empty() ? 0 : count.begin()->second;
    for (const auto& [domain, pods] : count) least = std::min(least, pods);
    if (static_cast<long>(count.size()) < constraint["minDomains"].AsInt(1)) least = 0;
    const long itself = SpreadMeans(pod, constraint, pod) ? 1 : 0;
    const long pods_here = count.contains(*here) ? count[*here] : 0;
    if (pods_here + itself - least > constraint["maxSkew"].AsInt())
      return "node(s) didn't match pod topology spread constraints";
  }
  return std::nullopt;
}

// Why the node's own state keeps the pod away.
inline Text OwnReason(const Value& pod, const Value& node) {
  const Value cordon =
      *json::Parse(R"({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})");
  if (node["spec"]["unschedulable"].AsBool() && !Tolerated(pod, cordon))
    return "node(s) were unschedulable";
  if (const Text taint = Untolerated(pod, node)) return "node(s) had untolerated taint " + *taint;
  if (!MatchesNodeAffinity(pod, node)) return "node(s) didn't match Pod's node affinity/selector";
  return std::nullopt;
}

// Why the node does not take the pod; empty: it does. In the order of kube-scheduler's filters.
// How many pods that run name each claim.
inline std::map<std::string, int> ClaimUsers(const World& world) {
  std::map<std::string, int> users;
  for (const auto& [name, pod] : world.pods) {
    for (const Value& node : world.nodes) {
      if (!RunsOn(pod, node)) continue;
      for (const Named& named : ClaimsOf(pod)) ++users[named.key];
    }
  }
  return users;
}

inline std::vector<std::string> Reasons(const World& world, const Value& pod, const Value& node) {
  if (world.storage.kept) {
    if (const Text fault = ClaimFault(world.storage, pod)) return {*fault};
  }
  if (const Text why = OwnReason(pod, node)) return {*why};
  if (PortsAreTaken(world, pod, node))
    return {"node(s) didn't have free ports for the requested pod ports"};
  if (const auto lacking = Lacking(world, pod, node); !lacking.empty()) return lacking;
  if (world.storage.kept) {
    const auto faults = VolumeReasons(world.storage, pod, node, ClaimUsers(world));
    if (!faults.empty()) return faults;
  }
  if (const Text why = SpreadReason(world, pod, node)) return {*why};
  if (const Text why = AffinityReason(world, pod, node)) return {*why};
  return {};
}

}  // namespace muster::scheduler::plain
