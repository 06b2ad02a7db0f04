#include "simulation/workload_oracle.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "schema/conditions.h"
#include "simulation/gang_oracle.h"

namespace muster::simulation {
namespace {

constexpr std::string_view kPodPrefix = "/registry/core/pods/";
constexpr std::string_view kNamespacePrefix = "/registry/core/namespaces/";
constexpr std::string_view kAppsPrefix = "/registry/apps/";
constexpr std::string_view kBatchPrefix = "/registry/batch/";
constexpr std::string_view kIndex = "batch.kubernetes.io/job-completion-index";
constexpr std::string_view kScheduledAt = "batch.kubernetes.io/cronjob-scheduled-timestamp";

const json::Value& ControllerOf(const json::Value& object) {
  static const json::Value kNone;
  for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].AsBool()) return owner;
  }
  return kNone;
}

// The node that a pod has or, of a DaemonSet, is to have.
std::string NodeOf(const json::Value& pod) {
  const json::Value& spec = pod["spec"];
  if (spec.Has("nodeName")) return spec["nodeName"].Str();
  return spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
             ["nodeSelectorTerms"]
                 .At(0)["matchFields"]
                 .At(0)["values"]
                 .At(0)
                 .Str();
}

// The number, or the percentage of `whole`.
int64_t Scaled(const json::Value& number, int64_t whole, bool round_up) {
  if (!number.IsString()) return number.AsInt();
  const int64_t percent = ParseInt(Split(number.AsString(), '%').front()).value_or(0);
  return (whole * percent + (round_up ? 99 : 0)) / 100;
}

// "0,2-4": 4
int64_t CountOf(std::string_view indexes) {
  int64_t count = 0;
  for (const std::string_view part : SplitNonEmpty(indexes, ',')) {
    const auto ends = Split(part, '-');
    const int64_t first = ParseInt(ends.front()).value_or(0);
    count += ParseInt(ends.back()).value_or(first) - first + 1;
  }
  return count;
}

bool IsTrue(const json::Value& object, std::string_view condition) {
  return schema::ConditionHolds(object["status"]["conditions"], condition);
}

int64_t OrdinalOf(std::string_view pod) { return ParseInt(Split(pod, '-').back()).value_or(-1); }

bool IsOrdered(const json::Value& set) {
  return set["spec"]["podManagementPolicy"].AsString() != "Parallel";
}

}  // namespace

// ---- what was so lately ----

void WorkloadOracle::Recent::Set(Time now, int64_t value) {
  if (!values_.empty() && values_.back().second == value) return;
  values_.emplace_back(now, value);
}

int64_t WorkloadOracle::Recent::Most(Time now) const {
  int64_t most = this->now();
  for (size_t i = 0; i + 1 < values_.size(); ++i) {
    if (now - values_[i + 1].first <= kPlanAge) most = std::max(most, values_[i].second);
  }
  return most;
}

int64_t WorkloadOracle::Recent::Least(Time now) const {
  int64_t least = this->now();
  for (size_t i = 0; i + 1 < values_.size(); ++i) {
    if (now - values_[i + 1].first <= kPlanAge) least = std::min(least, values_[i].second);
  }
  return least;
}

bool WorkloadOracle::IsRecent(Time when) const { return loop_.Steady() - when <= kPlanAge; }

void WorkloadOracle::Forget() {
  std::erase_if(pods_, [this](const auto& entry) {
    return entry.second.gone && !IsRecent(entry.second.left);
  });
}

const WorkloadOracle::Owner* WorkloadOracle::FindOwner(const std::string& uid) const {
  const auto found = owners_.find(uid);
  return found == owners_.end() ? nullptr : &found->second;
}

std::vector<const WorkloadOracle::Pod*> WorkloadOracle::PodsOf(const std::string& owner_uid) const {
  std::vector<const Pod*> pods;
  for (const auto& [uid, pod] : pods_) {
    if (pod.owner == owner_uid) pods.push_back(&pod);
  }
  return pods;
}

// ---- changes ----

bool WorkloadOracle::Sees(std::string_view key) {
  return key.starts_with(kPodPrefix) || key.starts_with(kNamespacePrefix) ||
         key.starts_with(kAppsPrefix) || key.starts_with(kBatchPrefix);
}

void WorkloadOracle::OnChange(const std::string& key, const json::Value& object, bool deleted) {
  if (std::string_view(key).starts_with(kPodPrefix)) return OnPod(object, deleted);
  if (std::string_view(key).starts_with(kNamespacePrefix)) {
    if (object["metadata"].Has("deletionTimestamp"))
      going_namespaces_.insert(object["metadata"]["name"].Str());
    return;
  }
  OnOwner(key, object, deleted);
}

