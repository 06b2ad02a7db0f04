#include "autoscaler/node_pool.h"

#include <algorithm>
#include <limits>

#include "base/go_duration.h"
#include "base/strings.h"
#include "cluster/quantity.h"

namespace muster::autoscaler {
namespace {

constexpr char kDefaultBudget[] = "10%";

bool Names(const json::Value& requirements, std::string_view key) {
  return std::ranges::any_of(requirements.items(), [key](const json::Value& each) {
    return each["key"].AsString() == key;
  });
}

int64_t AllowedBy(const std::string& text, int64_t nodes) {
  if (!text.ends_with('%')) return std::max<int64_t>(ParseInt(text).value_or(0), 0);
  const int64_t percent = ParseInt(std::string_view(text).substr(0, text.size() - 1)).value_or(0);
  return (nodes * std::clamp<int64_t>(percent, 0, 100) + 99) / 100;
}

}  // namespace

NodePool ToNodePool(const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  const json::Value& spec = object["spec"];
  const json::Value& of_template = spec["template"];
  NodePool pool;
  pool.name = metadata["name"].Str();
  pool.uid = metadata["uid"].Str();
  pool.labels = of_template["metadata"]["labels"];
  pool.annotations = of_template["metadata"]["annotations"];
  pool.taints = of_template["spec"]["taints"];
  pool.requirements = of_template["spec"]["requirements"];
  for (const auto& [name, amount] : spec["limits"].members()) {
    const auto quantity = cluster::Quantity::FromJson(amount);
    if (!quantity) continue;
    // Zero is a limit, too.
    pool.limits.emplace_back(
        name, name == cluster::resource::kCpu ? quantity->Milli() : quantity->Units());
  }
  pool.weight = spec["weight"].AsInt();
  const json::Value& disruption = spec["disruption"];
  const std::string after = disruption["consolidateAfter"].Str("0s");
  if (after != "Never")
    pool.consolidate_after = after == "0" ? Duration(0) : ParseGoDuration(after);
  pool.when_underutilized = disruption["consolidationPolicy"].AsString() != "WhenEmpty";
  for (const json::Value& budget : disruption["budgets"].items())
    pool.budgets.push_back(
        {json::ToStrings(budget["reasons"]), budget["nodes"].Str(kDefaultBudget)});
  if (pool.budgets.empty()) pool.budgets.push_back({{}, kDefaultBudget});
  return pool;
}

bool Allows(const NodePool& pool, const cluster::Labels& labels) {
  if (!Names(pool.requirements, kCapacityTypeLabel)) {
    const auto capacity = labels.find(kCapacityTypeLabel);
    if (capacity == labels.end() || capacity->second != "on-demand") return false;
  }
  if (pool.requirements.empty()) return true;
  const cluster::NodeAffinity affinity = cluster::ToRequiredNodes(json::Obj(
      {{"nodeSelectorTerms", json::List({json::Obj({{"matchExpressions", pool.requirements}})})}}));
  return cluster::Matches(affinity, {labels, "", false, ""});
}

int64_t MayGo(const NodePool& pool, std::string_view reason, int64_t nodes) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Budget& budget : pool.budgets) {
    const bool counts =
        budget.reasons.empty() || std::ranges::find(budget.reasons, reason) != budget.reasons.end();
    if (counts) least = std::min(least, AllowedBy(budget.nodes, nodes));
  }
  return least;
}

}  // namespace muster::autoscaler
