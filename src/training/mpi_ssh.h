// src/training/mpi_ssh.h
//
// An MPIJob of kubeflow.org/v2beta1: mpirun starts its daemons over ssh, in workers that run sshd.
// Contract: kubeflow/mpi-operator v0.8, pkg/controller/mpi_job_controller.go. Unlike there, the
// launcher is a pod of the job's and no batch Job.
//
//   ConfigMap <job>-config   hostfile, discover_hosts.sh (workers that run)
//   Secret <job>-ssh         a key pair of the job's own, mounted in all its pods
//   Service <job>            headless: <pod>.<job>.<namespace>.svc
//
// Thread:     any (pure).

#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "net/ssh_key.h"
#include "training/env.h"
#include "training/job.h"

namespace muster::training {

// `running`: the workers' pods that run, by name. REQUIRES, of all: job.ssh.
json::Value SshHosts(const Job& job, const std::vector<std::string>& running);  // data
json::Value SshSecret(const Job& job, const net::SshKeyPair& key);
json::Value SshService(const Job& job);

// For the container that MPI runs in.
std::vector<EnvVar> SshEnv(const Job& job, const Replica& replica);
// The pod's spec with host name, keys, and a worker's sshd if it has no command.
json::Value WithSsh(const Job& job, const Replica& replica, int64_t index, json::Value spec);

}  // namespace muster::training
