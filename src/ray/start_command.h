// src/ray/start_command.h
//
// The command by which a container becomes a node of a Ray cluster: `ray start` with flags from
// rayStartParams and from what the container may use. Contract: kuberay
// controllers/ray/common/pod.go.
//
// Thread:     any (pure functions).

#pragma once

#include <string>

#include "json/value.h"
#include "ray/cluster.h"

namespace muster::ray {

// Flags, sorted by name: "--block --num-cpus=2". "true" is a flag without a value, "false" none at
// all, but for the few that take these words.
std::string FlagsOf(const json::Value& params);

// "ulimit -n ...; ray start --head ...". `container`: its limits (requests of CPU, where it has
// none) are what Ray is told of. `params`: the group's rayStartParams.
std::string HeadCommand(const Cluster& cluster, const json::Value& container);
std::string WorkerCommand(const Cluster& cluster, const json::Value& params,
                          const json::Value& container);

}  // namespace muster::ray
