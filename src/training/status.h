// src/training/status.h
//
// The status of a training job: conditions with upstream's rules (kubeflow/training-operator
// pkg/util/status.go) and the counts per replica type.
//
//   Created -> Running <-> Restarting -> Succeeded | Failed
//   Suspended: True while suspended, then False (Resumed)
//
// Thread:     any (pure).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "json/value.h"
#include "training/job.h"

namespace muster::training {

inline constexpr std::string_view kCreated = "Created";
inline constexpr std::string_view kRunning = "Running";
inline constexpr std::string_view kRestarting = "Restarting";
inline constexpr std::string_view kSucceeded = "Succeeded";
inline constexpr std::string_view kFailed = "Failed";
inline constexpr std::string_view kSuspended = "Suspended";

struct Condition {
  std::string_view type;
  bool holds = true;
  std::string reason;  // "PyTorchJobRunning"
  std::string message;
};

bool HasCondition(const json::Value& status, std::string_view type);  // with status True
bool IsFinished(const json::Value& status);

// Running and Restarting remove each other; Succeeded, Failed and Suspended make Running false;
// after Failed or Succeeded nothing changes; the same status and reason again is no change. The
// newest condition stands last.
json::Value WithCondition(const json::Value& status, const Condition& condition, Time now);

struct ReplicaCounts {
  int64_t active = 0, succeeded = 0, failed = 0;
};
// A zero count is absent, as a Go client writes it.
json::Value ReplicaStatus(const ReplicaCounts& counts, const std::string& selector);

}  // namespace muster::training
