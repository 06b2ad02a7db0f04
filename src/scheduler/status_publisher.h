// src/scheduler/status_publisher.h
//
// StatusPublisher: tells the API why pods wait (condition PodScheduled=False and event
// FailedScheduling) and where they went (event Scheduled), and keeps the status of PodGroups.
//
// Only changes are written, and the text of one object at most once per interval (1 s, doubling to
// 30 s while it goes on changing): ten thousand waiting pods must not answer each end of a job with
// ten thousand writes.
//
// Life cycle: lives with its scheduler; destroying it abandons what is in flight.
// Thread:     the loop thread.
// Invariants: what was published last is the latest text, once things calm down, however long the
//             server was away: a write that failed is repeated after 1 s, doubling to 30 s; one
//             write per object at a time; at most kMaxStatusWritesInFlight in all, so bindings go
//             first; a clock that is set back holds nothing up for more than 30 s.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "client/api_client.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/lifetime.h"
#include "cluster/pod_info.h"
#include "json/value.h"

namespace muster::scheduler {

inline constexpr size_t kMaxStatusWritesInFlight = 32;
inline constexpr Duration kFirstRewriteInterval = seconds(1);
inline constexpr Duration kMaxRewriteInterval = seconds(30);
// What usually passes by itself (the pods of a gang are created one by one) is written only if it
// stays this long.
inline constexpr Duration kPassingReasonDelay = milliseconds(500);
inline constexpr Duration kGroupWriteInterval = milliseconds(100);

// The PodGroups that we know, by GroupApi.
using GroupInformers = std::array<client::Informer*, cluster::kGroupApis>;
inline const std::array<client::Resource, cluster::kGroupApis> kGroupResources = {
    client::resources::kPodGroups,
    client::Resource{"scheduling.x-k8s.io", "v1alpha1", "podgroups"}};

// Of pods that have a place and wait for their volumes: no failure, and no event. Ours: upstream
// says nothing meanwhile.
inline constexpr std::string_view kWaitsForVolumes = "WaitingForVolumes";

struct WaitReason {
  std::string reason;  // "Unschedulable", "SchedulingGated", "SchedulerError", kWaitsForVolumes
  std::string message;
  bool operator==(const WaitReason&) const = default;
};

// What a StatusPublisher reads of a pod.
const json::Fields& WaitReasonFields();

class StatusPublisher {
 public:
  // Makes the PodGroup's new status from the object as it is; the same as before when nothing
  // changes.
  using GroupStatus = std::function<json::Value(
      const client::ObjectKey& group, cluster::GroupApi group_api, const json::Value& object)>;

  StatusPublisher(client::ApiClient& api, client::Informer& pods, const GroupInformers& groups,
                  GroupStatus group_status);

  // Written after `delay` at the earliest, and then as it is by that time.
  void PodWaits(const client::ObjectKey& pod, WaitReason reason, Duration delay = {});
  void PodBound(const client::ObjectKey& pod, std::string_view node);
  void ForgetPod(const client::ObjectKey& pod);
  void GroupChanged(const client::ObjectKey& group, cluster::GroupApi group_api);

  bool Idle() const { return ready_.empty() && in_flight_ == 0 && delayed_.empty(); }

 private:
  struct Subject {
    std::optional<cluster::GroupApi> group;  // absent: it is a pod
    client::ObjectKey key;
    auto operator<=>(const Subject&) const = default;
  };
  struct Entry {
    WaitReason wanted;    // pods
    bool dirty = false;   // something to write
    bool queued = false;  // in ready_ or delayed_
    bool in_flight = false;
    bool forgotten = false;  // to be erased when nothing refers to it any more
    int failures = 0;
    Time next_allowed{};
    Duration interval = kFirstRewriteInterval;
  };

  void MarkDirty(const Subject& subject, Entry& entry);
  void Enqueue(const Subject& subject, Entry& entry);
  void SchedulePump();
  void Pump();
  void ArmTimer();
  void Write(const Subject& subject, Entry& entry);
  bool WritePod(const Subject& subject, Entry& entry);
  bool WriteGroup(const Subject& subject, Entry& entry);
  void EraseIfDone(std::map<Subject, Entry>::iterator at);
  void OnWritten(const Subject& subject, const Status& status);

  client::ApiClient& api_;
  client::Informer& pods_;
  const GroupInformers groups_;
  GroupStatus group_status_;
  client::EventRecorder events_;
  std::map<Subject, Entry> entries_;
  std::deque<Subject> ready_;
  std::multimap<Time, Subject> delayed_;
  size_t in_flight_ = 0;
  bool pump_posted_ = false;
  TimerId timer_ = 0;
  Time timer_at_{};
  client::Lifetime lifetime_;
};

}  // namespace muster::scheduler
