#include "controllers/statefulset/stateful_pass.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "controllers/history/history.h"
#include "controllers/pods/int_or_percent.h"
#include "controllers/pods/pod_facts.h"
#include "controllers/statefulset/stateful_pods.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

bool IsTerminating(const json::Value& pod) { return pod["metadata"].Has("deletionTimestamp"); }
bool IsOver(const json::Value& pod) {
  return schema::IsFinalPhase(pod["status"]["phase"].AsString());
}
bool IsRunningAndReady(const json::Value& pod) {
  return pod["status"]["phase"].AsString() == "Running" && IsReady(pod);
}
bool IsHealthy(const json::Value& pod) { return IsRunningAndReady(pod) && !IsTerminating(pod); }
std::string RevisionOf(const json::Value& pod) {
  return pod["metadata"]["labels"][kRevisionHashLabel].Str();
}

class Pass {
 public:
  Pass(const StatefulSetInput& input, Time now, client::Reconciled& out)
      : input_(input),
        set_(input.set),
        now_(now),
        out_(out),
        history_(input.set, input.revisions, "controller.kubernetes.io/hash"),
        first_(set_["spec"]["ordinals"]["start"].AsInt()),
        end_(first_ + set_["spec"]["replicas"].AsInt(1)),
        ordered_(set_["spec"]["podManagementPolicy"].AsString() != "Parallel"),
        min_ready_(seconds(set_["spec"]["minReadySeconds"].AsInt())) {
    for (const json::Value& pod : input.pods) {
      const std::optional<int64_t> ordinal = OrdinalOf(set_, pod);
      if (!ordinal.has_value()) continue;
      (*ordinal >= first_ && *ordinal < end_ ? replicas_ : condemned_)[*ordinal] = pod;
    }
  }

  void Run() {
    collisions_ = set_["status"]["collisionCount"].AsInt();
    update_ = history_.Sync(input_.revision_names, collisions_, out_);
    current_ = history_.Find(set_["status"]["currentRevision"].AsString());
    if (current_.IsNull()) current_ = update_;
    Count();
    if (!set_["metadata"].Has("deletionTimestamp")) Act();
    CompleteUpdate();
    WriteStatus();
    std::set<std::string> live{NameOf(current_), NameOf(update_)};
    for (const auto& [ordinal, pod] : replicas_) live.insert(RevisionOf(pod));
    for (const auto& [ordinal, pod] : condemned_) live.insert(RevisionOf(pod));
    history_.Truncate(set_["spec"]["revisionHistoryLimit"].AsInt(10), live, out_);
    out_.subject = set_;
    out_.brief_refusals = true;
  }

 private:
  // -- What there is.

  bool IsAvailable(const json::Value& pod) {
    if (!IsRunningAndReady(pod)) return false;
    const std::optional<Time> from = AvailableFrom(pod, min_ready_, now_);
    if (from.has_value() && *from > now_) out_.LookAgainAt(*from);
    return from.has_value() && *from <= now_;
  }

  void Count() {
    for (const auto* pods : {&replicas_, &condemned_}) {
      for (const auto& [ordinal, pod] : *pods) {
        ++counts_["replicas"];
        if (IsRunningAndReady(pod)) ++counts_["readyReplicas"];
        if (IsAvailable(pod)) ++counts_["availableReplicas"];
        if (IsTerminating(pod)) continue;
        if (RevisionOf(pod) == NameOf(current_)) ++counts_["currentReplicas"];
        if (RevisionOf(pod) == NameOf(update_)) ++counts_["updatedReplicas"];
      }
    }
  }

  // Of the lowest number among those to be, else the highest of those to go.
  std::string FirstUnhealthy() const {
    for (const auto& [ordinal, pod] : replicas_) {
      if (!IsHealthy(pod)) return NameOf(pod);
    }
    for (auto it = condemned_.rbegin(); it != condemned_.rend(); ++it) {
      if (!IsHealthy(it->second)) return NameOf(it->second);
    }
    return "";
  }

  // -- What is done.

  void Act() {
    // A step that somebody has to wait for ends the pass.
    for (int64_t ordinal = first_; ordinal < end_; ++ordinal) {
      if (!SyncReplica(ordinal)) return;
    }
    for (auto& [ordinal, pod] : condemned_) SyncClaims(ordinal, pod, true);
    const std::string first_unhealthy = FirstUnhealthy();
    for (auto it = condemned_.rbegin(); it != condemned_.rend(); ++it) {
      if (!EndCondemned(it->second, first_unhealthy)) return;
    }
    if (set_["spec"]["updateStrategy"]["type"].AsString() != "OnDelete") Update();
  }

