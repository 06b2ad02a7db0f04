// src/training/restarts.h
//
// How often a job was restarted, kept in annotations of the job so that no recreated pod and no
// restart of ours forgets it.
//
// Every pod carries the epoch that it was made in. A restart of the gang is one write: the job's
// epoch goes up. From then on the pods of earlier epochs are stale: they are deleted, and when the
// last is gone the new ones are made. A crash at any point leaves a state that leads to the same
// end, and one failure is counted once.
//
// Thread:     any (pure).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/value.h"

namespace muster::training {

// On the job: its current epoch is kEpochAnnotation of pods.h.
inline constexpr std::string_view kRestartsAnnotation = "training.muster.dev/restarts";
inline constexpr std::string_view kRestartedAtAnnotation = "training.muster.dev/restarted-at";
// Elastic jobs replace single pods: the UIDs whose failure is counted already.
inline constexpr std::string_view kReplacedPodsAnnotation = "training.muster.dev/replaced-pods";

inline constexpr Duration kMaxRestartDelay = minutes(5);

struct Restarts {
  int64_t epoch = 0;
  int64_t count = 0;  // against backoffLimit
  std::optional<Time> restarted_at;
  std::vector<std::string> replaced_pods;

  // The first restart goes ahead at once, later ones wait 1 s, 2 s, 4 s, ... after the one before.
  Duration Delay() const;
};

Restarts RestartsOf(const json::Value& job);
// A merge patch of the job's metadata that only applies to the state that was read.
json::Value RestartsPatch(const json::Value& job, const Restarts& restarts);

}  // namespace muster::training