void WorkloadOracle::OnPod(const json::Value& object, bool deleted) {
  const json::Value& metadata = object["metadata"];
  const std::string uid = metadata["uid"].Str();
  const auto [at, is_new] = pods_.try_emplace(uid);
  Pod& pod = at->second;
  const Pod before = pod;
  const std::string_view phase = object["status"]["phase"].AsString();
  pod.key = metadata["namespace"].Str() + "/" + metadata["name"].Str();
  pod.owner = ControllerOf(object)["uid"].Str();
  pod.node = NodeOf(object);
  pod.index = metadata["labels"][kIndex].Str();
  pod.adopted |= !is_new && before.owner != pod.owner;
  pod.succeeded = phase == "Succeeded";
  pod.finished = pod.succeeded || phase == "Failed";
  pod.deleting = metadata.Has("deletionTimestamp");
  pod.tracked = !metadata["finalizers"].empty();
  pod.ready = !deleted && IsTrue(object, "Ready");
  if (is_new) pod.created = loop_.Steady();
  if (pod.ready && !before.ready) pod.became_ready = loop_.Steady();
  if (pod.ready || before.ready) pod.last_ready = loop_.Steady();
  if (IsTrue(object, "DisruptionTarget") || going_namespaces_.contains(metadata["namespace"].Str()))
    Excuse(uid);
  if (deleted) {
    pod.gone = true;
    pod.left = loop_.Steady();
  }
  const auto owner = owners_.find(pod.owner);
  if (owner != owners_.end()) {
    if (pod.succeeded) owner->second.succeeded.insert(uid);
    // A pod that the Job let go before, as one that is suspended does, counts for nothing.
    if (pod.succeeded && pod.tracked && !pod.index.empty())
      owner->second.completed.emplace(pod.index, loop_.Steady());
    if (!pod.succeeded && (pod.finished || pod.deleting || deleted))
      owner->second.failed.insert(uid);
    if (is_new) OnNewPod(uid, pod, owner->second);
    const bool ends = (pod.deleting || deleted) && before.IsActive() && !is_new;
    if (ends && !excused_.contains(uid) && !owner->second.IsGoing()) {
      pod.ended_by_owner = true;
      OnPodEnded(uid, pod, owner->second);
    }
  }
  Forget();
}

void WorkloadOracle::OnNewPod(const std::string& uid, const Pod& pod, const Owner& owner) {
  const Time now = loop_.Steady();
  if (owner.gone && !IsRecent(owner.finished_at))
    on_violation_(fmt::format("{} was made for {}, which is gone", pod.key, owner.key));
  if (owner.kind == "ReplicaSet") {
    int64_t active = 0;
    for (const Pod* other : PodsOf(pod.owner)) active += other->IsActive() && !other->adopted;
    if (active > owner.most.Most(now)) {
      on_violation_(fmt::format("{} was made as number {} of {}, which wants {}", pod.key, active,
                                owner.key, owner.most.now()));
    }
    CheckRecreate(pod, owner);
  }
  if (owner.kind == "StatefulSet") CheckOrder(pod, owner);
  if (owner.kind == "DaemonSet") CheckDaemon(pod, owner);
  if (owner.kind == "Job") CheckJobPod(uid, pod, owner);
}

void WorkloadOracle::OnPodEnded(const std::string& uid, const Pod& pod, const Owner& owner) {
  if (owner.kind == "StatefulSet" && IsOrdered(owner.object)) {
    counts_.Add("oracle: replica ended in its turn");
    int64_t left = owner.most.Most(loop_.Steady());
    for (const auto& [other_uid, other] : pods_) {
      if (other_uid == uid || other.owner != pod.owner || !other.ended_by_owner || other.gone)
        continue;
      if (--left > 0) {
        counts_.Add("oracle: replicas ended together");
      } else {
        on_violation_(fmt::format("{} is ended while {} goes", pod.key, other.key));
      }
    }
  }
  if (owner.kind != "ReplicaSet") return;
  const Owner* deployment = FindOwner(owner.controller);
  if (deployment != nullptr && !deployment->IsGoing()) CheckAvailable(uid, pod, *deployment);
}

