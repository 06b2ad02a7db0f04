// src/simulator/workload.h
//
// What a simulation is given: nodes, what runs on them already, and jobs with the moments at which
// they arrive.
//
// Thread: any (values).

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cluster/pod_info.h"

namespace muster::simulator {

// Seconds that a pod or job will run, a number above zero.
inline constexpr std::string_view kRunTimeAnnotation = "muster.dev/run-seconds";
// Of what does not say how long it runs: it is not over before the simulation is.
inline constexpr Duration kNoKnownEnd = Duration::max();

// Equal pods of a job.
struct PodSet {
  int64_t count = 1;
  cluster::PodLabels labels;  // affinity to other pods looks at them
  cluster::PodConstraints constraints;

  int64_t GpusPerPod() const {
    return cluster::AmountOf(constraints.requests, cluster::resource::kNvidiaGpu);
  }
};

// Pods that start together (a gang where there are several) and run for a known time.
struct Job {
  std::string name;
  Duration arrival{};  // since the first arrival of the workload
  Duration run_time{};
  int64_t priority = 0;
  std::string ns = "default";  // of its pods
  std::vector<PodSet> pods;
  int64_t min_member = 0;  // of its PodGroup, where that asks for more pods than there are

  int64_t PodCount() const {
    int64_t count = 0;
    for (const PodSet& set : pods) count += set.count;
    return count;
  }
  int64_t Gpus() const {
    int64_t gpus = 0;
    for (const PodSet& set : pods) gpus += set.count * set.GpusPerPod();
    return gpus;
  }
};

// A pod that is there from the beginning, bound to a node.
struct RunningPod {
  cluster::PodInfo pod;
  Duration ends_in = kNoKnownEnd;
};

struct Workload {
  std::vector<cluster::NodeInfo> nodes;
  std::vector<Job> jobs;  // in order of arrival
  std::vector<RunningPod> running = {};
  std::map<std::string, cluster::Labels> namespaces = {};  // labels that selectors may ask for
};

}  // namespace muster::simulator
