#include "cluster/pod_relations.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/strings.h"

namespace muster::cluster {

namespace {

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kAllAddresses = "0.0.0.0";
constexpr int64_t kMaxSkew = std::numeric_limits<int32_t>::max();

// Labels that tell apart pods of one controller, or its revisions.
constexpr std::array<std::string_view, 6> kLabelsOfSinglePods = {
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index"};

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

PodTerm ToTerm(const json::Value& term, const PodIdentity& pod,
               const LabelSelector& if_unreadable) {
  PodTerm out;
  out.topology_key = term["topologyKey"].Str();
  LabelSelector labels = ToSelector(term["labelSelector"], if_unreadable);
  labels = Narrow(labels, term["matchLabelKeys"], LabelOperator::kIn, pod.labels);
  out.pods.labels = Narrow(labels, term["mismatchLabelKeys"], LabelOperator::kNotIn, pod.labels);
  out.pods.namespaces = json::ToStrings(term["namespaces"]);
  out.pods.in_namespaces = ToSelector(term["namespaceSelector"], if_unreadable);
  if (out.pods.namespaces.empty() && term["namespaceSelector"].IsNull())
    out.pods.namespaces = {pod.ns};
  return out;
}

std::vector<PodTerm> ToTerms(const json::Value& affinity, const PodIdentity& pod,
                             const LabelSelector& if_unreadable) {
  std::vector<PodTerm> out;
  for (const json::Value& term : affinity[kRequired].items())
    out.push_back(ToTerm(term, pod, if_unreadable));
  return out;
}

// A preference that cannot be read means no pods.
void AddPreferred(const json::Value& affinity, int64_t sign, const PodIdentity& pod,
                  std::vector<PreferredPodTerm>& out) {
  for (const json::Value& each : affinity[kPreferred].items()) {
    out.push_back(
        {sign * std::clamp<int64_t>(each["weight"].AsInt(), 0, cluster::kMaxPreferenceWeight),
         ToTerm(each["podAffinityTerm"], pod, LabelSelector::Nothing())});
  }
}

std::vector<SpreadConstraint> ToSpread(const json::Value& constraints, const PodIdentity& pod,
                                       bool preferred) {
  std::vector<SpreadConstraint> out;
  for (const json::Value& constraint : constraints.items()) {
    if ((constraint["whenUnsatisfiable"].AsString() == "ScheduleAnyway") != preferred) continue;
    SpreadConstraint& made = out.emplace_back();
    made.term.topology_key = constraint["topologyKey"].Str();
    made.term.pods.namespaces = {pod.ns};
    made.term.pods.labels =
        Narrow(ToSelector(constraint["labelSelector"], LabelSelector::Nothing()),
               constraint["matchLabelKeys"], LabelOperator::kIn, pod.labels);
    // Upstream counts no pods for the empty selector.
    if (made.term.pods.labels.empty()) made.term.pods.labels = LabelSelector::Nothing();
    made.max_skew = std::clamp<int64_t>(constraint["maxSkew"].AsInt(1), 1, kMaxSkew);
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
  out.reserve(labels.size());
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
  AddPreferred(near, +1, identity, out.preferred);
  AddPreferred(far, -1, identity, out.preferred);
  out.spread = ToSpread(spread, identity, false);
  out.preferred_spread = ToSpread(spread, identity, true);
  return out;
}

std::vector<SpreadConstraint> DefaultSpread(const PodIdentity& pod) {
  std::vector<LabelRequirement> labels;
  for (const auto& [key, value] : pod.labels) {
    const auto* const end = kLabelsOfSinglePods.end();
    if (std::find(kLabelsOfSinglePods.begin(), end, key) != end) continue;
    labels.push_back({key, LabelOperator::kIn, {value}});
  }
  std::vector<SpreadConstraint> out;
  if (labels.empty()) return out;
  for (const std::string_view key : {kHostnameLabel, kZoneLabel}) {
    SpreadConstraint& made = out.emplace_back();
    made.term.topology_key = key;
    made.term.pods.namespaces = {pod.ns};
    made.term.pods.labels = LabelSelector(labels);
    made.is_default = true;
  }
  return out;
}

const json::Fields& PodRelationsFields() {
  static const json::Fields fields{{"metadata", "labels"},
                                   {"spec", "containers", "ports"},
                                   {"spec", "initContainers", "ports"},
                                   {"spec", "initContainers", "restartPolicy"},
                                   {"spec", "affinity", "podAffinity", kRequired},
                                   {"spec", "affinity", "podAffinity", kPreferred},
                                   {"spec", "affinity", "podAntiAffinity", kRequired},
                                   {"spec", "affinity", "podAntiAffinity", kPreferred},
                                   {"spec", "topologySpreadConstraints"}};
  return fields;
}

}  // namespace muster::cluster
