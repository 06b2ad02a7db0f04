#include "simulation/oracles.h"

#include <algorithm>

#include "base/strings.h"
#include "cluster/devices.h"
#include "json/parse.h"
#include "simulation/disruption_budgets.h"

namespace muster::simulation {
namespace {

constexpr std::string_view kPodPrefix = "/registry/core/pods/";
constexpr std::string_view kNodePrefix = "/registry/core/nodes/";
constexpr std::string_view kEventPrefix = "/registry/core/events/";
constexpr std::string_view kCrdPrefix = "/registry/apiextensions.k8s.io/";
constexpr std::string_view kNamespacePrefix = "/registry/core/namespaces/";
constexpr std::string_view kJobPrefix = "/registry/kubeflow.org/pytorchjobs/";
constexpr std::string_view kGroupPrefix = "/registry/scheduling.volcano.sh/podgroups/";
// A request of the epoch before may have been under way for so long.
constexpr Duration kLatestRequest = seconds(1);

int64_t WantedDevices(const json::Value& pod) {
  int64_t sum = 0;
  for (const json::Value& container : pod["spec"]["containers"].items()) {
    sum += ParseInt(container["resources"]["limits"]["nvidia.com/gpu"].AsString()).value_or(0);
  }
  return sum;
}

std::string GroupKey(const json::Value& object) {
  return object["metadata"]["namespace"].Str() + "/" + object["metadata"]["name"].Str();
}

int64_t NumberIn(const json::Value& annotation) {
  return ParseInt(annotation.AsString()).value_or(0);
}

bool HasCondition(const json::Value& object, std::string_view type) {
  for (const json::Value& condition : object["status"]["conditions"].items()) {
    if (condition["type"].AsString() == type) return condition["status"].AsString() == "True";
  }
  return false;
}

bool HasFinalizer(const json::Value& object, std::string_view finalizer) {
  const json::Array& all = object["metadata"]["finalizers"].items();
  return std::any_of(all.begin(), all.end(),
                     [&](const json::Value& one) { return one.AsString() == finalizer; });
}

PodState ToPodState(const std::string& key, const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  const json::Value& status = object["status"];
  const std::string_view phase = status["phase"].AsString();
  PodState pod;
  pod.key = key;
  pod.ns = metadata["namespace"].Str();
  pod.name = metadata["name"].Str();
  pod.group = metadata["annotations"]["scheduling.k8s.io/group-name"].Str();
  pod.node = object["spec"]["nodeName"].Str();
  for (const json::Value& owner : metadata["ownerReferences"].items()) {
    if (owner["controller"].AsBool()) pod.owner_uid = owner["uid"].Str();
  }
  pod.replica = metadata["labels"]["training.kubeflow.org/replica-type"].Str() + "/" +
                metadata["labels"]["training.kubeflow.org/replica-index"].Str();
  for (const auto& [container, by_resource] : cluster::PodAssignedDevices(object)) {
    for (const auto& [resource, ids] : by_resource) pod.devices.insert(ids.begin(), ids.end());
  }
  pod.wanted_devices = WantedDevices(object);
  pod.epoch = NumberIn(metadata["annotations"]["training.muster.dev/epoch"]);
  pod.restarts = status["containerStatuses"].At(0)["restartCount"].AsInt();
  pod.priority = object["spec"]["priority"].AsInt();
  pod.may_preempt = object["spec"]["preemptionPolicy"].AsString() != "Never";
  pod.app = metadata["labels"]["app"].Str();
  pod.nominated = status["nominatedNodeName"].Str();
  for (const json::Value& condition : status["conditions"].items())
    pod.preempted |= condition["reason"].AsString() == "PreemptionByScheduler";
  pod.deleting = metadata.Has("deletionTimestamp");
  pod.running = phase == "Running";
  pod.succeeded = phase == "Succeeded";
  pod.failed = phase == "Failed";
  return pod;
}

}  // namespace

Oracles::Oracles(SimLoop& loop, Counts& counts,
                 std::function<void(const std::string&)> on_violation,
                 std::function<void(const std::string&)> tell)
    : loop_(loop),
      counts_(counts),
      on_violation_(on_violation),
      tell_(std::move(tell)),
      gangs_(loop, counts, on_violation),
      preemption_(loop, counts, on_violation),
      workloads_(loop, counts, std::move(on_violation)) {}

void Oracles::Attach(store::Store* store) {
  store_ = store;
  if (store == nullptr) return;
  if (store->CommittedRevision() < last_revision_) {
    on_violation_(fmt::format("revision {} was seen and is lost: the store is at {}",
                              last_revision_, store->CommittedRevision()));
  }
  const auto watch =
      store->Watch("", last_revision_, [this](const std::vector<store::WatchEvent>& batch) {
        for (const store::WatchEvent& event : batch) OnEvent(event);
      });
  if (!watch) on_violation_("cannot watch the store: " + watch.error().ToString());
}

void Oracles::OnAcknowledged(const net::Response& response) {
  if (store_ == nullptr) return;
  // A client that takes values gets its answer as one; errors are text.
  const auto revision = static_cast<store::Revision>(client::RevisionOf(response.value));
  if (revision > 0) counts_.Add("oracle: acknowledged revision");
  if (revision > store_->CommittedRevision()) {
    on_violation_(fmt::format("revision {} was acknowledged before its commit", revision));
  }
}

void Oracles::OnEvent(const store::WatchEvent& event) {
  if (event.revision != last_revision_ + 1) {
    on_violation_(fmt::format("revision {} after {}", event.revision, last_revision_));
  }
  if (event.revision > store_->CommittedRevision()) {
    on_violation_(fmt::format("revision {} was seen before its commit", event.revision));
  }
  last_revision_ = event.revision;
  const std::string& key = event.entry->key;
  const auto known = known_.find(key);
  const store::Revision before = event.previous == nullptr ? 0 : event.previous->mod_revision;
  if ((known == known_.end() ? 0 : known->second) != before) {
    on_violation_(
        fmt::format("{} at {}: the watch says that it was at {}", key, event.revision, before));
  }
  const bool deleted = event.type == store::WatchEvent::Type::kDelete;
  if (deleted) {
    known_.erase(key);
  } else {
    known_[key] = event.revision;
  }
  log_.push_back({key, deleted});
  trace_hash_ = Hash64(fmt::format("{} {} {}", event.revision, deleted, key), trace_hash_);
  trace_hash_ =
      Hash64(std::to_string(std::hash<std::string_view>()(*event.entry->value)), trace_hash_);

  const auto is = [&key](std::string_view prefix) { return key.starts_with(prefix); };
  if (deleted && is(kNamespacePrefix)) CheckDeletedNamespace(key);
  const bool heard = std::any_of(listeners_.begin(), listeners_.end(),
                                 [&](const auto& entry) { return is(entry.first); });
  if (!heard && !is(kPodPrefix) && !is(kNodePrefix) && !is(kGroupPrefix) && !is(kEventPrefix) &&
      !is(kJobPrefix) && !is(kBudgetPrefix) && !WorkloadOracle::Sees(key)) {
    return;
  }
  const json::Value object = json::Parse(*event.entry->value).value_or(json::Value());
  if (tell_) Tell(event, object);
  if (is(kPodPrefix)) OnPod(event, object);
  if (WorkloadOracle::Sees(key)) workloads_.OnChange(key, object, deleted);
  if (is(kNodePrefix)) OnNode(event, object);
  if (is(kJobPrefix)) OnJob(event, object);
  if (is(kGroupPrefix)) {
    const std::optional<int64_t> minimum =
        deleted ? std::nullopt : object["spec"]["minMember"].Int();
    gangs_.OnGroup(GroupKey(object), minimum);
    preemption_.OnGroup(GroupKey(object), minimum);
  }
  if (is(kBudgetPrefix)) preemption_.OnBudget(key, deleted ? json::Value() : object);
  CountBranches(event, object);
  for (const auto& [prefix, listener] : listeners_) {
    if (is(prefix)) listener(key, object, deleted);
  }
}

void Oracles::Tell(const store::WatchEvent& event, const json::Value& object) const {
  std::string line = fmt::format("{:5} {} {}", event.revision,
                                 event.type == store::WatchEvent::Type::kDelete ? "gone"
                                 : event.previous                               ? "put "
                                                                                : "new ",
                                 event.entry->key.substr(std::string_view("/registry/").size()));
  const json::Value& status = object["status"];
  const json::Value& conditions = status["conditions"];
  const bool deleting = object["metadata"].Has("deletionTimestamp");
  for (const std::string_view part :
       {object["reason"].AsString(), object["message"].AsString(), status["phase"].AsString(),
        object["spec"]["nodeName"].AsString(), std::string_view(deleting ? "deleting" : "")}) {
    if (!part.empty()) line += fmt::format(" {}", part);
  }
  for (const json::Value& condition : conditions.items()) {
    if (condition["status"].AsString() == "True")
      line += fmt::format(" {}", condition["type"].AsString());
  }
  tell_(line);
}

void Oracles::OnNode(const store::WatchEvent& event, const json::Value& object) {
  std::optional<int64_t> devices;
  if (event.type == store::WatchEvent::Type::kPut) {
    const bool usable = object["spec"]["taints"].empty();
    devices = usable ? static_cast<int64_t>(cluster::NodeDevices(object).size()) : 0;
  }
  gangs_.OnNode(object["metadata"]["name"].Str(), devices);
  preemption_.OnNode(object["metadata"]["name"].Str(), devices);
}

void Oracles::ChangePod(const PodState* before, const PodState* after) {
  gangs_.OnPod(before, after);
  preemption_.OnPod(before, after);
}

void Oracles::OnPod(const store::WatchEvent& event, const json::Value& object) {
  const std::string uid = object["metadata"]["uid"].Str();
  const auto found = pods_.find(uid);
  if (event.type == store::WatchEvent::Type::kDelete) {
    ChangePod(&found->second, nullptr);
    pods_.erase(found);
    return;
  }
  PodState pod = ToPodState(event.entry->key, object);
  if (event.previous == nullptr) {
    pod.created = loop_.Steady();
    OnNewPod(uid, pod);
    ChangePod(nullptr, &pod);
    pods_[uid] = std::move(pod);
    return;
  }
  const PodState before = std::move(found->second);
  pod.created = before.created;
  if (!before.node.empty() && before.node != pod.node) {
    on_violation_(fmt::format("{} was bound to {} and then to {}", pod.key, before.node, pod.node));
  }
  if (before.node.empty() && !pod.node.empty()) OnBound(uid, pod);
  if (before.IsFinished() && (!pod.IsFinished() || before.failed != pod.failed))
    on_violation_(fmt::format("{} had finished and is not any more", pod.key));
  ChangePod(&before, &pod);
  RememberForJob(uid, pod);
  found->second = std::move(pod);
}

void Oracles::OnNewPod(const std::string& uid, const PodState& pod) {
  for (const auto& [other_uid, other] : pods_) {
    if (other_uid == uid || other.ns != pod.ns) continue;
    const bool is_replica = !pod.owner_uid.empty() && pod.replica != "/";
    if (is_replica && other.owner_uid == pod.owner_uid && other.replica == pod.replica)
      on_violation_(fmt::format("{} was made while {} is there", pod.key, other.key));
    if (other.group != pod.group || other.epoch >= pod.epoch) continue;
    if (loop_.Steady() - other.created < kLatestRequest) continue;
    on_violation_(fmt::format("{} of epoch {} was made while {} of epoch {} is there", pod.key,
                              pod.epoch, other.key, other.epoch));
  }
}

void Oracles::OnBound(const std::string& uid, const PodState& pod) {
  if (static_cast<int64_t>(pod.devices.size()) != pod.wanted_devices) {
    on_violation_(fmt::format("{} wants {} devices and got {}", pod.key, pod.wanted_devices,
                              pod.devices.size()));
  }
  for (const auto& [other_uid, other] : pods_) {
    if (other_uid == uid || other.node != pod.node || other.IsFinished()) continue;
    for (const std::string& device : pod.devices) {
      if (other.devices.contains(device)) {
        on_violation_(
            fmt::format("device {} is owned by {} and given to {}", device, other.key, pod.key));
      }
    }
  }
}

// ---- jobs ----

void Oracles::RememberForJob(const std::string& uid, const PodState& pod) {
  if (pod.owner_uid.empty()) return;
  JobHistory& job = jobs_[pod.owner_uid];
  if (pod.restarts > 0) job.restarts_in_place[uid] = pod.restarts;
  if (pod.failed) {
    job.failures.insert(fmt::format("epoch {}", pod.epoch));
    job.failures.insert(uid);
  }
  if (pod.succeeded) job.succeeded.insert(pod.replica);
}

void Oracles::OnJob(const store::WatchEvent& event, const json::Value& job) {
  if (event.type == store::WatchEvent::Type::kDelete) return CheckDeletedOwner(job);
  JobHistory& history = jobs_[job["metadata"]["uid"].Str()];
  const int64_t restarts = NumberIn(job["metadata"]["annotations"]["training.muster.dev/restarts"]);
  if (restarts > history.restarts_recorded) ++history.increases;
  history.restarts_recorded = restarts;
  const json::Value& limit = job["spec"]["runPolicy"]["backoffLimit"];
  if (!limit.IsNull() && history.increases > limit.AsInt()) {
    on_violation_(fmt::format("{} was restarted {} times, its backoffLimit is {}", event.entry->key,
                              history.increases, limit.AsInt()));
  }
  const bool finished = HasCondition(job, "Succeeded") || HasCondition(job, "Failed");
  if (finished && !std::exchange(history.finished, true)) CheckEnd(job, history);
  if (!finished && history.finished)
    on_violation_(fmt::format("{} had ended and goes on", event.entry->key));
}

// A job has just ended: were its pods like that?
void Oracles::CheckEnd(const json::Value& job, const JobHistory& history) {
  const json::Value& spec = job["spec"];
  const bool elastic = spec.Has("elasticPolicy");
  const std::string name = GroupKey(job);
  if (HasCondition(job, "Succeeded")) {
    const bool master = spec["pytorchReplicaSpecs"].Has("Master");
    const int64_t workers = spec["pytorchReplicaSpecs"]["Worker"]["replicas"].AsInt();
    const int64_t needed = master || elastic ? 1 : workers;
    int64_t succeeded = 0;
    for (int64_t i = 0; i < (master ? 1 : workers); ++i)
      succeeded +=
          history.succeeded.contains(fmt::format("{}/{}", master ? "master" : "worker", i));
    if (succeeded < needed)
      on_violation_(
          fmt::format("job {} succeeded, {} of its {} pods did", name, succeeded, needed));
    return;
  }
  const json::Value& conditions = job["status"]["conditions"];
  const std::string_view why = conditions.At(conditions.size() - 1)["message"].AsString();
  if (why.find("backoff limit") == why.npos) return;
  const auto failures =
      std::count_if(history.failures.begin(), history.failures.end(),
                    [&](const std::string& one) { return one.starts_with("epoch ") != elastic; });
  int64_t in_place = 0;
  for (const auto& [uid, restarts] : history.restarts_in_place) in_place += restarts;
  const int64_t limit = spec["runPolicy"]["backoffLimit"].AsInt();
  // Restarts in place reach the limit, recreations pass it.
  if (failures + in_place >= limit + (in_place > 0 ? 0 : 1)) return;
  on_violation_(
      fmt::format("job {} failed at its backoffLimit {} after {} failures and {} restarts", name,
                  limit, failures, in_place));
}

// ---- deletion ----

void Oracles::CheckDeletedOwner(const json::Value& owner) {
  const bool foreground = HasFinalizer(owner, "foregroundDeletion");
  if (!foreground && !HasFinalizer(owner, "orphan")) return;
  counts_.Add(foreground ? "branch: owner went after its dependents"
                         : "branch: owner let go of its dependents");
  if (need_not_wait_.contains(GroupKey(owner))) return;
  const std::string uid = owner["metadata"]["uid"].Str();
  for (const auto& [pod_uid, pod] : pods_) {
    // A pod that was made while its owner went may be unknown to the collector yet; it follows.
    if (pod.owner_uid != uid || loop_.Steady() - pod.created < kPlanAge) continue;
    on_violation_(fmt::format("{} went ({}) and {} is still its own", GroupKey(owner),
                              foreground ? "foreground" : "orphan", pod.key));
  }
}

void Oracles::CheckDeletedNamespace(const std::string& key) {
  const std::string name = key.substr(kNamespacePrefix.size());
  for (const auto& [other, revision] : known_) {
    const auto parts = Split(other, '/');  // "", registry, group, resource, namespace, name
    if (parts.size() == 6 && parts[4] == name)
      on_violation_(fmt::format("namespace {} went and {} is still there", name, other));
  }
}

// ---- the past ----

void Oracles::CheckPast(Rng& rng) {
  if (store_ == nullptr || last_revision_ == 0) return;
  const store::Revision first = std::max<store::Revision>(store_->CompactedRevision(), 1);
  const store::Revision at = rng.Between(std::min(first, last_revision_), last_revision_);
  std::map<std::string, store::Revision> then;
  for (store::Revision revision = 1; revision <= at; ++revision) {
    const Change& change = log_[static_cast<size_t>(revision - 1)];
    if (change.deleted) {
      then.erase(change.key);
    } else {
      then[change.key] = revision;
    }
  }
  const auto range = store_->Range("", "", 0, at);
  if (!range) return on_violation_(fmt::format("cannot read {}: {}", at, range.error().ToString()));
  std::map<std::string, store::Revision> read;
  for (const store::EntryPtr& entry : range->entries) read[entry->key] = entry->mod_revision;
  counts_.Add("branch: the past was read");
  if (read != then) on_violation_(fmt::format("revision {} reads otherwise than it was", at));
}

// ---- at rest ----

void Oracles::CheckFixpoint() {
  gangs_.CheckFixpoint();
  preemption_.CheckFixpoint();
  workloads_.CheckFixpoint();
  const auto range = store_->Range("", "", 0, 0);
  std::map<std::string, store::Revision> stored;
  std::vector<json::Value> objects;
  for (const store::EntryPtr& entry : range->entries) {
    stored[entry->key] = entry->mod_revision;
    const std::string_view key = entry->key;
    // Large ones, and nobody's owners or dependents.
    if (key.starts_with(kEventPrefix) || key.starts_with(kCrdPrefix)) continue;
    objects.push_back(json::Parse(*entry->value).value_or(json::Value()));
    if (key.starts_with(kJobPrefix)) CheckJobAtRest(objects.back());
    if (key.starts_with(kGroupPrefix)) CheckGroupAtRest(objects.back());
  }
  if (stored != known_) on_violation_("the sum of all watch events is not the state of the store");
  CheckOwnersAtRest(objects);
}

void Oracles::CheckOwnersAtRest(const std::vector<json::Value>& objects) {
  std::set<std::string> uids;
  for (const json::Value& object : objects) uids.insert(object["metadata"]["uid"].Str());
  for (const json::Value& object : objects) {
    for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
      if (uids.contains(owner["uid"].Str())) continue;
      on_violation_(fmt::format("{} is an orphan of {} {}", GroupKey(object),
                                owner["kind"].AsString(), owner["name"].AsString()));
    }
  }
}

