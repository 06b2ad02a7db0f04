// src/cluster/node_affinity.h
//
// spec.nodeSelector and spec.affinity.nodeAffinity: what a node must have, and what it had better
// have.
// Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity.
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

#include "json/value.h"

namespace muster::cluster {

inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";
inline constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";

using Labels = std::map<std::string, std::string, std::less<>>;
Labels ToLabels(const json::Value& labels);

enum class SelectorOperator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt, kInvalid };

struct Requirement {
  std::string key;
  SelectorOperator op = SelectorOperator::kInvalid;
  std::vector<std::string> values;
  bool operator==(const Requirement&) const = default;
};

// All requirements of a term must hold; an empty term holds nowhere.
struct NodeSelectorTerm {
  std::vector<Requirement> expressions;  // of labels
  std::vector<Requirement> fields;       // of metadata.name, the only field
  bool operator==(const NodeSelectorTerm&) const = default;
};

inline constexpr int64_t kMaxPreferenceWeight = 100;  // upstream's; a larger one counts as this

struct PreferredNodeTerm {
  int64_t weight = 0;  // 1 to 100
  NodeSelectorTerm term;
  bool operator==(const PreferredNodeTerm&) const = default;
};

struct NodeAffinity {
  std::vector<std::pair<std::string, std::string>> selector;  // every pair must be a label
  bool has_terms = false;  // required terms are given: one of them must hold
  std::vector<NodeSelectorTerm> terms;
  std::vector<PreferredNodeTerm> preferred;

  // Every node matches.
  bool IsTrivial() const { return selector.empty() && !has_terms; }
  // Looks at the node's name or at its hostname label, so nodes of one class can differ.
  bool NamesNodes() const;
  bool operator==(const NodeAffinity&) const = default;
};

NodeAffinity ToNodeAffinity(const json::Value& pod_spec);
// Required terms alone, of a v1.NodeSelector.
NodeAffinity ToRequiredNodes(const json::Value& node_selector);

// A node as affinity sees it: the labels that it shares with its class, and its own two names.
struct NodeLabels {
  const Labels& shared;       // without the hostname label
  std::string_view hostname;  // the hostname label; meaningful if has_hostname
  bool has_hostname = false;
  std::string_view name;  // metadata.name
  std::optional<std::string_view> Find(std::string_view key) const;
};

bool Matches(const NodeAffinity& affinity, const NodeLabels& node);
// The sum of the weights of the preferred terms that hold.
int64_t PreferredWeight(const NodeAffinity& affinity, const NodeLabels& node);

}  // namespace muster::cluster
