// src/simulator/submission.h
//
// When and where would a job start, given what runs and waits: the answer to `muster simulate
// --submit`, out of an outcome in which the job took part.
//
// Thread: any (values and pure functions).

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/value.h"
#include "simulator/simulation.h"

namespace muster::simulator {

struct Submission {
  enum class Answer : uint8_t {
    kStarts,   // at a moment that is known
    kUnknown,  // not before something ends whose end is not known, or not at all behind the others
    kNever,    // it does not fit even an empty cluster
  };
  std::string ns, name;
  Answer answer = Answer::kStarts;
  Duration start{};                // from now on
  std::vector<std::string> nodes;  // of its pods
  std::string why;                 // it has no start
};

// Of `count` jobs from `first` on.
std::vector<Submission> SubmissionsOf(const Workload& workload, const Outcome& outcome,
                                      size_t first, size_t count);
// One line each. With `now` as times of day, too.
std::string ToText(const Submission& submission, size_t unknown_ends, std::optional<Time> now);
json::Value ToJson(const Submission& submission, std::optional<Time> now);

}  // namespace muster::simulator