void Oracles::CheckJobAtRest(const json::Value& job) {
  if (HasCondition(job, "Succeeded") || HasCondition(job, "Failed")) return;
  const std::string uid = job["metadata"]["uid"].Str();
  std::map<std::string, int64_t> active, succeeded, failed;
  for (const auto& [pod_uid, pod] : pods_) {
    if (pod.owner_uid != uid) continue;
    const std::string type = pod.replica.starts_with("master") ? "Master" : "Worker";
    active[type] += pod.running && !pod.deleting;
    succeeded[type] += pod.succeeded;
    failed[type] += pod.failed;
  }
  const bool suspended = HasCondition(job, "Suspended");
  if (suspended && !active.empty())
    on_violation_(fmt::format("job {} is suspended and has pods", GroupKey(job)));
  int64_t all_active = 0;
  for (const json::Member& member : job["status"]["replicaStatuses"].members()) {
    const auto& [type, says] = member;
    all_active += active[type];
    if (says["active"].AsInt() == active[type] && says["succeeded"].AsInt() == succeeded[type] &&
        says["failed"].AsInt() == failed[type]) {
      continue;
    }
    on_violation_(
        fmt::format("job {} says {} {} active, {} succeeded, {} failed; so are {}, {}, {}",
                    GroupKey(job), type, says["active"].AsInt(), says["succeeded"].AsInt(),
                    says["failed"].AsInt(), active[type], succeeded[type], failed[type]));
  }
  if (HasCondition(job, "Running") != (all_active > 0) && !suspended)
    on_violation_(
        fmt::format("job {} with {} active pods errs about Running", GroupKey(job), all_active));
  if (all_active > 0) counts_.Add("branch: job rests running");
}

