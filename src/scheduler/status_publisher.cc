#include "scheduler/status_publisher.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "schema/conditions.h"

namespace muster::scheduler {

namespace {

constexpr size_t kMaxWritesPerTask = 32;

bool Says(const json::Value& condition, const WaitReason& reason) {
  return condition["status"].AsString() == "False" &&
         condition["reason"].AsString() == reason.reason &&
         condition["message"].AsString() == reason.message;
}

json::Value PodPatch(const json::Value& condition, const WaitReason& reason, Time now) {
  return json::Obj(
      {{"status",
        json::Obj({{"conditions",
                    json::List({json::Obj(
                        {{"type", "PodScheduled"},
                         {"status", "False"},
                         {"lastProbeTime", nullptr},
                         {"lastTransitionTime", schema::TransitionTime(condition, "False", now)},
                         {"reason", reason.reason},
                         {"message", reason.message}})})}})}});
}

}  // namespace

const json::Fields& WaitReasonFields() {
  static const json::Fields fields{{"spec", "nodeName"}, {"status", "conditions"}};
  return fields;
}

StatusPublisher::StatusPublisher(client::ApiClient& api, client::Informer& pods,
                                 const GroupInformers& groups, GroupStatus group_status)
    : api_(api),
      pods_(pods),
      groups_(groups),
      group_status_(std::move(group_status)),
      events_(api, "default-scheduler", "") {}

void StatusPublisher::PodWaits(const client::ObjectKey& pod, WaitReason reason, Duration delay) {
  const Subject subject{std::nullopt, pod};
  const auto [at, added] = entries_.try_emplace(subject);
  Entry& entry = at->second;
  entry.forgotten = false;
  if (!added && entry.wanted == reason) return;
  entry.wanted = std::move(reason);
  if (delay > Duration(0))
    entry.next_allowed = std::max(entry.next_allowed, api_.loop().Now() + delay);
  MarkDirty(subject, entry);
}

void StatusPublisher::PodBound(const client::ObjectKey& pod, std::string_view node) {
  ForgetPod(pod);
  const json::Value* object = pods_.Find(pod);
  if (object == nullptr) return;
  events_.Record(*object, client::EventType::kNormal, "Scheduled",
                 fmt::format("Successfully assigned {}/{} to {}", pod.ns, pod.name, node));
}

void StatusPublisher::ForgetPod(const client::ObjectKey& pod) {
  const auto at = entries_.find({std::nullopt, pod});
  if (at == entries_.end()) return;
  at->second.dirty = false;
  at->second.forgotten = true;
  EraseIfDone(at);
}

void StatusPublisher::EraseIfDone(std::map<Subject, Entry>::iterator at) {
  const Entry& entry = at->second;
  if (entry.forgotten && !entry.queued && !entry.in_flight && !entry.dirty) entries_.erase(at);
}

void StatusPublisher::GroupChanged(const client::ObjectKey& group, cluster::GroupApi group_api) {
  const Subject subject{group_api, group};
  const auto [at, added] = entries_.try_emplace(subject);
  // Its pods are about to come, one event each.
  if (added) at->second.next_allowed = api_.loop().Now() + kGroupWriteInterval;
  at->second.forgotten = false;
  MarkDirty(subject, at->second);
}

void StatusPublisher::MarkDirty(const Subject& subject, Entry& entry) {
  entry.dirty = true;
  if (!entry.queued && !entry.in_flight) Enqueue(subject, entry);
}

void StatusPublisher::Enqueue(const Subject& subject, Entry& entry) {
  entry.queued = true;
  const Time now = api_.loop().Now();
  entry.next_allowed = std::min<Time>(entry.next_allowed, now + kMaxRewriteInterval);
  if (entry.next_allowed <= now) {
    ready_.push_back(subject);
    SchedulePump();
  } else {
    delayed_.emplace(entry.next_allowed, subject);
    ArmTimer();
  }
}

void StatusPublisher::ArmTimer() {
  if (delayed_.empty()) return;
  const Time due = delayed_.begin()->first;
  if (timer_ != 0 && timer_at_ <= due) return;
  api_.loop().Cancel(timer_);
  timer_at_ = due;
  timer_ = api_.loop().After(due - api_.loop().Now(), lifetime_.Guard([this] {
    timer_ = 0;
    // What the timer was set for is due, whatever the clock says by now.
    const Time due_by = std::max(timer_at_, api_.loop().Now());
    while (!delayed_.empty() && delayed_.begin()->first <= due_by) {
      ready_.push_back(delayed_.begin()->second);
      delayed_.erase(delayed_.begin());
    }
    ArmTimer();
    SchedulePump();
  }));
}

void StatusPublisher::SchedulePump() {
  if (pump_posted_ || ready_.empty() || in_flight_ >= kMaxStatusWritesInFlight) return;
  pump_posted_ = true;
  api_.loop().Post(lifetime_.Guard([this] {
    pump_posted_ = false;
    Pump();
  }));
}

void StatusPublisher::Pump() {
  for (size_t looked = 0;
       looked < kMaxWritesPerTask && !ready_.empty() && in_flight_ < kMaxStatusWritesInFlight;
       ++looked) {
    const Subject subject = std::move(ready_.front());
    ready_.pop_front();
    const auto at = entries_.find(subject);
    if (at == entries_.end()) continue;
    at->second.queued = false;
    if (at->second.dirty) Write(subject, at->second);
    EraseIfDone(at);
  }
  SchedulePump();
}

void StatusPublisher::Write(const Subject& subject, Entry& entry) {
  entry.dirty = false;
  const Time now = api_.loop().Now();
  const bool written =
      subject.group.has_value() ? WriteGroup(subject, entry) : WritePod(subject, entry);
  if (!written) return;
  entry.in_flight = true;
  ++in_flight_;
  // Calm for a while: the next change is written at once again.
  if (now - entry.next_allowed > kMaxRewriteInterval) entry.interval = kFirstRewriteInterval;
  // The status of a gang is what people and controllers wait for: it may follow faster than a pod's
  // reason.
  const Duration interval = subject.group.has_value() ? kGroupWriteInterval : entry.interval;
  entry.next_allowed = now + interval;
  entry.interval = std::min(entry.interval * 2, kMaxRewriteInterval);
}

bool StatusPublisher::WritePod(const Subject& subject, Entry& entry) {
  const json::Value* pod = pods_.Find(subject.key);
  if (pod == nullptr || !pod->Path({"spec", "nodeName"}).AsString().empty()) return false;
  const json::Value& condition =
      schema::FindCondition(pod->Path({"status", "conditions"}), "PodScheduled");
  if (Says(condition, entry.wanted)) return false;
  const json::Value patch = PodPatch(condition, entry.wanted, api_.loop().Now());
  const client::Target target{client::resources::kPods, subject.key.ns, subject.key.name, "status"};
  api_.Patch(target, client::PatchType::kStrategic, patch,
             lifetime_.Guard([this, subject](Result<json::Value> answer) {
               OnWritten(subject, answer.has_value() ? Status() : answer.error());
             }));
  if (entry.wanted.reason != "SchedulingGated" && entry.wanted.reason != kWaitsForVolumes) {
    events_.Record(*pod, client::EventType::kWarning, "FailedScheduling", entry.wanted.message);
  }
  return true;
}

bool StatusPublisher::WriteGroup(const Subject& subject, Entry& entry) {
  const size_t group_api = static_cast<size_t>(*subject.group);
  const json::Value* group = groups_[group_api]->Find(subject.key);
  entry.forgotten = group == nullptr;
  if (group == nullptr) return false;
  const json::Value status = group_status_(subject.key, *subject.group, *group);
  if (status == (*group)["status"]) return false;
  const client::Target target{kGroupResources[group_api], subject.key.ns, subject.key.name,
                              "status"};
  api_.Patch(target, client::PatchType::kMerge, json::Obj({{"status", status}}),
             lifetime_.Guard([this, subject](Result<json::Value> answer) {
               OnWritten(subject, answer.has_value() ? Status() : answer.error());
             }));
  return true;
}

void StatusPublisher::OnWritten(const Subject& subject, const Status& status) {
  --in_flight_;
  SchedulePump();
  const auto at = entries_.find(subject);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  entry.in_flight = false;
  if (status.ok() || status.reason() == Reason::kNotFound) {
    entry.failures = 0;
  } else {
    LOG_WARN("scheduler: could not write a status object={} error={}", subject.key.ToString(),
             status.ToString());
    const Duration pause = kFirstRewriteInterval * (int64_t{1} << std::min(entry.failures++, 10));
    entry.next_allowed = api_.loop().Now() + std::min<Duration>(pause, kMaxRewriteInterval);
    entry.dirty = true;
  }
  if (entry.forgotten) entry.dirty = false;
  if (entry.dirty) Enqueue(subject, entry);
  EraseIfDone(at);
}

}  // namespace muster::scheduler
