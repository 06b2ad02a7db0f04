#include "controllers/pods/pod_facts.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "schema/conditions.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

int64_t DeletionCost(const json::Value& pod) {
  const std::string_view text = pod["metadata"]["annotations"][kDeletionCost].AsString();
  int32_t cost = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cost);
  return error == std::errc() && end == text.data() + text.size() ? cost : 0;
}

int64_t MaxRestarts(const json::Value& pod) {
  int64_t most = 0;
  for (const json::Value& container : pod["status"]["containerStatuses"].items())
    most = std::max(most, container["restartCount"].AsInt());
  return most;
}

int PhaseRank(std::string_view phase) {
  if (phase == "Pending") return 0;
  return phase == "Unknown" ? 1 : 2;
}

std::optional<Time> ReadySince(const json::Value& pod) {
  const json::Value& ready = schema::FindCondition(pod["status"]["conditions"], "Ready");
  if (ready["status"].AsString() != "True") return std::nullopt;
  return ParseTime(ready["lastTransitionTime"].AsString());
}

// Ages are compared by their magnitude in seconds, so that the youngest is not always the one.
int AgeRank(std::optional<Time> since, Time now) {
  if (!since.has_value()) return -1;  // counts as younger than all
  const int64_t age = std::max<int64_t>((now - *since) / seconds(1), 0);
  return std::bit_width(static_cast<uint64_t>(age));
}

}  // namespace

const json::Fields& PodFactFields() {
  static const json::Fields fields{{"metadata", "labels"},
                                   {"metadata", "annotations", std::string(kDeletionCost)},
                                   {"metadata", "creationTimestamp"},
                                   {"spec", "nodeName"},
                                   {"status", "phase"},
                                   {"status", "conditions"},
                                   {"status", "containerStatuses", "restartCount"}};
  return fields;
}

bool IsActive(const json::Value& pod) {
  return !schema::IsFinalPhase(pod["status"]["phase"].AsString()) &&
         !pod["metadata"].Has("deletionTimestamp");
}

bool IsReady(const json::Value& pod) {
  return schema::ConditionHolds(pod["status"]["conditions"], "Ready");
}

std::optional<Time> AvailableFrom(const json::Value& pod, Duration min_ready, Time now) {
  if (!IsReady(pod)) return std::nullopt;
  if (min_ready == Duration::zero()) return Time{};
  const std::optional<Time> since = ReadySince(pod);
  if (!since.has_value()) return std::nullopt;
  return *since > now + min_ready ? Time{} : *since + min_ready;
}

void SortForDeletion(std::vector<json::Value>& pods, const std::vector<json::Value>& related,
                     Time now) {
  std::map<std::string, int64_t> on_node;
  for (const json::Value& pod : related) {
    if (IsActive(pod)) ++on_node[pod["spec"]["nodeName"].Str()];
  }
  const auto rank = [&](const json::Value& pod) {
    const std::string node = pod["spec"]["nodeName"].Str();
    const bool ready = IsReady(pod);
    const std::optional<Time> created = ParseTime(pod["metadata"]["creationTimestamp"].AsString());
    return std::tuple(node.empty() ? 0 : 1, PhaseRank(pod["status"]["phase"].AsString()),
                      ready ? 1 : 0, DeletionCost(pod), -on_node[node],
                      ready ? AgeRank(ReadySince(pod), now) : 0, -MaxRestarts(pod),
                      AgeRank(created, now), pod["metadata"]["name"].Str());
  };
  using Rank = decltype(rank(json::Value()));
  std::vector<std::pair<Rank, json::Value>> ranked;
  ranked.reserve(pods.size());
  for (json::Value& pod : pods) {
    Rank of_pod = rank(pod);
    ranked.emplace_back(std::move(of_pod), std::move(pod));
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(ranked.begin(), ranked.end(), pods.begin(),
                 [](auto& entry) { return std::move(entry.second); });
}

}  // namespace muster::controllers
