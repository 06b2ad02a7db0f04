// src/controllers/podautoscaler/replica_calculator.h
//
// How many replicas one metric asks for. Rules and messages: k8s.io/kubernetes
// pkg/controller/podautoscaler/replica_calculator.go. Amounts are in thousandths of a unit.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "json/projection.h"
#include "json/value.h"

namespace muster::controllers {

// A pod that started less than this ago counts as starting up: its cpu says nothing before a whole
// window of it was measured while the pod was ready.
inline constexpr Duration kCpuInitializationPeriod = minutes(5);
// A pod that became unready within this time of its start has never been ready.
inline constexpr Duration kInitialReadinessDelay = seconds(30);
inline constexpr double kDefaultTolerance = 0.1;

// What one pod uses.
struct Sample {
  int64_t milli = 0;
  Time at{};
  Duration window{};
};
using Samples = std::map<std::string, Sample, std::less<>>;  // by pod

// By which share usage may differ from its target before anything happens.
struct Tolerance {
  double down = kDefaultTolerance;
  double up = kDefaultTolerance;
  bool Allows(double ratio) const { return 1.0 - down <= ratio && ratio <= 1.0 + up; }
};

// What is scaled.
struct Fleet {
  std::vector<json::Value> pods;  // those that the selector selects
  int64_t wanted = 0;             // spec.replicas of the scale
  int64_t counted = 0;            // status.replicas of the scale
  Tolerance tolerance;
  Time now{};
};

struct Proposal {
  int64_t replicas = 0;
  int64_t milli = 0;        // what was measured: the average, or the whole
  int64_t utilization = 0;  // in percent of the requests
};

// The fields that are read of a pod.
const json::Fields& ScaledPodFields();

// A share in percent of what the pods' containers (or one of them) request.
Result<Proposal> ReplicasForUtilization(const Fleet& fleet, Samples samples,
                                        std::string_view resource, std::string_view container,
                                        int64_t target_percent);
// An average over the pods. `resource`: "" for what is no resource of theirs.
Result<Proposal> ReplicasForAverage(const Fleet& fleet, Samples samples, std::string_view resource,
                                    int64_t target_milli);
// One number that is to be at its target: more than that takes more pods in proportion.
Result<Proposal> ReplicasForValue(const Fleet& fleet, int64_t measured_milli, int64_t target_milli);
// One number that is divided among the pods.
Proposal ReplicasForShare(const Fleet& fleet, int64_t measured_milli, int64_t target_milli);

}  // namespace muster::controllers