void Oracles::CheckGroupAtRest(const json::Value& group) {
  int64_t running = 0, succeeded = 0, failed = 0;
  for (const auto& [uid, pod] : pods_) {
    if (pod.ns + "/" + pod.group != GroupKey(group)) continue;
    running += pod.running;
    succeeded += pod.succeeded;
    failed += pod.failed;
  }
  const json::Value& says = group["status"];
  if (says["running"].AsInt() == running && says["succeeded"].AsInt() == succeeded &&
      says["failed"].AsInt() == failed) {
    return;
  }
  on_violation_(
      fmt::format("PodGroup {} says {} running, {} succeeded, {} failed; so are {}, {}, {}",
                  GroupKey(group), says["running"].AsInt(), says["succeeded"].AsInt(),
                  says["failed"].AsInt(), running, succeeded, failed));
}

void Oracles::CheckInformer(const client::Informer& informer) {
  const client::Resource& resource = informer.resource();
  const std::string prefix = fmt::format(
      "/registry/{}/{}/", resource.group.empty() ? "core" : resource.group, resource.plural);
  const auto range = store_->Range(prefix, "", 0, 0);
  std::map<client::ObjectKey, store::Revision> stored;
  for (const store::EntryPtr& entry : range->entries) {
    const std::vector<std::string_view> parts =
        Split(std::string_view(entry->key).substr(prefix.size()), '/');
    stored[{parts.size() > 1 ? std::string(parts[0]) : "", std::string(parts.back())}] =
        entry->mod_revision;
  }
  std::map<client::ObjectKey, store::Revision> seen;
  for (const auto& [key, object] : informer.objects()) {
    seen[key] = static_cast<store::Revision>(client::RevisionOf(object));
  }
  if (seen == stored) return;
  for (const auto& [key, revision] : stored) {
    if (seen[key] == revision) continue;
    on_violation_(fmt::format("informer of {}: {} is at {} and the store's at {}", resource.plural,
                              key.ToString(), seen[key], revision));
  }
  on_violation_(fmt::format("informer of {} has {} objects, the store {}", resource.plural,
                            informer.objects().size(), stored.size()));
}

