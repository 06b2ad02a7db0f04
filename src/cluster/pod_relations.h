// src/cluster/pod_relations.h
//
// What a pod demands of the pods beside it: free host ports, affinity and anti-affinity to other
// pods, topology spread; what of that it only prefers; and who a pod is for others' selectors.
// Source: k8s.io/kubernetes pkg/scheduler/framework (types.go, plugins/interpodaffinity,
// plugins/podtopologyspread, plugins/nodeports).
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/node_affinity.h"
#include "json/projection.h"
#include "json/value.h"
#include "schema/label_selector.h"

namespace muster::cluster {

// Sorted by key. A vector: there are as many of these as pods.
using PodLabels = std::vector<std::pair<std::string, std::string>>;
PodLabels ToPodLabels(const json::Value& labels);
std::optional<std::string_view> FindLabel(const PodLabels& labels, std::string_view key);

struct PodIdentity {
  std::string ns;
  PodLabels labels;
  bool terminating = false;  // spreading does not count it any more
};

using NamespaceLabels = std::map<std::string, Labels, std::less<>>;

struct HostPort {
  std::string ip;        // "0.0.0.0" for all addresses
  std::string protocol;  // "TCP", "UDP", "SCTP"
  int64_t port = 0;
  bool operator==(const HostPort&) const = default;
};
bool Collide(const HostPort& a, const HostPort& b);

// Pods with these labels, in the listed namespaces or in those that `in_namespaces` selects.
struct PodSelector {
  schema::LabelSelector labels;
  std::vector<std::string> namespaces;
  schema::LabelSelector in_namespaces = schema::LabelSelector::Nothing();
  bool operator==(const PodSelector&) const = default;
};
bool Matches(const PodSelector& selector, const PodIdentity& pod,
             const NamespaceLabels& namespaces);

// Nodes with one value of the label `topology_key` are a domain.
struct PodTerm {
  PodSelector pods;
  std::string topology_key;
  bool operator==(const PodTerm&) const = default;
};

struct PreferredPodTerm {
  int64_t weight = 0;  // 1 to 100, negative for anti-affinity
  PodTerm term;
  bool operator==(const PreferredPodTerm&) const = default;
};

struct SpreadConstraint {
  PodTerm term;
  int64_t max_skew = 1;
  int64_t min_domains = 1;
  bool honor_affinity = true;  // nodes that the pod's node affinity excludes do not count
  bool honor_taints = false;   // nor do those whose taints it does not tolerate
  // The profile's, not the pod's: it yields to keeping off nodes with devices, and a node without
  // the label is judged by the other constraints.
  bool is_default = false;
  bool operator==(const SpreadConstraint&) const = default;
};

struct PodRelations {
  std::vector<HostPort> ports;
  std::vector<PodTerm> affinity, anti_affinity;
  std::vector<SpreadConstraint> spread;
  std::vector<PreferredPodTerm> preferred;
  std::vector<SpreadConstraint> preferred_spread;  // ScheduleAnyway

  bool IsTrivial() const {
    return ports.empty() && !LooksAtPods() && preferred.empty() && preferred_spread.empty();
  }
  // Where other pods go may open nodes for this one.
  bool LooksAtPods() const {
    return !affinity.empty() || !anti_affinity.empty() || !spread.empty();
  }
  bool operator==(const PodRelations&) const = default;
};

// A selector that cannot be read (the API server refuses it) selects nothing where pods are wanted
// near and all of them where they are to be far.
PodRelations ToPodRelations(const json::Value& pod);
// For profiles that spread: over hosts and zones among the pods with the same labels, leaving out
// labels that controllers give to single pods and revisions. Empty for a pod without such labels.
std::vector<SpreadConstraint> DefaultSpread(const PodIdentity& pod);
const json::Fields& PodRelationsFields();

}  // namespace muster::cluster
