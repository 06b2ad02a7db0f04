#include "cluster/node_affinity.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::cluster {

namespace {

SelectorOperator ToOperator(std::string_view text) {
  if (text == "In") return SelectorOperator::kIn;
  if (text == "NotIn") return SelectorOperator::kNotIn;
  if (text == "Exists") return SelectorOperator::kExists;
  if (text == "DoesNotExist") return SelectorOperator::kDoesNotExist;
  if (text == "Gt") return SelectorOperator::kGt;
  if (text == "Lt") return SelectorOperator::kLt;
  return SelectorOperator::kInvalid;
}

std::vector<Requirement> ToRequirements(const json::Value& requirements) {
  std::vector<Requirement> out;
  for (const json::Value& requirement : requirements.items()) {
    out.push_back({requirement["key"].Str(), ToOperator(requirement["operator"].AsString()),
                   json::ToStrings(requirement["values"])});
  }
  return out;
}

bool Holds(const Requirement& requirement, std::optional<std::string_view> value) {
  const auto listed = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *value) !=
           requirement.values.end();
  };
  switch (requirement.op) {
    case SelectorOperator::kIn:
      return value.has_value() && listed();
    case SelectorOperator::kNotIn:
      return !value.has_value() || !listed();
    case SelectorOperator::kExists:
      return value.has_value();
    case SelectorOperator::kDoesNotExist:
      return !value.has_value();
    case SelectorOperator::kGt:
    case SelectorOperator::kLt: {
      if (!value.has_value() || requirement.values.size() != 1) return false;
      const std::optional<int64_t> have = ParseInt(*value);
      const std::optional<int64_t> limit = ParseInt(requirement.values[0]);
      if (!have.has_value() || !limit.has_value()) return false;
      return requirement.op == SelectorOperator::kGt ? *have > *limit : *have < *limit;
    }
    case SelectorOperator::kInvalid:
      break;
  }
  return false;
}

NodeSelectorTerm ToTerm(const json::Value& term) {
  return {ToRequirements(term["matchExpressions"]), ToRequirements(term["matchFields"])};
}

bool NamesNodes(const NodeSelectorTerm& term) {
  return !term.fields.empty() ||
         std::any_of(term.expressions.begin(), term.expressions.end(),
                     [](const Requirement& each) { return each.key == kHostnameLabel; });
}

bool Holds(const NodeSelectorTerm& term, const NodeLabels& node) {
  if (term.expressions.empty() && term.fields.empty()) return false;
  for (const Requirement& requirement : term.expressions) {
    if (!Holds(requirement, node.Find(requirement.key))) return false;
  }
  for (const Requirement& requirement : term.fields) {
    if (requirement.key != "metadata.name" || !Holds(requirement, node.name)) return false;
  }
  return true;
}

}  // namespace

Labels ToLabels(const json::Value& labels) {
  Labels out;
  for (const auto& [key, value] : labels.members()) out.emplace(key, value.Str());
  return out;
}

bool NodeAffinity::NamesNodes() const {
  for (const auto& [key, value] : selector) {
    if (key == kHostnameLabel) return true;
  }
  return std::any_of(terms.begin(), terms.end(), cluster::NamesNodes) ||
         std::any_of(preferred.begin(), preferred.end(),
                     [](const auto& each) { return cluster::NamesNodes(each.term); });
}

NodeAffinity ToRequiredNodes(const json::Value& node_selector) {
  NodeAffinity out;
  out.has_terms = node_selector.IsObject();
  for (const json::Value& term : node_selector["nodeSelectorTerms"].items())
    out.terms.push_back(ToTerm(term));
  return out;
}

NodeAffinity ToNodeAffinity(const json::Value& pod_spec) {
  NodeAffinity out = ToRequiredNodes(pod_spec.Path(
      {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"}));
  for (const auto& [key, value] : pod_spec["nodeSelector"].members())
    out.selector.emplace_back(key, value.Str());
  std::sort(out.selector.begin(), out.selector.end());
  const json::Value& preferred = pod_spec.Path(
      {"affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"});
  for (const json::Value& each : preferred.items()) {
    out.preferred.push_back({std::clamp<int64_t>(each["weight"].AsInt(), 0, kMaxPreferenceWeight),
                             ToTerm(each["preference"])});
  }
  return out;
}

std::optional<std::string_view> NodeLabels::Find(std::string_view key) const {
  if (key == kHostnameLabel) return has_hostname ? std::optional(hostname) : std::nullopt;
  const auto found = shared.find(key);
  return found == shared.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

bool Matches(const NodeAffinity& affinity, const NodeLabels& node) {
  for (const auto& [key, value] : affinity.selector) {
    if (node.Find(key) != value) return false;
  }
  if (!affinity.has_terms) return true;
  return std::any_of(affinity.terms.begin(), affinity.terms.end(),
                     [&](const NodeSelectorTerm& term) { return Holds(term, node); });
}

int64_t PreferredWeight(const NodeAffinity& affinity, const NodeLabels& node) {
  int64_t sum = 0;
  for (const PreferredNodeTerm& each : affinity.preferred) {
    if (Holds(each.term, node)) sum += each.weight;
  }
  return sum;
}

}  // namespace muster::cluster