// No pod that serves goes while the others are too few.
void WorkloadOracle::CheckAvailable(const std::string& uid, const Pod& pod,
                                    const Owner& deployment) {
  if (deployment.object["spec"]["strategy"]["type"].AsString() == "Recreate") return;
  if (pod.last_ready != loop_.Steady()) return;  // it served nobody
  // Who is ready is not known so soon, and with fewer replicas somebody has to go.
  if (IsRecent(deployment.scaled)) return;
  // A ReplicaSet loses as many as serve nobody; those of a node that came back serve again by then.
  const std::vector<const Pod*> siblings = PodsOf(pod.owner);
  if (std::any_of(siblings.begin(), siblings.end(), [this](const Pod* sibling) {
        return sibling->became_ready != Time{} && IsRecent(sibling->became_ready);
      }))
    return;
  int64_t available = 0;
  for (const auto& [other_uid, other] : pods_) {
    const Owner* of = FindOwner(other.owner);
    if (other_uid == uid || of == nullptr || of->kind != "ReplicaSet") continue;
    if (FindOwner(of->controller) != &deployment || other.ended_by_owner) continue;
    available += other.ready || (other.last_ready != Time{} && IsRecent(other.last_ready));
  }
  counts_.Add("oracle: pod of a Deployment ended");
  const int64_t least = deployment.least.Least(loop_.Steady());
  if (available < least) {
    on_violation_(fmt::format("{} is ended, {} others of {} are available, {} must be", pod.key,
                              available, deployment.key, least));
  }
}

void WorkloadOracle::CheckRecreate(const Pod& pod, const Owner& replica_set) {
  const Owner* deployment = FindOwner(replica_set.controller);
  if (deployment == nullptr || IsRecent(deployment->template_changed) ||
      deployment->object["spec"]["strategy"]["type"].AsString() != "Recreate")
    return;
  for (const auto& [uid, other] : pods_) {
    const Owner* of = FindOwner(other.owner);
    if (of == nullptr || of == &replica_set || of->kind != "ReplicaSet" || other.gone) continue;
    if (FindOwner(of->controller) != deployment || other.finished || IsRecent(other.created))
      continue;
    on_violation_(fmt::format("{} was made beside {} of the old template", pod.key, other.key));
  }
}

void WorkloadOracle::CheckOrder(const Pod& pod, const Owner& owner) {
  if (!IsOrdered(owner.object)) return;
  counts_.Add("oracle: replica made in order");
  const int64_t ordinal = OrdinalOf(pod.key);
  std::set<int64_t> ready;
  for (const Pod* other : PodsOf(pod.owner)) {
    if (other->ready || (other->last_ready != Time{} && IsRecent(other->last_ready)))
      ready.insert(OrdinalOf(other->key));
  }
  for (int64_t i = owner.object["spec"]["ordinals"]["start"].AsInt(); i < ordinal; ++i) {
    if (!ready.contains(i))
      on_violation_(fmt::format("{} was made and number {} is not ready", pod.key, i));
  }
}

void WorkloadOracle::CheckDaemon(const Pod& pod, const Owner& owner) {
  // Where a surge may come, one that goes is in nobody's way.
  const int64_t most = owner.most.Most(loop_.Steady());
  int64_t there = 0;
  for (const Pod* other : PodsOf(pod.owner))
    there += other->node == pod.node && !other->gone && !other->finished &&
             (!other->deleting || most == 1);
  if (there > most)
    on_violation_(fmt::format("{} is number {} of {} on {}", pod.key, there, owner.key, pod.node));
}

void WorkloadOracle::CheckJobPod(const std::string& uid, const Pod& pod, const Owner& job) {
  if (job.finished && !IsRecent(job.finished_at))
    on_violation_(fmt::format("{} was made after the end of {}", pod.key, job.key));
  const bool waits = job.object["spec"]["podReplacementPolicy"].AsString() == "Failed";
  int64_t active = 0;
  for (const auto& [other_uid, other] : pods_) {
    if (other.owner != pod.owner || other.gone || other.finished) continue;
    if (other.deleting && !waits) continue;
    ++active;
    if (other_uid != uid && !pod.index.empty() && other.index == pod.index)
      on_violation_(fmt::format("{} has the index of {}, which runs", pod.key, other.key));
  }
  if (active > job.most.Most(loop_.Steady())) {
    on_violation_(fmt::format("{} is number {} of {}, whose parallelism is {}", pod.key, active,
                              job.key, job.most.now()));
  }
  const auto completed = job.completed.find(pod.index);
  if (completed != job.completed.end() && !IsRecent(completed->second))
    on_violation_(fmt::format("{} was made for an index that is completed", pod.key));
}

