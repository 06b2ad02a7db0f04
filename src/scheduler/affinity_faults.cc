#include "scheduler/affinity_faults.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::scheduler {

using cluster::NodeAffinity;
using cluster::Requirement;
using cluster::SelectorOperator;

namespace {

// Values of a requirement that a text shows.
constexpr size_t kMaxValuesShown = 4;

std::string OperatorName(SelectorOperator op) {
  switch (op) {
    case SelectorOperator::kIn:
      return "In";
    case SelectorOperator::kNotIn:
      return "NotIn";
    case SelectorOperator::kExists:
      return "Exists";
    case SelectorOperator::kDoesNotExist:
      return "DoesNotExist";
    case SelectorOperator::kGt:
      return "Gt";
    case SelectorOperator::kLt:
      return "Lt";
    case SelectorOperator::kInvalid:
      break;
  }
  return "an unknown operator";
}

// "a In [x, y]"
std::string TextOf(const Requirement& requirement) {
  std::string out = requirement.key + " " + OperatorName(requirement.op);
  if (requirement.values.empty()) return out;
  const size_t shown = std::min(requirement.values.size(), kMaxValuesShown);
  const std::vector<std::string> values(requirement.values.begin(),
                                        requirement.values.begin() + static_cast<ptrdiff_t>(shown));
  const size_t more = requirement.values.size() - shown;
  return fmt::format("{} [{}{}]", out, Join(values, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

bool NeedsTheLabel(const Requirement& requirement) {
  return requirement.op != SelectorOperator::kNotIn &&
         requirement.op != SelectorOperator::kDoesNotExist;
}

// A node with this value of the label meets the requirement.
bool Allows(const Requirement& requirement, const std::string& value) {
  const cluster::Labels labels = {{requirement.key, value}};
  NodeAffinity only;
  only.has_terms = true;
  only.terms.push_back({{requirement}, {}});
  return cluster::Matches(only, {labels, "", false, ""});
}

std::string Named(const std::vector<const Requirement*>& parts) {
  std::vector<std::string> texts;
  for (const Requirement* part : parts) texts.push_back(TextOf(*part));
  const std::string last = std::move(texts.back());
  texts.pop_back();
  return texts.empty() ? last : Join(texts, ", ") + " and " + last;
}

// Of requirements of one label: those that exclude each other, or nothing.
std::string Conflict(const std::vector<const Requirement*>& all) {
  const auto of = [&](auto holds) {
    const auto found = std::find_if(all.begin(), all.end(), holds);
    return found == all.end() ? nullptr : *found;
  };
  const Requirement* absent =
      of([](const Requirement* each) { return each->op == SelectorOperator::kDoesNotExist; });
  const Requirement* present = of([](const Requirement* each) { return NeedsTheLabel(*each); });
  if (absent != nullptr && present != nullptr) return Named({present, absent});
  const Requirement* first =
      of([](const Requirement* each) { return each->op == SelectorOperator::kIn; });
  if (first != nullptr) {
    std::vector<std::string> left = first->values;
    std::vector<const Requirement*> narrowing = {first};
    for (const Requirement* each : all) {
      if (each == first) continue;
      const size_t before = left.size();
      std::erase_if(left, [&](const std::string& value) { return !Allows(*each, value); });
      if (left.size() < before) narrowing.push_back(each);
    }
    return left.empty() && narrowing.size() > 1 ? Named(narrowing) : "";
  }
  for (const Requirement* above : all) {
    for (const Requirement* below : all) {
      if (above->op != SelectorOperator::kGt || below->op != SelectorOperator::kLt) continue;
      const auto least = ParseInt(above->values.front()), most = ParseInt(below->values.front());
      if (least && most && *least >= *most - 1) return Named({above, below});
    }
  }
  return "";
}

Requirement FromSelector(const std::pair<std::string, std::string>& pair) {
  return {pair.first, SelectorOperator::kIn, {pair.second}};
}

std::string ConflictInTerm(const std::vector<Requirement>& selector,
                           const cluster::NodeSelectorTerm& term) {
  std::map<std::string, std::vector<const Requirement*>> by_key;
  for (const auto* list : {&selector, &term.expressions}) {
    for (const Requirement& each : *list) by_key[each.key].push_back(&each);
  }
  std::vector<const Requirement*> fields;
  for (const Requirement& each : term.fields) fields.push_back(&each);
  if (std::string conflict = Conflict(fields); !conflict.empty()) return conflict;
  for (const auto& [key, requirements] : by_key) {
    if (std::string conflict = Conflict(requirements); !conflict.empty()) return conflict;
  }
  return "";
}

}  // namespace

std::string ContradictionIn(const NodeAffinity& affinity) {
  std::vector<Requirement> selector;
  for (const auto& pair : affinity.selector) selector.push_back(FromSelector(pair));
  std::string first;
  // Any term will do, so all of them must fail.
  for (const cluster::NodeSelectorTerm& term : affinity.terms) {
    std::string conflict = ConflictInTerm(selector, term);
    if (conflict.empty()) return "";
    if (first.empty()) first = std::move(conflict);
  }
  return first.empty() ? "" : "no node can ever match: it requires " + first;
}

std::string UnmetRequirement(const NodeAffinity& affinity,
                             const cluster::ClusterSnapshot& snapshot) {
  if (affinity.terms.size() > 1) return "";
  std::vector<cluster::NodeSelectorTerm> single;
  for (const auto& pair : affinity.selector) single.push_back({{FromSelector(pair)}, {}});
  for (const cluster::NodeSelectorTerm& term : affinity.terms) {
    for (const Requirement& each : term.expressions) single.push_back({{each}, {}});
    for (const Requirement& each : term.fields) single.push_back({{}, {each}});
  }
  for (const cluster::NodeSelectorTerm& term : single) {
    NodeAffinity only;
    only.has_terms = true;
    only.terms = {term};
    bool met = false;
    for (cluster::NodeIndex node = 0; node < snapshot.node_slots() && !met; ++node)
      met = snapshot.HasNode(node) && cluster::Matches(only, snapshot.Node(node).labels_view());
    if (!met)
      return "no node has " + TextOf(term.fields.empty() ? term.expressions[0] : term.fields[0]);
  }
  return "";
}

}  // namespace muster::scheduler
