// tests/simulation/workload_maker.h
//
// Workloads as users write them, at random: of apps/v1 and batch/v1.
//
// Thread: any.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "client/api_client.h"
#include "json/value.h"

namespace muster::simulation {

struct Workload {
  client::Resource resource;
  json::Value object;
};

// Pods of the first four run for ever; those of Jobs end, some of them badly.
Workload RandomDeployment(Rng& rng, const std::string& ns, const std::string& name);
Workload RandomStatefulSet(Rng& rng, const std::string& ns, const std::string& name);
Workload RandomDaemonSet(Rng& rng, const std::string& ns, const std::string& name);
// `app`: of its selector, which others may have too.
Workload RandomReplicaSet(Rng& rng, const std::string& ns, const std::string& name,
                          const std::string& app);
Workload RandomBatchJob(Rng& rng, const std::string& ns, const std::string& name);
// Each minute.
Workload RandomCronJob(Rng& rng, const std::string& ns, const std::string& name);
// A pod of nobody, with that label.
Workload LonelyPod(const std::string& ns, const std::string& name, const std::string& app);
// Of pods with that label.
Workload RandomBudget(Rng& rng, const std::string& ns, const std::string& app);

}  // namespace muster::simulation