  int64_t Partition() const {
    return set_["spec"]["updateStrategy"]["rollingUpdate"]["partition"].AsInt();
  }

  // False: the pass ends here.
  bool SyncReplica(int64_t ordinal) {
    const auto found = replicas_.find(ordinal);
    if (found == replicas_.end()) {
      SyncClaims(ordinal, nullptr, false);
      CreatePod(ordinal);
      return !ordered_;
    }
    const json::Value& pod = found->second;
    SyncClaims(ordinal, pod, false);
    if (IsOver(pod)) {
      if (!IsTerminating(pod)) {
        out_.Event(set_, client::EventType::kWarning, "RecreatingFailedPod",
                   fmt::format("StatefulSet {} is recreating failed Pod {}",
                               client::KeyOf(set_).ToString(), NameOf(pod)));
        DeletePod(pod);
      }
      return !ordered_;
    }
    if (!ordered_) return true;
    return !IsTerminating(pod) && IsAvailable(pod);
  }

  bool IsOfCurrentRevision(int64_t ordinal) const {
    const json::Value& strategy = set_["spec"]["updateStrategy"];
    if (strategy["type"].AsString() == "OnDelete") return false;
    if (strategy["rollingUpdate"].IsNull()) return ordinal < first_ + Stored("currentReplicas");
    return ordinal < first_ + Partition();
  }

  int64_t Stored(const char* count) const { return set_["status"][count].AsInt(); }

  void CreatePod(int64_t ordinal) {
    const json::Value& revision = IsOfCurrentRevision(ordinal) ? current_ : update_;
    json::Value pod = MakeStatefulPod(set_, TemplateOf(revision), NameOf(revision), ordinal);
    const client::ObjectKey key = client::KeyOf(pod);
    out_.Create({resources::kPods, key.ns, key.name, ""}, std::move(pod));
    out_.Event(set_, client::EventType::kNormal, "SuccessfulCreate",
               fmt::format("create Pod {} in StatefulSet {} successful", key.name, NameOf(set_)));
    ++counts_["replicas"];
    if (NameOf(revision) == NameOf(current_)) ++counts_["currentReplicas"];
    if (NameOf(revision) == NameOf(update_)) ++counts_["updatedReplicas"];
  }

  void SyncClaims(int64_t ordinal, const json::Value& pod, bool condemned) {
    for (json::Value& claim : MakeClaims(set_, ordinal)) {
      const client::ObjectKey key = client::KeyOf(claim);
      const client::Target target{resources::kPersistentVolumeClaims, key.ns, key.name, ""};
      const json::Value known = input_.find_claim(key.name);
      if (known.IsNull()) {
        if (condemned) continue;
        out_.Create(target, std::move(claim));
        out_.Event(set_, client::EventType::kNormal, "SuccessfulCreate",
                   fmt::format("create Claim {} Pod {} in StatefulSet {} success", key.name,
                               OrdinalName(set_, ordinal), NameOf(set_)));
        continue;
      }
      json::Value owners = ClaimOwners(set_, known, pod, condemned);
      const json::Value& before = known["metadata"]["ownerReferences"];
      if (owners == before || (owners.empty() && before.empty())) continue;
      out_.PatchMerge(target, json::Obj({{"metadata", json::Obj({{"uid", known["metadata"]["uid"]},
                                                                 {"ownerReferences", owners}})}}));
    }
  }

  bool EndCondemned(const json::Value& pod, const std::string& first_unhealthy) {
    if (IsTerminating(pod)) return !ordered_;
    const bool waits = !IsAvailable(pod) && NameOf(pod) != first_unhealthy;
    if (ordered_ && waits) return false;
    DeletePod(pod);
    return !ordered_;
  }

