// src/cost/pod_use.h
//
// PodUse: what a pod holds, since when, and whom it concerns.
//
// A pod holds what it asked for (cluster::PodRequests), from its start on its node until its
// containers have ended or, if that was never told, it is gone. OpenCost takes the larger of
// request and usage; usage is not kept here. Of GPUs a pod holds whole ones, or the share that it
// was given (muster.dev/gpu-milli, time-slicing): the shares of one GPU come to one GPU.
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "cost/machine.h"
#include "json/projection.h"
#include "json/value.h"

namespace muster::cost {

struct PodUse {
  std::string ns;
  std::string workload;  // "pytorchjob/digits", "deployment/web", "pod/x"
  std::map<std::string, std::string> labels;
  std::string node_name;
  std::optional<Time> from;  // it has not started yet
  std::optional<Time> to;    // it goes on
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  std::map<std::string, int64_t> gpu_milli;  // thousandths of GPUs, by model
};

// `node` is the pod's, `name_space` its Namespace; null where it is not known. Each of `keys` is
// looked for in the pod's annotations, its labels, then the Namespace's annotations and labels.
PodUse PodUseOf(const json::Value& pod, const NodeFacts& node, const json::Value& name_space,
                std::span<const std::string> keys);
// What that reads, besides identity fields.
const json::Fields& PodUseFields();
const json::Fields& NamespaceUseFields();
// cluster::kCostKeys: of pods that are gone no others are remembered.
std::vector<std::string> CostKeys();

}  // namespace muster::cost
