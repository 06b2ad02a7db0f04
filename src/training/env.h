// src/training/env.h
//
// The environment that a training job gives each of its ranks. Contract: kubeflow/training-operator
// release-1.9, pkg/controller.v1/{pytorch,tensorflow,jax}.
//
// Thread:     any (pure).

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "training/job.h"

namespace muster::training {

using EnvVar = std::pair<std::string, std::string>;

// In the order in which they are appended to every container of the pod (of a TFJob and an
// MPIJob: to the one that trains). REQUIRES: `replica` is one of job.replicas.
//
// PyTorchJob:
//   always                  PYTHONUNBUFFERED=1, PET_NPROC_PER_NODE
//   with a Master           MASTER_ADDR, MASTER_PORT and their PET_ twins, WORLD_SIZE (pods x
//   processes), RANK,
//                           PET_NODE_RANK (the master is 0, worker i is i + 1)
//   not elastic             PET_NNODES = pods
//   elastic                 PET_RDZV_*, PET_NNODES = min:max, PET_MAX_RESTARTS, PET_STANDALONE
// TFJob of more than one pod:
//   TF_CONFIG               who is at which address, by role, and which of them this is; with
//                           enableDynamicWorker only this one and the parameter servers
// JAXJob:
//   COORDINATOR_ADDRESS, COORDINATOR_PORT (worker 0), NUM_PROCESSES, PROCESS_ID, PYTHONUNBUFFERED=1
// MPIJob: what mpi.h says
std::vector<EnvVar> EnvOf(const Job& job, const Replica& replica, int64_t index);

}  // namespace muster::training