  void Update() {
    const json::Value& bound = set_["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
    if (bound.IsNull()) return UpdateOne();
    // Upstream rounds down, and lets at least one go.
    const int64_t most = std::max<int64_t>(ScaledValue(bound, end_ - first_, false), 1);
    UpdateSeveral(most);
  }

  // The highest numbers first, as long as no more than `most` of all replicas are unavailable.
  // In parallel an old pod that serves nobody goes whatever the others do: else an update could
  // never mend what is broken. (In order nobody comes here before all are available.)
  void UpdateSeveral(int64_t most) {
    int64_t left = most;
    for (int64_t ordinal = first_; ordinal < end_; ++ordinal) {
      if (!Serves(ordinal)) --left;
    }
    for (const bool serving : {false, true}) {
      if (!serving && ordered_) continue;
      for (auto it = replicas_.rbegin(); it != replicas_.rend(); ++it) {
        const auto& [ordinal, pod] = *it;
        if (ordinal < first_ + Partition()) break;
        if (IsTerminating(pod) || RevisionOf(pod) == NameOf(update_)) continue;
        if (Serves(ordinal) != serving || (serving && left-- <= 0)) continue;
        UpdateByDeleting(pod);
      }
    }
  }

  bool Serves(int64_t ordinal) {
    const auto found = replicas_.find(ordinal);
    return found != replicas_.end() && !IsTerminating(found->second) && IsAvailable(found->second);
  }

  void UpdateByDeleting(const json::Value& pod) {
    if (RevisionOf(pod) == NameOf(current_)) --counts_["currentReplicas"];
    DeletePod(pod);
  }

  // The highest number first; the next one when it is healthy again.
  void UpdateOne() {
    const int64_t lowest = first_ + Partition();
    for (int64_t ordinal = end_ - 1; ordinal >= lowest; --ordinal) {
      const auto found = replicas_.find(ordinal);
      if (found == replicas_.end()) return;
      const json::Value& pod = found->second;
      if (RevisionOf(pod) != NameOf(update_) && !IsTerminating(pod)) return UpdateByDeleting(pod);
      if (!IsHealthy(pod)) return;
    }
  }

  // Once in a pass: one that failed may be an old one, too.
  void DeletePod(const json::Value& pod) {
    if (!ended_.insert(NameOf(pod)).second) return;
    const client::ObjectKey key = client::KeyOf(pod);
    client::DeleteOptions options;
    options.precondition_uid = pod["metadata"]["uid"].Str();
    out_.Delete({resources::kPods, key.ns, key.name, ""}, std::move(options));
    out_.Event(set_, client::EventType::kNormal, "SuccessfulDelete",
               fmt::format("delete Pod {} in StatefulSet {} successful", key.name, NameOf(set_)));
  }

  // -- What is said.

  void CompleteUpdate() {
    current_name_ = NameOf(current_);
    const bool complete = counts_["updatedReplicas"] == counts_["replicas"] &&
                          counts_["readyReplicas"] == counts_["replicas"];
    if (set_["spec"]["updateStrategy"]["type"].AsString() == "OnDelete" || !complete) return;
    current_name_ = NameOf(update_);
    counts_["currentReplicas"] = counts_["updatedReplicas"];
  }

  void WriteStatus() {
    json::Value status = set_["status"];
    for (const char* always : {"replicas", "availableReplicas"})
      status = std::move(status).Set(always, counts_[always]);
    for (const char* name : {"readyReplicas", "currentReplicas", "updatedReplicas"}) {
      status =
          counts_[name] == 0 ? status.Remove(name) : std::move(status).Set(name, counts_[name]);
    }
    status = std::move(status)
                 .Set("currentRevision", current_name_)
                 .Set("updateRevision", NameOf(update_))
                 .Set("collisionCount", collisions_);
    if (const json::Value& generation = set_["metadata"]["generation"]; !generation.IsNull())
      status = std::move(status).Set("observedGeneration", generation);
    if (status == set_["status"]) return;
    const client::ObjectKey key = client::KeyOf(set_);
    out_.UpdateStatus({resources::kStatefulSets, key.ns, key.name, ""},
                      set_.Set("status", std::move(status)));
  }

  const StatefulSetInput& input_;
  const json::Value& set_;
  const Time now_;
  client::Reconciled& out_;
  History history_;
  const int64_t first_, end_;  // the numbers of the replicas that shall be
  const bool ordered_;
  const Duration min_ready_;
  std::map<int64_t, json::Value> replicas_, condemned_;  // by number
  std::set<std::string> ended_;                          // names of pods, in this pass
  json::Value current_, update_;                         // revisions
  std::string current_name_;
  int64_t collisions_ = 0;
  std::map<std::string, int64_t> counts_;  // by field of the status
};

}  // namespace

void ReconcileStatefulSet(const StatefulSetInput& input, Time now, client::Reconciled& out) {
  Pass(input, now, out).Run();
}

}  // namespace muster::controllers