void WorkloadOracle::OnOwner(const std::string& key, const json::Value& object, bool deleted) {
  const json::Value& metadata = object["metadata"];
  const std::string uid = metadata["uid"].Str();
  const auto [at, is_new] = owners_.try_emplace(uid);
  Owner& owner = at->second;
  const Time now = loop_.Steady();
  const json::Value before = std::exchange(owner.object, object);
  owner.key = key.substr(std::string_view("/registry/").size());
  const std::string_view plural = Split(owner.key, '/').at(1);
  owner.kind = plural == "replicasets"    ? "ReplicaSet"
               : plural == "deployments"  ? "Deployment"
               : plural == "statefulsets" ? "StatefulSet"
               : plural == "daemonsets"   ? "DaemonSet"
               : plural == "jobs"         ? "Job"
               : plural == "cronjobs"     ? "CronJob"
                                          : "";
  owner.controller = ControllerOf(object)["uid"].Str();
  if (is_new) owner.created = now;
  if (deleted) {
    owner.gone = true;
    owner.finished_at = now;
    return;
  }
  const json::Value& spec = object["spec"];
  if (!(spec["template"] == before["spec"]["template"])) owner.template_changed = now;
  if (!(spec["replicas"] == before["spec"]["replicas"])) owner.scaled = now;
  const int64_t replicas = spec["replicas"].AsInt(1);
  const json::Value& pace = spec["strategy"]["rollingUpdate"];
  if (owner.kind == "ReplicaSet") {
    owner.most.Set(now, replicas);
    if (replicas > before["spec"]["replicas"].AsInt()) OnReplicaSetGrew(owner);
  } else if (owner.kind == "Deployment") {
    const int64_t surge = Scaled(pace["maxSurge"], replicas, true);
    const int64_t away = Scaled(pace["maxUnavailable"], replicas, false);
    owner.most.Set(now, replicas + surge);
    owner.least.Set(now, replicas - (surge == 0 ? std::max<int64_t>(away, 1) : away));
  } else if (owner.kind == "StatefulSet") {
    const json::Value& away = spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
    owner.most.Set(now, std::max<int64_t>(Scaled(away, replicas, false), 1));
  } else if (owner.kind == "DaemonSet") {
    const json::Value& rolling = spec["updateStrategy"]["rollingUpdate"];
    owner.most.Set(now, 1 + Scaled(rolling["maxSurge"], 1, true));
  } else if (owner.kind == "Job") {
    owner.most.Set(now, spec["suspend"].AsBool() ? 0 : spec["parallelism"].AsInt(1));
    if (is_new) OnNewJob(uid, owner);
    OnJob(owner);
  }
}

void WorkloadOracle::OnReplicaSetGrew(const Owner& replica_set) {
  const Owner* deployment = FindOwner(replica_set.controller);
  if (deployment == nullptr || deployment->IsGoing()) return;
  int64_t sum = 0;
  for (const auto& [uid, other] : owners_) {
    if (other.kind == "ReplicaSet" && !other.IsGoing() &&
        other.controller == replica_set.controller)
      sum += other.object["spec"]["replicas"].AsInt();
  }
  counts_.Add("oracle: ReplicaSet of a Deployment grew");
  if (sum > deployment->most.Most(loop_.Steady())) {
    on_violation_(fmt::format("{} grew to {}: {} in all, {} may be", replica_set.key,
                              replica_set.most.now(), sum, deployment->most.now()));
  }
}

void WorkloadOracle::OnJob(Owner& job) {
  const json::Value& status = job.object["status"];
  const auto succeeded = static_cast<int64_t>(job.succeeded.size());
  const auto failed = static_cast<int64_t>(job.failed.size());
  if (status["succeeded"].AsInt() > succeeded || status["failed"].AsInt() > failed) {
    on_violation_(fmt::format("{} counts {} succeeded and {} failed; so did {} and {}", job.key,
                              status["succeeded"].AsInt(), status["failed"].AsInt(), succeeded,
                              failed));
  }
  const bool finished = IsTrue(job.object, "Complete") || IsTrue(job.object, "Failed");
  if (job.finished && !finished) on_violation_(fmt::format("{} had ended and goes on", job.key));
  if (!finished || std::exchange(job.finished, true)) return;
  job.finished_at = loop_.Steady();
  const json::Value& spec = job.object["spec"];
  if (IsTrue(job.object, "Failed") || !spec.Has("completions")) return;
  counts_.Add("oracle: Job completed");
  const int64_t wanted = spec["completions"].AsInt();
  if (status["succeeded"].AsInt() != wanted) {
    on_violation_(
        fmt::format("{} is complete with {} of {}", job.key, status["succeeded"].AsInt(), wanted));
  }
  if (spec["completionMode"].AsString() != "Indexed") return;
  const int64_t indexes = CountOf(status["completedIndexes"].AsString());
  if (indexes != wanted || static_cast<int64_t>(job.completed.size()) < wanted) {
    on_violation_(fmt::format("{} is complete with the indexes {} of {}", job.key,
                              status["completedIndexes"].AsString(), wanted));
  }
}

