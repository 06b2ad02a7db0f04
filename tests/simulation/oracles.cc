#include "simulation/oracles.h"

#include <algorithm>

#include "base/strings.h"
#include "cluster/devices.h"
#include "json/parse.h"

namespace muster::simulation {
namespace {

constexpr std::string_view kPodPrefix = "/registry/core/pods/";
constexpr std::string_view kNodePrefix = "/registry/core/nodes/";
constexpr std::string_view kEventPrefix = "/registry/core/events/";
constexpr std::string_view kJobPrefix = "/registry/kubeflow.org/pytorchjobs/";
constexpr std::string_view kGroupPrefix = "/registry/scheduling.volcano.sh/podgroups/";
// A plan may be this much older than what it leads to.
constexpr Duration kPlanAge = seconds(10);
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

}  // namespace

Oracles::Oracles(Loop& loop, store::Store& store, Counts& counts,
                 std::function<void(const std::string&)> on_violation)
    : loop_(loop), store_(store), counts_(counts), on_violation_(std::move(on_violation)) {
  const auto watch =
      store_.Watch("/registry/", 0, [this](const std::vector<store::WatchEvent>& batch) {
        for (const store::WatchEvent& event : batch) OnEvent(event);
      });
  watch_ = watch.value_or(0);
  if (!watch) on_violation_("cannot watch the store: " + watch.error().ToString());
}

Oracles::~Oracles() { store_.CancelWatch(watch_); }

void Oracles::OnEvent(const store::WatchEvent& event) {
  ++revisions_;
  if (event.revision <= last_revision_) {
    on_violation_(fmt::format("revision {} after {}", event.revision, last_revision_));
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
  trace_hash_ = Hash64(fmt::format("{} {} {}", event.revision, deleted, key), trace_hash_);
  trace_hash_ = Hash64(*event.entry->value, trace_hash_);

  const auto is = [&key](std::string_view prefix) { return key.starts_with(prefix); };
  if (!is(kPodPrefix) && !is(kNodePrefix) && !is(kGroupPrefix) && !is(kEventPrefix) &&
      !is(kJobPrefix)) {
    return;
  }
  const json::Value object = json::Parse(*event.entry->value).value_or(json::Value());
  if (is(kPodPrefix)) OnPod(event, object);
  if (is(kNodePrefix)) OnNode(event, object);
  if (is(kGroupPrefix)) {
    if (deleted) {
      gangs_.erase(GroupKey(object));
    } else {
      gangs_[GroupKey(object)] = object["spec"]["minMember"].AsInt();
    }
  }
  CountBranches(event, object);
}

void Oracles::OnNode(const store::WatchEvent& event, const json::Value& object) {
  const std::string name = object["metadata"]["name"].Str();
  if (event.type == store::WatchEvent::Type::kDelete) {
    nodes_.erase(name);
    nodes_changed_ = loop_.Now();
    return;
  }
  const auto [entry, made] =
      nodes_.try_emplace(name, static_cast<int64_t>(cluster::NodeDevices(object).size()));
  if (made || !object["spec"]["taints"].empty()) nodes_changed_ = loop_.Now();
}

void Oracles::OnPod(const store::WatchEvent& event, const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  const std::string uid = metadata["uid"].Str();
  if (event.type == store::WatchEvent::Type::kDelete) {
    pods_.erase(uid);
    return;
  }
  const std::string_view phase = object["status"]["phase"].AsString();
  Pod& pod = pods_[uid];
  const std::string before = pod.node;
  pod.key = event.entry->key;
  pod.ns = metadata["namespace"].Str();
  pod.group = metadata["annotations"]["scheduling.k8s.io/group-name"].Str();
  pod.node = object["spec"]["nodeName"].Str();
  pod.finished = phase == "Succeeded" || phase == "Failed";
  pod.epoch = ParseInt(metadata["annotations"]["training.muster.dev/epoch"].AsString()).value_or(0);
  pod.wanted_devices = WantedDevices(object);
  pod.devices.clear();
  for (const auto& [container, by_resource] : cluster::PodAssignedDevices(object)) {
    for (const auto& [resource, ids] : by_resource) pod.devices.insert(ids.begin(), ids.end());
  }
  if (event.previous == nullptr) {
    pod.created = loop_.Now();
    CheckEpoch(pod);
  }
  if (!before.empty() && before != pod.node) {
    on_violation_(fmt::format("{} was bound to {} and then to {}", pod.key, before, pod.node));
  }
  if (before.empty() && !pod.node.empty()) OnBound(uid, pod);
}

void Oracles::CheckEpoch(const Pod& pod) {
  for (const auto& [uid, other] : pods_) {
    if (other.ns != pod.ns || other.group != pod.group || other.epoch >= pod.epoch) continue;
    // A request of the epoch before may have been under way for so long.
    if (loop_.Now() - other.created < kLatestRequest) continue;
    on_violation_(fmt::format("{} of epoch {} was made while {} of epoch {} is there", pod.key,
                              pod.epoch, other.key, other.epoch));
  }
}

void Oracles::OnBound(const std::string& uid, const Pod& pod) {
  if (static_cast<int64_t>(pod.devices.size()) != pod.wanted_devices) {
    on_violation_(fmt::format("{} wants {} devices and got {}", pod.key, pod.wanted_devices,
                              pod.devices.size()));
  }
  for (const auto& [other_uid, other] : pods_) {
    if (other_uid == uid || other.node != pod.node || other.finished) continue;
    for (const std::string& device : pod.devices) {
      if (other.devices.contains(device)) {
        on_violation_(
            fmt::format("device {} is owned by {} and given to {}", device, other.key, pod.key));
      }
    }
  }
  if (!pod.group.empty()) CheckGangStart(uid, pod);
}

Oracles::Gang Oracles::CountGang(const std::string& ns, const std::string& group) const {
  Gang gang;
  for (const auto& [uid, pod] : pods_) {
    if (pod.ns != ns || pod.group != group) continue;
    ++gang.members;
    if (pod.node.empty()) {
      gang.wanted_devices += pod.wanted_devices;
    } else {
      ++gang.bound;
    }
  }
  return gang;
}

int64_t Oracles::FreeDevices() const {
  int64_t free = 0;
  for (const auto& [name, devices] : nodes_) free += devices;
  for (const auto& [uid, pod] : pods_) {
    if (nodes_.contains(pod.node) && !pod.finished)
      free -= static_cast<int64_t>(pod.devices.size());
  }
  return free;
}

void Oracles::CheckGangStart(const std::string&, const Pod& pod) {
  const auto minimum = gangs_.find(pod.ns + "/" + pod.group);
  if (minimum == gangs_.end()) {
    // Its PodGroup may have gone between the plan and the binding (job suspended or ended).
    counts_.Add("branch: bound after its PodGroup went");
    return;
  }
  const Gang gang = CountGang(pod.ns, pod.group);
  if (gang.bound != 1) return;
  counts_.Add("branch: gang began to be bound");
  if (gang.members < minimum->second) {
    on_violation_(fmt::format("{} was bound when its gang of {} had {} members", pod.key,
                              minimum->second, gang.members));
  }
  const bool whole = gang.members == minimum->second;
  const bool steady = loop_.Now() - nodes_changed_ > kPlanAge;
  if (whole && steady && FreeDevices() < gang.wanted_devices) {
    on_violation_(fmt::format("{} was bound though its gang lacks {} devices of which {} are free",
                              pod.key, gang.wanted_devices, FreeDevices()));
  }
}

void Oracles::CheckFixpoint() {
  for (const auto& [key, minimum] : gangs_) {
    const size_t slash = key.find('/');
    const Gang gang = CountGang(key.substr(0, slash), key.substr(slash + 1));
    if (gang.bound > 0 && gang.bound < minimum) {
      on_violation_(fmt::format("gang {} of {} rests with {} bound", key, minimum, gang.bound));
    }
    if (gang.bound == 0 && gang.members > 0) counts_.Add("branch: gang waits whole");
  }
  const auto range = store_.Range("/registry/", "", 0, 0);
  std::map<std::string, store::Revision> stored;
  for (const store::EntryPtr& entry : range->entries) stored[entry->key] = entry->mod_revision;
  if (stored != known_) on_violation_("the sum of all watch events is not the state of the store");
}

void Oracles::CheckInformer(const client::Informer& informer) {
  const client::Resource& resource = informer.resource();
  const std::string prefix = fmt::format(
      "/registry/{}/{}/", resource.group.empty() ? "core" : resource.group, resource.plural);
  const auto range = store_.Range(prefix, "", 0, 0);
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
