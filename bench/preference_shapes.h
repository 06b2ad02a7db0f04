// bench/preference_shapes.h
//
// Pods that prefer: clusters for measuring what choosing by preferences costs (the shapes of
// upstream's scheduler_perf, and a service of the profile that spreads).

#pragma once

#include <cstdint>

#include "scheduler/test_cluster.h"

namespace muster::scheduler {

enum class Preference : uint8_t {
  kRequiredNodes,    // node affinity: one zone of ten
  kNodes,            // the same, preferred
  kPodAffinity,      // near each other in a zone
  kPodAntiAffinity,  // apart by node
  kSpread,           // over zones, ScheduleAnyway
  kProfile,          // replicas with the profile that spreads: over nodes and zones
  kImages,           // an image that every tenth node has
};

// `pods` pods run already (where they would go), and as many wait.
void FillPreferring(TestCluster& cluster, Preference preference, int nodes, int pods);

}  // namespace muster::scheduler
