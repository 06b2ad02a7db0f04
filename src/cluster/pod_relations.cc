#include "cluster/pod_relations.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::cluster {

namespace {

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kAllAddresses = "0.0.0.0";

using schema::LabelOperator;
using schema::LabelRequirement;
using schema::LabelSelector;

LabelSelector ToSelector(const json::Value& selector, const LabelSelector& if_unreadable) {
  Result<LabelSelector> out = LabelSelector::FromJson(selector);
  return out.has_value() ? *std::move(out) : if_unreadable;
}

// `keys` of the pod's own labels narrow the selector: to pods with the same value, or with another.
LabelSelector Narrow(const LabelSelector& selector, const json::Value& keys, LabelOperator op,
                     const PodLabels& own) {
  if (selector.selects_nothing()) return selector;
  std::vector<LabelRequirement> requirements = selector.requirements();
  for (const json::Value& key : keys.items()) {
    if (const auto value = FindLabel(own, key.AsString()))
      requirements.push_back({key.Str(), op, {std::string(*value)}});
  }
  return LabelSelector(std::move(requirements));
}

std::vector<PodTerm> ToTerms(const json::Value& affinity, const PodIdentity& pod,
                             const LabelSelector& if_unreadable) {
  std::vector<PodTerm> out;
  for (const json::Value& term : affinity[kRequired].items()) {
    PodTerm& made = out.emplace_back();
    made.topology_key = term["topologyKey"].Str();
    LabelSelector labels = ToSelector(term["labelSelector"], if_unreadable);
    labels = Narrow(labels, term["matchLabelKeys"], LabelOperator::kIn, pod.labels);
    made.pods.labels = Narrow(labels, term["mismatchLabelKeys"], LabelOperator::kNotIn, pod.labels);
    made.pods.namespaces = json::ToStrings(term["namespaces"]);
    made.pods.in_namespaces = ToSelector(term["namespaceSelector"], if_unreadable);
    if (made.pods.namespaces.empty() && term["namespaceSelector"].IsNull())
      made.pods.namespaces = {pod.ns};
  }
  return out;
}

std::vector<SpreadConstraint> ToSpread(const json::Value& constraints, const PodIdentity& pod) {
  std::vector<SpreadConstraint> out;
  for (const json::Value& constraint : constraints.items()) {
    if (constraint["whenUnsatisfiable"].AsString() == "ScheduleAnyway") continue;
    SpreadConstraint& made = out.emplace_back();
    made.term.topology_key = constraint["topologyKey"].Str();
    made.term.pods.namespaces = {pod.ns};
    made.term.pods.labels =
        Narrow(ToSelector(constraint["labelSelector"], LabelSelector::Nothing()),
               constraint["matchLabelKeys"], LabelOperator::kIn, pod.labels);
    // Upstream counts no pods for the empty selector.
    if (made.term.pods.labels.empty()) made.term.pods.labels = LabelSelector::Nothing();
    made.max_skew = constraint["maxSkew"].AsInt(1);
    made.min_domains = constraint["minDomains"].AsInt(1);
    made.honor_affinity = constraint["nodeAffinityPolicy"].AsString() != "Ignore";
    made.honor_taints = constraint["nodeTaintsPolicy"].AsString() == "Honor";
  }
  return out;
}

void AddPorts(const json::Value& container, std::vector<HostPort>& out) {
  for (const json::Value& port : container["ports"].items()) {
    const int64_t number = port["hostPort"].AsInt();
    if (number <= 0) continue;
    HostPort& made = out.emplace_back();
    made.ip = port["hostIP"].Str();
    if (made.ip.empty()) made.ip = kAllAddresses;
    made.protocol = port["protocol"].Str("TCP");
    made.port = number;
  }
}

}  // namespace

PodLabels ToPodLabels(const json::Value& labels) {
  PodLabels out;
  for (const auto& [key, value] : labels.members()) out.emplace_back(key, value.Str());
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<std::string_view> FindLabel(const PodLabels& labels, std::string_view key) {
  for (const auto& [name, value] : labels) {
    if (name == key) return value;
  }
  return std::nullopt;
}

bool Collide(const HostPort& a, const HostPort& b) {
  return a.port == b.port && a.protocol == b.protocol &&
         (a.ip == b.ip || a.ip == kAllAddresses || b.ip == kAllAddresses);
}

bool Matches(const PodSelector& selector, const PodIdentity& pod,
             const NamespaceLabels& namespaces) {
  const auto in_selected_namespace = [&] {
    if (selector.in_namespaces.selects_nothing()) return false;
    const auto found = namespaces.find(pod.ns);
    return selector.in_namespaces.MatchesBy(
        [&](std::string_view key) -> std::optional<std::string_view> {
          if (found == namespaces.end()) return std::nullopt;
          const auto label = found->second.find(key);
          if (label == found->second.end()) return std::nullopt;
          return label->second;
        });
  };
  const auto listed = std::find(selector.namespaces.begin(), selector.namespaces.end(), pod.ns);
  if (listed == selector.namespaces.end() && !in_selected_namespace()) return false;
  return selector.labels.MatchesBy(
      [&](std::string_view key) { return FindLabel(pod.labels, key); });
}

PodRelations ToPodRelations(const json::Value& pod) {
  const json::Value& spec = pod["spec"];
  PodRelations out;
  for (const json::Value& container : spec["containers"].items()) AddPorts(container, out.ports);
  for (const json::Value& container : spec["initContainers"].items()) {
    // A sidecar runs as long as the pod; the others are gone before the port is needed.
    if (container["restartPolicy"].AsString() == "Always") AddPorts(container, out.ports);
  }
  const json::Value& affinity = spec["affinity"];
  const json::Value& near = affinity["podAffinity"];
  const json::Value& far = affinity["podAntiAffinity"];
  const json::Value& spread = spec["topologySpreadConstraints"];
  if (near.IsNull() && far.IsNull() && spread.IsNull()) return out;
  const PodIdentity identity{pod["metadata"]["namespace"].Str(),
                             ToPodLabels(pod["metadata"]["labels"])};
  out.affinity = ToTerms(near, identity, LabelSelector::Nothing());
  out.anti_affinity = ToTerms(far, identity, LabelSelector());
  out.spread = ToSpread(spread, identity);
  return out;
}

const json::Fields& PodRelationsFields() {
  static const json::Fields fields{{"metadata", "labels"},
                                   {"spec", "containers", "ports"},
                                   {"spec", "initContainers", "ports"},
                                   {"spec", "initContainers", "restartPolicy"},
                                   {"spec", "affinity", "podAffinity", kRequired},
                                   {"spec", "affinity", "podAntiAffinity", kRequired},
                                   {"spec", "topologySpreadConstraints"}};
  return fields;
}

}  // namespace muster::cluster
