// tests/simulation/job_maker.h
//
// PyTorchJobs: random ones all come to an end by themselves.
//
// Thread: any.

#pragma once

#include <string>

#include "base/rng.h"
#include "json/value.h"

namespace muster::simulation {

json::Value RandomJob(Rng& rng, const std::string& ns, const std::string& name);
// `job` and its pods with this PriorityClass.
json::Value WithPriority(json::Value job, const std::string& priority_class);
// Runs on and on.
json::Value EndlessJob(const std::string& ns, const std::string& name);
// A gang that no cluster of ours can hold.
json::Value HopelessJob(const std::string& ns, const std::string& name);

}  // namespace muster::simulation
