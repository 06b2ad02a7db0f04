// src/simulator/simulation.h
//
// Simulate: what becomes of a workload on a cluster. A discrete event simulation around the
// production planner: jobs arrive, a plan is made, jobs start at once, end after their run time,
// and each arrival or end leads to the next plan. Planning and starting take no time; events of one
// moment are seen together, ends first.
//
// A plan in the middle of a wave of arrivals looks only at what arrived since the last one: what
// did not fit then does not fit now, because nothing has ended since. Nothing is preempted.
// What runs when it begins ends when it says it does; what has no known end stays to the last.
// Pure: the same arguments give the same outcome.
// Thread: any.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/workload.h"

namespace muster::simulator {

enum class Policy : uint8_t {
  kMuster,         // the order of scheduler/queue.h; who does not fit blocks nobody
  kFifo,           // in order of arrival; who does not fit blocks all behind
  kBackfill,       // in order of arrival; who does not fit blocks nobody. Equals kMuster where all
                   // priorities are equal
  kShortestFirst,  // the shortest run time first, known beforehand; who does not fit blocks nobody
};

struct JobOutcome {
  bool placed = false;
  Duration start{};                // since the first arrival; the end is start + run_time
  std::vector<std::string> nodes;  // of its pods, in the order of Job::pods
};

// From `at` to the next sample's.
struct Sample {
  Duration at{};
  int64_t gpus_used = 0;
  int64_t gpus_stranded = 0;  // gpu_use.h; likewise below
  double gpus_unusable = 0;
  int64_t jobs_waiting = 0;
};

struct NeverPlaced {
  size_t job = 0;
  bool fits_never = false;  // not even an empty cluster
  std::string why;          // scheduler::Explain, beside what runs to the last
};

struct Outcome {
  std::vector<JobOutcome> jobs;  // as Workload::jobs
  std::vector<Sample> samples;
  std::vector<NeverPlaced> never_placed;
  int64_t gpus = 0;     // of all nodes
  Duration makespan{};  // from the first arrival to the last end
  size_t plans = 0;
  size_t unknown_ends = 0;  // jobs and pods that run to the last
};

// Called with how many jobs have arrived or ended, of twice the number of jobs.
using ProgressFunction = std::function<void(size_t done, size_t total)>;

Outcome Simulate(const Workload& workload, Policy policy, const ProgressFunction& progress = {});

}  // namespace muster::simulator
