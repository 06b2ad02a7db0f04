#include "simulator/live_workload.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "simulator/object_reader.h"

namespace muster::simulator {
namespace {

using cluster::PodInfo;
using cluster::PodKey;

// A pod as the API has it, and what it says of its run time.
struct LivePod {
  PodInfo info;
  Duration run_time = kNoKnownEnd;
  std::optional<Time> started;
};

// An annotation that cannot be read says nothing.
Duration RunTimeOrUnknown(const json::Value& object) {
  return RunTimeOf("", object, RunTime::kOptional).value_or(kNoKnownEnd);
}

std::map<std::string, Duration> RunTimesOfOwners(const std::vector<json::Value>& owners) {
  std::map<std::string, Duration> times;  // by PodInfo::holder
  for (const json::Value& owner : owners) {
    const json::Value& metadata = owner["metadata"];
    times[ToLower(owner["kind"].AsString()) + " " + metadata["namespace"].Str() + "/" +
          metadata["name"].Str()] = RunTimeOrUnknown(owner);
  }
  return times;
}

std::map<PodKey, LivePod> PodsOf(const scheduler::ClusterLists& lists,
                                 const std::vector<json::Value>& owners) {
  const std::map<std::string, Duration> times = RunTimesOfOwners(owners);
  std::map<PodKey, LivePod> pods;
  for (const json::Value& object : lists.pods["items"].items()) {
    LivePod pod;
    pod.info = cluster::ToPodInfo(object);
    if (pod.info.IsFinished()) continue;
    pod.run_time = RunTimeOrUnknown(object);
    if (const auto owner = times.find(pod.info.holder);
        pod.run_time == kNoKnownEnd && owner != times.end())
      pod.run_time = owner->second;
    pod.started = ParseTime(object["status"]["startTime"].AsString());
    pods.emplace(PodKey{pod.info.ns, pod.info.name}, std::move(pod));
  }
  return pods;
}

Duration LeftOf(const LivePod& pod, Time now) {
  if (pod.run_time == kNoKnownEnd) return kNoKnownEnd;
  const Duration left = pod.run_time - (now - pod.started.value_or(now));
  return left > Duration(0) ? left : kNoKnownEnd;  // it said less than it needs
}

void AddTo(Job& job, const LivePod& pod) {
  job.run_time = job.pods.empty() ? pod.run_time : std::max(job.run_time, pod.run_time);
  if (!job.pods.empty() && job.pods.back().labels == pod.info.labels &&
      job.pods.back().constraints == pod.info.constraints) {
    ++job.pods.back().count;
  } else {
    job.pods.push_back({1, pod.info.labels, pod.info.constraints});
  }
}

}  // namespace

Workload WorkloadOf(const scheduler::ClusterLists& lists, const std::vector<json::Value>& owners,
                    const std::vector<std::string>& scheduler_names, Time now) {
  Workload workload;
  for (const json::Value& node : lists.nodes["items"].items())
    workload.nodes.push_back(cluster::ToNodeInfo(node));
  for (const json::Value& each : lists.namespaces["items"].items())
    workload.namespaces[each["metadata"]["name"].Str()] =
        cluster::ToLabels(each["metadata"]["labels"]);
  const std::map<PodKey, LivePod> pods = PodsOf(lists, owners);
  for (const auto& [key, pod] : pods) {
    if (!pod.info.node_name.empty()) workload.running.push_back({pod.info, LeftOf(pod, now)});
  }
  // The queue in the scheduler's own order.
  const scheduler::ClusterCopy copy(lists, scheduler_names);
  scheduler::Queue queue = scheduler::BuildQueue(copy.cache, copy.pending, copy.priorities, {});
  std::sort(queue.begin(), queue.end(), scheduler::GoesBefore);
  for (const scheduler::Unit& unit : queue) {
    Job job;
    job.name = unit.name;
    job.ns = unit.ns;
    job.priority = unit.priority;
    const bool started = unit.is_gang && unit.occupied >= unit.min_member;
    for (const scheduler::QueuedPod& queued : unit.pods) {
      const LivePod& pod = pods.at(queued.key);
      if (started) job.pods.clear();
      AddTo(job, pod);
      if (!started) continue;
      job.name = queued.key.name;
      workload.jobs.push_back(job);
    }
    if (started) continue;
    if (unit.is_gang && unit.members < unit.min_member) {
      job.min_member = std::max(job.PodCount() + unit.min_member - unit.members, int64_t{2});
    }
    workload.jobs.push_back(std::move(job));
  }
  return workload;
}

}  // namespace muster::simulator
