// src/simulator/gpu_use.h
//
// GpuUse: which GPUs of a simulated cluster are used, and which of the free ones are of little use.
//
// Stranded: free on a node whose other GPUs are used. Unusable: free GPUs that would stay free
// however many pods of one kind were put there, by amounts alone, averaged over the kinds of pods
// with GPUs in the workload, each with its share (the idea of FGD's fragmentation).
//
// Life cycle: made for the empty nodes; told of each pod that comes or goes, after the cache was.
// Thread:     not shared.
// Cost:       O(kinds) per pod that comes or goes.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster_cache.h"
#include "simulator/workload.h"

namespace muster::simulator {

// Kinds of pods over which unusable GPUs are averaged: those with the most pods.
inline constexpr size_t kMaxKindsInMix = 32;

class GpuUse {
 public:
  // `cache` has the nodes of the workload, and outlives it.
  GpuUse(const Workload& workload, const cluster::ClusterCache& cache);

  // GPUs of a node come into use, or out of it.
  void Use(const std::string& node, int64_t gpus);

  int64_t total() const { return total_; }
  int64_t used() const { return used_; }
  int64_t stranded() const { return stranded_; }
  double unusable() const { return unusable_; }

 private:
  struct Kind {
    double share = 0;
    cluster::ResourceList requests;
  };
  struct NodeUse {
    int64_t offered = 0, used = 0;
    double unusable = 0;
  };
  double UnusableOn(const std::string& node) const;

  const cluster::ClusterCache& cache_;
  std::vector<Kind> mix_;
  std::map<std::string, NodeUse> nodes_;
  int64_t total_ = 0, used_ = 0, stranded_ = 0;
  double unusable_ = 0;
};

}  // namespace muster::simulator
