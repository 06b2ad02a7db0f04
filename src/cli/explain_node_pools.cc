// What the autoscaler would add for a unit that waits, worked out on a copy of the cluster.

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "autoscaler/cluster_view.h"
#include "autoscaler/node_claim.h"
#include "base/strings.h"
#include "cli/explanation.h"
#include "scheduler/scheduler.h"

namespace muster::cli {
namespace {

// Names of claims that a line has.
constexpr size_t kMaxClaimsNamed = 3;

std::vector<json::Value> ItemsOf(const Result<json::Value>& list) {
  if (!list) return {};
  return {(*list)["items"].items().begin(), (*list)["items"].items().end()};
}

std::string Path(const client::Resource& resource, const char* ns = "", const char* name = "") {
  return client::ApiClient::PathOf({resource, ns, name, ""});
}

// Its machines start.
std::string ComingText(const std::vector<json::Value>& claims) {
  std::vector<std::string> names;
  for (const json::Value& claim : claims) {
    if (autoscaler::IsDeleting(claim) || autoscaler::Holds(claim, autoscaler::kInitialized))
      continue;
    names.push_back(
        fmt::format("nodeclaim/{} ({})", claim["metadata"]["name"].AsString(),
                    claim["metadata"]["labels"][autoscaler::kInstanceTypeLabel].AsString()));
  }
  if (names.empty()) return "";
  const size_t more = names.size() - std::min(names.size(), kMaxClaimsNamed);
  names.resize(names.size() - more);
  return fmt::format("it fits with nodes that are coming: {}{}", Join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

void AddNodePools(Session& session, const scheduler::ClusterLists& lists,
                  const scheduler::UnitKey& unit, Explanation& out) {
  const std::vector<Result<json::Value>> answers = session.GetJsons(
      {Path(autoscaler::kNodePools), Path(autoscaler::kNodeClaims),
       Path(client::resources::kDaemonSets),
       Path(client::resources::kConfigMaps, "kube-system", autoscaler::kCatalogConfigMap)});
  autoscaler::ClusterView view;
  view.pools = ItemsOf(answers[0]);
  if (view.pools.empty()) return;
  view.claims = ItemsOf(answers[1]);
  view.daemon_sets = ItemsOf(answers[2]);
  const std::string types = answers[3] ? (*answers[3])["data"][autoscaler::kCatalogKey].Str() : "";
  auto catalog = autoscaler::ReadCatalog(types);
  if (!catalog) return;
  view.catalog = std::move(*catalog);
  view.lists = lists;
  const autoscaler::ScaleUpAnswer answer =
      autoscaler::AskWhatToAdd(view, scheduler::SchedulerConfig().scheduler_names);
  std::string text = autoscaler::TextFor(answer, unit);
  const auto verdict = std::ranges::find(answer.plan.units, unit, &autoscaler::UnitVerdict::unit);
  const bool comes = verdict != answer.plan.units.end() && verdict->fits;
  if (text.empty() && comes) text = ComingText(view.claims);
  if (text.empty()) return;
  out.json = out.json.Set("nodePools", text);
  out.lines.push_back(std::move(text));
}

}  // namespace muster::cli
