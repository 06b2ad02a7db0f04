#include "autoscaler/pool_status.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "autoscaler/node_claim.h"
#include "autoscaler/offering.h"
#include "base/strings.h"

namespace muster::autoscaler {
namespace {

constexpr std::string_view kCapacityTypes[] = {"on-demand", "reserved", "spot"};

// Of the requirements that name what they want.
std::vector<std::string> WantedCapacityTypes(const NodePool& pool) {
  std::vector<std::string> wanted;
  for (const json::Value& each : pool.requirements.items()) {
    if (each["key"].AsString() != kCapacityTypeLabel || each["operator"].AsString() != "In")
      continue;
    for (const json::Value& value : each["values"].items()) wanted.push_back(value.Str());
  }
  return wanted;
}

// "" if it may be right. As upstream: one value that is known is enough.
std::string WhyInvalid(const NodePool& pool) {
  const std::vector<std::string> wanted = WantedCapacityTypes(pool);
  const bool known = std::ranges::any_of(wanted, [](const std::string& one) {
    return std::ranges::find(kCapacityTypes, one) != std::end(kCapacityTypes);
  });
  if (wanted.empty() || known) return "";
  return fmt::format(
      "no valid values found in [{}] for {}, expected one of: [on-demand reserved spot]",
      Join(wanted, " "), kCapacityTypeLabel);
}

}  // namespace

json::Value PoolStatus(const json::Value& object, const cluster::ResourceList& has, Time now) {
  json::Value resources = json::Obj({{std::string(kNodesResource), "0"}});
  for (const auto& [name, amount] : has)
    resources = resources.Set(name, cluster::AmountText(name, amount));
  json::Value status = object["status"].IsObject() ? object["status"] : json::Obj();
  status = status.Set("resources", resources);
  const std::string invalid = WhyInvalid(ToNodePool(object));
  if (invalid.empty()) {
    status = WithCondition(status, "ValidationSucceeded", true, "ValidationSucceeded", "", now);
    return WithCondition(status, "Ready", true, "Ready", "", now);
  }
  status =
      WithCondition(status, "ValidationSucceeded", false, "NodePoolValidationFailed", invalid, now);
  return WithCondition(status, "Ready", false, "UnhealthyDependents", "ValidationSucceeded=False",
                       now);
}

std::string WhyNothingIsOffered(const NodePool& pool, const Catalog& catalog) {
  if (!OfferingsOf({pool}, catalog, {}).empty()) return "";
  const std::string text =
      "NodePool requirements filtered out all compatible available instance types";
  if (const std::string invalid = WhyInvalid(pool); !invalid.empty()) return text + ": " + invalid;
  const std::vector<std::string> wanted = WantedCapacityTypes(pool);
  const bool unknown_here = std::ranges::none_of(
      wanted, [](const std::string& one) { return one == "on-demand" || one == "spot"; });
  if (wanted.empty() || !unknown_here) return text;
  return fmt::format("{}: no machine is offered as {}", text, Join(wanted, " or "));
}

}  // namespace muster::autoscaler