// What happened, as the API objects tell it.
void Oracles::CountBranches(const store::WatchEvent& event, const json::Value& object) {
  const std::string& key = event.entry->key;
  const bool deleted = event.type == store::WatchEvent::Type::kDelete;
  if (key.starts_with(kEventPrefix) && event.previous == nullptr) {
    const std::string_view reason = object["reason"].AsString();
    const std::string_view message = object["message"].AsString();
    static const std::map<std::string_view, std::string_view> kByReason = {
        {"PyTorchJobRestarting", "branch: job restarted"},
        {"PyTorchJobSucceeded", "branch: job succeeded"},
        {"PyTorchJobFailed", "branch: job failed"},
        {"PyTorchJobSuspended", "branch: job suspended"},
        {"PyTorchJobResumed", "branch: job resumed"},
        {"ExitedWithCode", "branch: pod exited with a code"},
        {"TaintManagerEviction", "branch: pod evicted from a silent node"},
        {"NodeNotReady", "branch: node became unknown"},
        {"FailedScheduling", "branch: why a pod waits was said"}};
    if (const auto found = kByReason.find(reason); found != kByReason.end())
      counts_.Add(found->second);
    const auto says = [message](std::string_view text) {
      return message.find(text) != message.npos;
    };
    if (says("was lost")) counts_.Add("branch: gang restarted for a lost pod");
    if (says("number of replicas")) counts_.Add("branch: gang restarted for a new size");
    if (says("backoff limit")) counts_.Add("branch: backoffLimit reached");
    if (says("specified deadline")) counts_.Add("branch: activeDeadlineSeconds passed");
  }
  if (key.starts_with(kJobPrefix) && deleted) counts_.Add("branch: job deleted");
  const json::Value& annotations = object["metadata"]["annotations"];
  if (key.starts_with(kJobPrefix) &&
      !annotations["training.muster.dev/replaced-pods"].AsString().empty()) {
    counts_.Add("branch: elastic pod replaced");
  }
}

}  // namespace muster::simulation
