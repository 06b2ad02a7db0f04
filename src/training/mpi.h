// src/training/mpi.h
//
// What an MPIJob has beside pods. One of kubeflow.org/v2beta1: see mpi_ssh.h. Of kubeflow.org/v1:
// the launcher runs mpirun, which starts its daemons in the workers through the API server
// (`kubectl exec`), from a script that is its rsh. Contract: kubeflow/training-operator
// release-1.9, pkg/controller.v1/mpi.
//
//   ConfigMap <job>-config   hostfile, kubexec.sh (the rsh), discover_hosts.sh (workers that run)
//   ServiceAccount, Role, RoleBinding <job>-launcher   may execute in the workers, by name
//
// The launcher's pod has an init container that waits for the workers and brings kubectl: that of
// the node, unless the template has one of the same name that brings another.
//
// Thread:     any (pure).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/api_client.h"
#include "json/value.h"
#include "net/ssh_key.h"
#include "training/env.h"
#include "training/job.h"

namespace muster::training {

inline constexpr std::string_view kKubectlDelivery = "kubectl-delivery";

struct MpiObject {
  client::Resource resource;
  json::Value object;
  std::string kept;  // the field that follows the job; "" if nothing in it changes
};

bool IsMpi(const Job& job);
std::vector<std::string> WorkerNames(const Job& job);
json::Value MpiMetadata(const Job& job, const std::string& name);

// Kinds of which jobs have one object each.
const std::vector<client::Resource>& MpiResources();
// "" if the job has none of the kind.
std::string MpiObjectName(const Job& job, const client::Resource& resource);
// `running`: the workers' pods that run, by name. `key`: for a Secret that is to be made.
std::vector<MpiObject> MpiObjectsOf(const Job& job, const std::vector<std::string>& running,
                                    const net::SshKeyPair& key = {});

// For the container that MPI runs in.
std::vector<EnvVar> MpiEnv(const Job& job, const Replica& replica);
// The pod's spec with volumes, account, init container, and a worker's command if it has none.
json::Value WithMpi(const Job& job, const Replica& replica, int64_t index, json::Value spec);

}  // namespace muster::training
