// Tables of budgets and limits. Logic: k8s.io/kubernetes pkg/printers/internalversion.

#include <fmt/core.h>

#include "apiserver/table/printers.h"
#include "json/write.h"

namespace muster::apiserver {
namespace {

// 3 or "30%"; "N/A" when absent.
std::string NumberOrShare(const json::Value& value) {
  if (value.IsNull()) return "N/A";
  return value.IsString() ? value.Str() : json::Write(value);
}

}  // namespace

json::Array PodDisruptionBudgetCells(const json::Value& budget, Time now) {
  const json::Value& spec = budget["spec"];
  return {NameCell(budget), NumberOrShare(spec["minAvailable"]),
          NumberOrShare(spec["maxUnavailable"]), budget["status"]["disruptionsAllowed"].AsInt(),
          AgeOf(budget, now)};
}

json::Array ResourceQuotaCells(const json::Value& quota, Time now) {
  const json::Value& status = quota["status"];
  const json::Value hard = json::SortKeys(status["hard"]);
  std::string requests, limits;
  for (const auto& [name, most] : hard.members()) {
    std::string& cell = name.starts_with("limits.") ? limits : requests;
    if (!cell.empty()) cell += ", ";
    cell += fmt::format("{}: {}/{}", name, status["used"][name].AsString("0"), most.AsString());
  }
  return {NameCell(quota), requests, limits, AgeOf(quota, now)};
}

json::Array LimitRangeCells(const json::Value& range, Time) {
  return {NameCell(range), range["metadata"]["creationTimestamp"].Str()};
}

}  // namespace muster::apiserver
