#include "controllers/disruption/budget.h"

#include <algorithm>
#include <map>
#include <utility>

#include "controllers/pods/int_or_percent.h"
#include "controllers/pods/pod_facts.h"
#include "schema/conditions.h"
#include "schema/label_selector.h"

namespace muster::controllers {
namespace {

constexpr char kCondition[] = "DisruptionAllowed";

struct Expectation {
  int64_t pods = 0, healthy = 0;
  bool is_pending = false;
  bool unmanaged = false;  // some pod is nobody's, so it is in no count of replicas
  std::string error;
};

// The replicas of all controllers of the pods.
Expectation SumOfScales(const BudgetInput& input) {
  Expectation out;
  std::map<std::string, int64_t> scales;
  for (const json::Value& pod : input.pods) {
    WantedScale scale = input.scale_of(pod);
    // All that are missing are asked for at once.
    out.is_pending |= scale.is_pending;
    if (scale.is_pending) continue;
    if (!scale.error.empty()) {
      out.error = std::move(scale.error);
      return out;
    }
    if (scale.uid.empty()) {
      out.unmanaged = true;
    } else {
      scales[scale.uid] = scale.replicas;
    }
  }
  for (const auto& [uid, replicas] : scales) out.pods += replicas;
  return out;
}

Expectation Expect(const BudgetInput& input) {
  const json::Value& spec = input.budget["spec"];
  const json::Value& least = spec["minAvailable"];
  const json::Value& most = spec["maxUnavailable"];
  if (most.IsNull() && !IsPercentage(least)) {
    Expectation out;
    out.pods = static_cast<int64_t>(input.pods.size());
    out.healthy = least.AsInt();
    return out;
  }
  Expectation out = SumOfScales(input);
  out.healthy = most.IsNull() ? ScaledValue(least, out.pods, true)
                              : out.pods - ScaledValue(most, out.pods, true);
  out.healthy = std::max<int64_t>(out.healthy, 0);
  return out;
}

json::Value WithAllowed(json::Value status, const json::Value& budget, int64_t allowed,
                        std::string_view reason, std::string message, Time now) {
  const json::Value& generation = budget["metadata"]["generation"];
  status = std::move(status).Set("disruptionsAllowed", allowed);
  if (!generation.IsNull()) status = std::move(status).Set("observedGeneration", generation);
  const json::Value before = schema::FindCondition(budget["status"]["conditions"], kCondition);
  const std::string_view truth = allowed > 0 ? "True" : "False";
  json::Value condition =
      json::Obj({{"type", kCondition},
                 {"status", truth},
                 {"lastTransitionTime", schema::TransitionTime(before, truth, now)},
                 {"reason", reason},
                 {"message", std::move(message)}});
  if (!generation.IsNull()) condition = std::move(condition).Set("observedGeneration", generation);
  return std::move(status).Set("conditions", json::List({std::move(condition)}));
}

// Evictions that were granted and may still happen; the others are told of.
json::Value Disrupted(const BudgetInput& input, Time now, client::Reconciled& out) {
  json::Value kept;
  for (const json::Value& pod : input.pods) {
    const std::string name = pod["metadata"]["name"].Str();
    const json::Value& granted = input.budget["status"]["disruptedPods"][name];
    if (granted.IsNull() || pod["metadata"].Has("deletionTimestamp")) continue;
    const Time due = ParseTime(granted.AsString()).value_or(Time{}) + kEvictionGracePeriod;
    if (due < now) {
      out.Event(pod, client::EventType::kWarning, "NotDeleted",
                fmt::format("Pod was expected by PDB {} to be deleted but it wasn't",
                            client::KeyOf(input.budget).ToString()));
      continue;
    }
    kept = std::move(kept).Set(name, granted);
    out.LookAgainAt(due + milliseconds(1));
  }
  return kept;
}

int64_t CountHealthy(const std::vector<json::Value>& pods, const json::Value& disrupted) {
  return std::count_if(pods.begin(), pods.end(), [&](const json::Value& pod) {
    return IsReady(pod) && !pod["metadata"].Has("deletionTimestamp") &&
           !disrupted.Has(pod["metadata"]["name"].AsString());
  });
}

void TellOfUnmanaged(const BudgetInput& input, client::Reconciled& out) {
  const auto selector = schema::LabelSelector::FromJson(input.budget["spec"]["selector"]);
  out.Event(input.budget, client::EventType::kWarning, "UnmanagedPods",
            fmt::format("Pods selected by this PodDisruptionBudget (selector: {}) were found to be "
                        "unmanaged. As a result, the status of the PDB cannot be calculated "
                        "correctly, which may result in undefined behavior. To account for these "
                        "pods please set \".spec.minAvailable\" field of the PDB to an integer "
                        "value.",
                        selector.has_value() ? selector->ToString() : ""));
}

}  // namespace

void ReconcileBudget(const BudgetInput& input, Time now, client::Reconciled& out) {
  const json::Value& budget = input.budget;
  const json::Value& before = budget["status"];
  const Expectation expected = Expect(input);
  if (expected.is_pending) return;
  json::Value status;
  if (!expected.error.empty()) {
    const std::string message =
        fmt::format("Failed to calculate the number of expected pods: {}", expected.error);
    status = WithAllowed(before, budget, 0, "SyncFailed", expected.error, now);
    if (status != before)
      out.Event(budget, client::EventType::kWarning, "CalculateExpectedPodCountFailed", message);
  } else {
    json::Value disrupted = Disrupted(input, now, out);
    const int64_t healthy = CountHealthy(input.pods, disrupted);
    const int64_t allowed =
        expected.pods == 0 ? 0 : std::max<int64_t>(healthy - expected.healthy, 0);
    status = WithAllowed(before, budget, allowed,
                         allowed > 0 ? "SufficientPods" : "InsufficientPods", "", now)
                 .Set("currentHealthy", healthy)
                 .Set("desiredHealthy", expected.healthy)
                 .Set("expectedPods", expected.pods);
    status = disrupted.empty() ? status.Remove("disruptedPods")
                               : std::move(status).Set("disruptedPods", std::move(disrupted));
    // Each is said once for each state of things, not at every pass.
    if (status != before && input.pods.empty())
      out.Event(budget, client::EventType::kNormal, "NoPods", "No matching pods found");
    if (status != before && expected.unmanaged) TellOfUnmanaged(input, out);
  }
  if (status == before) return;
  const client::ObjectKey key = client::KeyOf(budget);
  out.UpdateStatus({client::resources::kPodDisruptionBudgets, key.ns, key.name, ""},
                   budget.Set("status", std::move(status)));
}

}  // namespace muster::controllers
