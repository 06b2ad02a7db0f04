#include "controllers/replicaset/replicaset_pass.h"

#include <algorithm>
#include <utility>

#include "controllers/pods/pod_facts.h"
#include "controllers/pods/pod_template.h"
#include "schema/conditions.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

constexpr char kReplicaFailure[] = "ReplicaFailure";
// Upstream's burst: a larger difference takes several passes.
constexpr size_t kMaxChangesPerPass = 500;

Duration MinReady(const json::Value& owner) {
  return seconds(owner["spec"]["minReadySeconds"].AsInt());
}

std::vector<json::Value> ActiveOf(const std::vector<json::Value>& pods) {
  std::vector<json::Value> active;
  std::copy_if(pods.begin(), pods.end(), std::back_inserter(active), IsActive);
  return active;
}

void CreatePods(const ReplicaSetInput& input, size_t count, client::Reconciled& out) {
  const json::Value& owner = input.replica_set;
  PodNames names(owner["metadata"]["name"].AsString(), input.seed);
  for (size_t i = 0; i < count; ++i) {
    const std::string name = names.Next(input.is_taken);
    out.Create({resources::kPods, owner["metadata"]["namespace"].Str(), name, ""},
               PodFromTemplate(owner, owner["spec"]["template"], name));
    out.Event(owner, client::EventType::kNormal, "SuccessfulCreate",
              fmt::format("Created pod: {}", name));
  }
}

void DeletePods(const ReplicaSetInput& input, std::vector<json::Value> active, size_t count,
                Time now, client::Reconciled& out) {
  if (count < active.size()) SortForDeletion(active, input.related_pods, now);
  for (size_t i = 0; i < count; ++i) {
    const client::ObjectKey key = client::KeyOf(active[i]);
    client::DeleteOptions options;
    options.precondition_uid = active[i]["metadata"]["uid"].Str();
    out.Delete({resources::kPods, key.ns, key.name, ""}, std::move(options));
    out.Event(input.replica_set, client::EventType::kNormal, "SuccessfulDelete",
              fmt::format("Deleted pod: {}", key.name));
  }
}

bool HasLabelsOf(const json::Value& pod, const json::Value& pod_template) {
  const json::Value& labels = pod["metadata"]["labels"];
  const auto& wanted = pod_template["metadata"]["labels"].members();
  return std::all_of(wanted.begin(), wanted.end(), [&](const json::Member& label) {
    return labels[label.first] == label.second;
  });
}

// Zeros are absent but for those that are always there.
json::Value WithCount(json::Value status, const char* name, int64_t count) {
  return count == 0 ? status.Remove(name) : std::move(status).Set(name, count);
}

json::Value Conditions(const ReplicaSetInput& input, bool failing, Time now) {
  const json::Value& before = input.replica_set["status"]["conditions"];
  const json::Value& failure = schema::FindCondition(before, kReplicaFailure);
  if (failing && !failure.IsNull()) return before;
  json::Array conditions;
  for (const json::Value& condition : before.items()) {
    if (condition["type"].AsString() != kReplicaFailure) conditions.push_back(condition);
  }
  if (failing) {
    const bool creating = input.refused["verb"].AsString() == "create";
    conditions.push_back(json::Obj({{"type", kReplicaFailure},
                                    {"status", "True"},
                                    {"lastTransitionTime", FormatTime(now)},
                                    {"reason", creating ? "FailedCreate" : "FailedDelete"},
                                    {"message", input.refused["message"]}}));
  }
  return json::Value(std::move(conditions));
}

}  // namespace

json::Value ReplicaSetStatus(const ReplicaSetInput& input, Time now) {
  const json::Value& spec = input.replica_set["spec"];
  int64_t replicas = 0, labeled = 0, ready = 0, available = 0;
  for (const json::Value& pod : input.pods) {
    if (!IsActive(pod)) continue;
    ++replicas;
    if (HasLabelsOf(pod, spec["template"])) ++labeled;
    if (!IsReady(pod)) continue;
    ++ready;
    const std::optional<Time> from = AvailableFrom(pod, MinReady(input.replica_set), now);
    if (from.has_value() && *from <= now) ++available;
  }
  json::Value status = input.replica_set["status"].Set("replicas", replicas);
  status = WithCount(std::move(status), "fullyLabeledReplicas", labeled);
  status = WithCount(std::move(status), "readyReplicas", ready);
  status = WithCount(std::move(status), "availableReplicas", available);
  status = WithCount(std::move(status), "observedGeneration",
                     input.replica_set["metadata"]["generation"].AsInt());
  // A conflict is a stale cache, nobody's failure.
  const std::string_view verb = input.refused["verb"].AsString();
  const bool failing =
      (verb == "create" || verb == "delete") && replicas != spec["replicas"].AsInt();
  json::Value conditions = Conditions(input, failing, now);
  return conditions.empty() ? status.Remove("conditions")
                            : std::move(status).Set("conditions", std::move(conditions));
}

void ReconcileReplicaSet(const ReplicaSetInput& input, Time now, client::Reconciled& out) {
  const json::Value& replica_set = input.replica_set;
  const client::ObjectKey key = client::KeyOf(replica_set);
  json::Value status = ReplicaSetStatus(input, now);
  if (status != replica_set["status"]) {
    out.UpdateStatus({client::resources::kReplicaSets, key.ns, key.name, ""},
                     replica_set.Set("status", std::move(status)));
  }
  for (const json::Value& pod : input.pods) {
    if (!IsActive(pod)) continue;
    const std::optional<Time> from = AvailableFrom(pod, MinReady(replica_set), now);
    if (from.has_value() && *from > now) out.LookAgainAt(*from);
  }
  if (replica_set["metadata"].Has("deletionTimestamp")) return;
  const std::vector<json::Value> active = ActiveOf(input.pods);
  const size_t wanted =
      static_cast<size_t>(std::max<int64_t>(replica_set["spec"]["replicas"].AsInt(), 0));
  if (active.size() < wanted) {
    CreatePods(input, std::min(wanted - active.size(), kMaxChangesPerPass), out);
  } else if (active.size() > wanted) {
    DeletePods(input, active, std::min(active.size() - wanted, kMaxChangesPerPass), now, out);
  }
  out.subject = replica_set;
  out.brief_refusals = true;
}

}  // namespace muster::controllers
