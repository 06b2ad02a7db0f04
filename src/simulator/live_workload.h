// src/simulator/live_workload.h
//
// A copy of a live cluster as a workload: its nodes, the pods that run there with what is left of
// their run time, and the queue as jobs that are there from the beginning.
//
// How long a pod runs is what kRunTimeAnnotation says, on the pod or on the job that controls it;
// without it, or where that time is over, its end is not known. A gang of which enough pods run
// counts as started: the others are jobs of their own.
// Thread: any (pure function).

#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "scheduler/cluster_copy.h"
#include "simulator/workload.h"

namespace muster::simulator {

// `owners`: objects that control pods and may carry the annotation (PyTorchJobs, Jobs).
Workload WorkloadOf(const scheduler::ClusterLists& lists, const std::vector<json::Value>& owners,
                    const std::vector<std::string>& scheduler_names, Time now);

}  // namespace muster::simulator
