// src/schema/queued_kinds.h
//
// Which objects wait in a queue of Kueue's (kueue.x-k8s.io): those of some kinds that carry the
// label kueue.x-k8s.io/queue-name. Until their quota is reserved they are suspended, or, pods, held
// by a scheduling gate. For all who need to know: the API server, which makes them so from the
// start, the queue controllers, the commands.
//
// Thread: any (constants and pure functions).

#pragma once

#include <span>
#include <string_view>

#include "json/value.h"

namespace muster::schema {

inline constexpr std::string_view kQueueNameLabel = "kueue.x-k8s.io/queue-name";
inline constexpr std::string_view kQueuePriorityLabel = "kueue.x-k8s.io/priority-class";
// Pods.
inline constexpr std::string_view kQueueGate = "kueue.x-k8s.io/admission";
inline constexpr std::string_view kManagedLabel = "kueue.x-k8s.io/managed";

struct QueuedKind {
  std::string_view group, version, kind, plural;
  // Of a training job spec.runPolicy.suspend, otherwise spec.suspend; pods have neither.
  bool in_run_policy = false;

  bool IsPod() const { return kind == "Pod"; }
};

std::span<const QueuedKind> QueuedKinds();
// nullptr if objects of the kind do not wait in queues.
const QueuedKind* FindQueuedKind(std::string_view group, std::string_view kind);

// "" if the object waits in none. What another one of these kinds controls waits with that.
std::string_view QueueOf(const json::Value& object);

bool IsSuspended(const QueuedKind& kind, const json::Value& object);
// A pod gets the gate, or loses it.
json::Value WithSuspended(const QueuedKind& kind, const json::Value& object, bool suspended);

}  // namespace muster::schema
