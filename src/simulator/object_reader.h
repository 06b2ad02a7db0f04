// src/simulator/object_reader.h
//
// Kubernetes objects -> jobs: Pods (those of one gang together), PodGroups (how many pods a gang
// needs), PyTorchJobs and batch Jobs, by their templates.
//
// A gang starts with all of its pods; a batch Job is no gang, its pods start as they fit, and run
// one after the other where completions exceed parallelism. They arrive at their creationTimestamp.
// Errors are Invalid and name the file, the object, the field and what was expected.
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "simulator/workload.h"

namespace muster::simulator {

// Jobs of a simulation.
inline constexpr size_t kMaxSimulatedJobs = 1'000'000;
// Pods of one simulated job.
inline constexpr int64_t kMaxPodsOfJob = 50'000;
// Seconds that a simulated job may run, and seconds between the first and the last arrival: about
// a hundred years each.
inline constexpr int64_t kMaxSimulatedSeconds = 3'155'760'000;

// Whether a job must say how long it runs.
enum class RunTime : uint8_t { kRequired, kOptional };

struct ReadOptions {
  RunTime run_time = RunTime::kRequired;
  // By PriorityClass, for pods that name one and no number.
  std::map<std::string, int64_t> priority_classes = {};
  std::string ns = "default";       // of objects that name none
  bool passes_over_others = false;  // objects that are no jobs are no fault
};

// The run time that the object's annotation names; kNoKnownEnd without one, where that may be.
Result<Duration> RunTimeOf(std::string_view file, const json::Value& object, RunTime rule);

// Of all documents, lists taken apart.
Result<std::vector<json::Value>> ReadObjects(std::string_view file, std::string_view text);
Result<std::vector<Job>> JobsOfObjects(std::string_view file,
                                       const std::vector<json::Value>& objects,
                                       const ReadOptions& options);
// In order of arrival, the first at zero. Invalid if there is none.
Result<std::vector<Job>> InOrderOfArrival(std::string_view file, std::vector<Job> jobs);

Status WrongKind(std::string_view file, size_t index, const json::Value& object,
                 std::string_view expected);
// Items of a list may leave their kind out.
bool IsOfKind(const json::Value& object, std::string_view kind);

}  // namespace muster::simulator
