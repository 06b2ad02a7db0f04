#include "controllers/pods/selected_objects.h"

#include <set>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace muster::controllers {
namespace {

using client::ObjectKey;
using schema::LabelOperator;
using schema::LabelRequirement;

constexpr char kLabelIndex[] = "label-pair";
constexpr char kSelectorIndex[] = "selector-pair";

std::string PairKey(std::string_view ns, std::string_view label, std::string_view value) {
  return fmt::format("{}/{}={}", ns, label, value);
}

// Of selectors that demand no label with one value; no label has an empty name.
std::string AnyKey(std::string_view ns) { return fmt::format("{}/", ns); }

std::vector<std::string> PairsOf(std::string_view ns, const json::Value& labels) {
  std::vector<std::string> keys;
  for (const json::Member& label : labels.members())
    keys.push_back(PairKey(ns, label.first, label.second.AsString()));
  return keys;
}

std::vector<std::string> DemandedPairs(std::string_view ns, const schema::LabelSelector& selector) {
  std::vector<std::string> keys;
  for (const LabelRequirement& requirement : selector.requirements()) {
    if (requirement.op == LabelOperator::kIn && requirement.values.size() == 1)
      keys.push_back(PairKey(ns, requirement.key, requirement.values.front()));
  }
  return keys;
}

void Keep(const client::Informer& objects, const ObjectKey& key,
          const schema::LabelSelector& selector, std::vector<ObjectKey>& out) {
  if (selector.Matches((*objects.Find(key))["metadata"]["labels"])) out.push_back(key);
}

}  // namespace

void IndexByLabels(client::Informer& objects) {
  objects.AddIndex(kLabelIndex, [](const json::Value& object) {
    const json::Value& metadata = object["metadata"];
    return PairsOf(metadata["namespace"].AsString(), metadata["labels"]);
  });
}

std::vector<ObjectKey> Select(const client::Informer& objects, const std::string& ns,
                              const schema::LabelSelector& selector) {
  std::vector<ObjectKey> out;
  if (selector.selects_nothing()) return out;
  const std::vector<std::string> pairs = DemandedPairs(ns, selector);
  if (pairs.empty()) {
    for (auto it = objects.objects().lower_bound({ns, ""});
         it != objects.objects().end() && it->first.ns == ns; ++it) {
      Keep(objects, it->first, selector, out);
    }
    return out;
  }
  // The rarest of the demanded labels gives the fewest candidates.
  const std::string* rarest = nullptr;
  size_t fewest = 0;
  for (const std::string& pair : pairs) {
    const size_t count = objects.LookupCount(kLabelIndex, pair);
    if (count == 0) return out;
    if (rarest == nullptr || count < fewest) {
      rarest = &pair;
      fewest = count;
    }
  }
  for (const ObjectKey& key : objects.Lookup(kLabelIndex, *rarest))
    Keep(objects, key, selector, out);
  return out;
}

void IndexBySelector(client::Informer& owners, const SelectorOf& selector_of) {
  owners.AddIndex(kSelectorIndex, [selector_of](const json::Value& owner) {
    const std::string_view ns = owner["metadata"]["namespace"].AsString();
    const schema::LabelSelector selector = selector_of(owner);
    if (selector.selects_nothing()) return std::vector<std::string>();
    // One pair is enough: an object that it selects has it.
    const std::vector<std::string> pairs = DemandedPairs(ns, selector);
    return std::vector<std::string>{pairs.empty() ? AnyKey(ns) : pairs.front()};
  });
}

std::vector<ObjectKey> SelectedBy(const client::Informer& owners, const SelectorOf& selector_of,
                                  const std::string& ns, const json::Value& labels) {
  if (owners.objects().empty()) return {};  // of most kinds, in most clusters
  std::vector<std::string> keys = PairsOf(ns, labels);
  keys.push_back(AnyKey(ns));
  std::set<ObjectKey> out;
  for (const std::string& key : keys) {
    for (const ObjectKey& owner : owners.Lookup(kSelectorIndex, key)) {
      if (selector_of(*owners.Find(owner)).Matches(labels)) out.insert(owner);
    }
  }
  return {out.begin(), out.end()};
}

schema::LabelSelector SelectorOfSpec(const json::Value& owner) {
  return schema::LabelSelector::FromJson(owner["spec"]["selector"])
      .value_or(schema::LabelSelector::Nothing());
}

client::Trigger OnOrphan(const client::Resource& resource, const client::Informer& owners) {
  return {resource, [&owners](const ObjectKey& key, const json::Value&, const json::Value& after) {
            if (after.IsNull() || !client::ControllerOf(after).IsNull())
              return std::vector<ObjectKey>();
            return SelectedBy(owners, SelectorOfSpec, key.ns, after["metadata"]["labels"]);
          }};
}

std::vector<json::Value> Candidates(const client::Informer& objects, const json::Value& owner,
                                    const schema::LabelSelector& selector) {
  const json::Value& metadata = owner["metadata"];
  std::set<ObjectKey> keys;
  for (const ObjectKey& key : client::ControlledBy(objects, metadata["uid"].AsString()))
    keys.insert(key);
  for (const ObjectKey& key : Select(objects, metadata["namespace"].Str(), selector))
    keys.insert(key);
  std::vector<json::Value> candidates;
  candidates.reserve(keys.size());
  for (const ObjectKey& key : keys) candidates.push_back(*objects.Find(key));
  return candidates;
}

}  // namespace muster::controllers
