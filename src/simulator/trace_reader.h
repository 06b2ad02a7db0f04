// src/simulator/trace_reader.h
//
// Text -> nodes and jobs. The format is recognized by content:
//
//   nodes  CSV of openb (`sn,cpu_milli,memory_mib,gpu,model`), or Node objects in YAML or JSON
//   jobs   CSV of openb (`name,cpu_milli,...,creation_time,deletion_time,scheduled_time`),
//          CSV of Philly (`timestamp,duration,num_gpus,gpu_time,cluster`), or Kubernetes objects
//          in YAML or JSON that carry kRunTimeAnnotation (object_reader.h)
//
// openb: a pod runs from scheduled_time (creation_time where it never was) to deletion_time; a
// share of a GPU counts as a whole one; gpu_spec is the set of models that will do.
// Philly: a job of more than kGpusPerPhillyPod GPUs is a gang of equal pods, as few as can be; the
// trace says nothing of cpu and memory, so jobs ask for none. Jobs without GPUs or without a
// run time are left out.
// Errors are Invalid and name the file, the line (or the object), the field and what was expected.
// Thread: any (pure functions).

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "simulator/object_reader.h"
#include "simulator/workload.h"

namespace muster::simulator {

inline constexpr int64_t kGpusPerPhillyPod = 8;

// Bytes of an input file of `muster simulate`.
inline constexpr size_t kMaxTraceBytes = 256 * 1024 * 1024;
// Nodes of a simulated cluster.
inline constexpr size_t kMaxSimulatedNodes = 100'000;
// GPUs of one job of a Philly trace.
inline constexpr int64_t kMaxPhillyGpus = 8'192;

// `file` is what errors call it.
Result<std::vector<cluster::NodeInfo>> ReadNodes(std::string_view file, std::string_view text);
// As ValidateObjects() (object_validation.h); of a CSV nothing is said.
Status ValidateJobs(std::string_view file, std::string_view text);
// Objects that make pods of which ReadJobs() makes no job: "Deployment web". None of a CSV, or of
// what cannot be read.
std::vector<std::string> NotSimulated(std::string_view file, std::string_view text);
Result<std::vector<Job>> ReadJobs(std::string_view file, std::string_view text,
                                  const ReadOptions& options = {});

// "100x8": 100 nodes of 8 GPUs, 96 cpus and 1 TiB each.
bool IsNodeShape(std::string_view text);
// REQUIRES: IsNodeShape(text).
Result<std::vector<cluster::NodeInfo>> NodesOfShape(std::string_view text);

}  // namespace muster::simulator
