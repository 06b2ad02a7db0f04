// src/simulator/workload.h
//
// What a simulation is given: nodes, and jobs with the moments at which they arrive.
//
// Thread: any (values).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/pod_info.h"

namespace muster::simulator {

// Equal pods that start together (a gang where there are several) and run for a known time.
struct Job {
  std::string name;
  Duration arrival{};  // since the first arrival of the workload
  Duration run_time{};
  int64_t pods = 1;
  int64_t priority = 0;
  std::string ns = "default";           // of its pods
  cluster::PodLabels labels;            // likewise: affinity to other pods looks at them
  cluster::PodConstraints constraints;  // of each pod

  int64_t GpusPerPod() const {
    return cluster::AmountOf(constraints.requests, cluster::resource::kNvidiaGpu);
  }
  int64_t Gpus() const { return pods * GpusPerPod(); }
};

struct Workload {
  std::vector<cluster::NodeInfo> nodes;
  std::vector<Job> jobs;  // in order of arrival
};

}  // namespace muster::simulator