void WorkloadOracle::OnNewJob(const std::string& uid, const Owner& job) {
  const auto found = owners_.find(job.controller);
  if (found == owners_.end() || found->second.kind != "CronJob") return;
  Owner& cron_job = found->second;
  counts_.Add("oracle: Job of a CronJob");
  const std::string at = job.object["metadata"]["annotations"][kScheduledAt].Str();
  if (!cron_job.times.insert(at).second)
    on_violation_(fmt::format("{} has two Jobs for {}", cron_job.key, at));
  if (cron_job.object["spec"]["concurrencyPolicy"].AsString() != "Forbid") return;
  for (const auto& [other_uid, other] : owners_) {
    if (other_uid == uid || other.controller != job.controller || other.IsGoing()) continue;
    if (!other.finished)
      on_violation_(fmt::format("{} was made while {} runs", job.key, other.key));
  }
}

// ---- at rest ----

void WorkloadOracle::CheckRest(const std::string& uid, const Owner& owner) {
  const json::Value& spec = owner.object["spec"];
  const json::Value& status = owner.object["status"];
  int64_t active = 0, ready = 0;
  std::set<std::string> nodes, names;
  for (const auto& [pod_uid, pod] : pods_) {
    const Owner* of = FindOwner(pod.owner);
    const bool is_its =
        pod.owner == uid || (owner.kind == "Deployment" && of != nullptr && of->controller == uid);
    if (!is_its || !pod.IsActive()) continue;
    ++active;
    ready += pod.ready;
    nodes.insert(pod.node);
    names.insert(pod.key);
  }
  const auto expect = [&](int64_t wanted, std::string_view field) {
    if (active == wanted && ready == wanted && status[field].AsInt() == wanted) return;
    on_violation_(fmt::format("{} rests with {} pods, {} ready, {} of {}; it says {}", owner.key,
                              active, ready, wanted, field, status[field].AsInt()));
  };
  if (owner.kind == "ReplicaSet") expect(spec["replicas"].AsInt(1), "readyReplicas");
  if (owner.kind == "Deployment" && !spec["paused"].AsBool()) {
    expect(spec["replicas"].AsInt(1), "readyReplicas");
    expect(spec["replicas"].AsInt(1), "updatedReplicas");
  }
  if (owner.kind == "StatefulSet") {
    expect(spec["replicas"].AsInt(1), "readyReplicas");
    for (int64_t i = 0; i < spec["replicas"].AsInt(1); ++i) {
      const auto parts = Split(owner.key, '/');
      const std::string name = fmt::format("{}/{}-{}", parts.at(2), parts.at(3), i);
      if (!names.contains(name)) on_violation_(fmt::format("{} rests without {}", owner.key, name));
    }
  }
  if (owner.kind == "DaemonSet") {
    expect(static_cast<int64_t>(nodes.size()), "numberReady");
    expect(status["desiredNumberScheduled"].AsInt(), "updatedNumberScheduled");
  }
  if (owner.kind == "Job" && active > 0 && (owner.finished || spec["suspend"].AsBool()))
    on_violation_(fmt::format("{} rests with {} pods", owner.key, active));
}

void WorkloadOracle::CheckFixpoint() {
  for (const auto& [uid, owner] : owners_) {
    if (!owner.IsGoing()) CheckRest(uid, owner);
  }
  for (const auto& [uid, pod] : pods_) {
    if (pod.gone) continue;
    // One that failed keeps its place in the history of its index until another one takes it.
    const Owner* owner = FindOwner(pod.owner);
    const bool is_history = pod.finished && pod.tracked && owner != nullptr &&
                            owner->kind == "Job" && !owner->finished && !owner->IsGoing();
    if (is_history) continue;
    if (pod.deleting) on_violation_(fmt::format("{} rests terminating", pod.key));
    if (pod.finished && pod.tracked)
      on_violation_(fmt::format("{} is over and still tracked", pod.key));
  }
}

}  // namespace muster::simulation
