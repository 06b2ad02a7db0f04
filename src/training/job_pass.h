// src/training/job_pass.h
//
// One pass over one training job: from the job and its children to the writes that bring it nearer
// to its end. Pure.
//
//   finished?  clean up (cleanPodPolicy, TTL)
//   suspended? remove all children
//   otherwise  decide from the pods: succeeded, failed for good, restart, or make what is missing
//
// A restart of a job without elasticPolicy restarts all of its pods, once per failure: the peers of
// a lost rank hold a collective that never ends. Upstream recreates only the failed pod
// (kubeflow/trainer#2000, #2185). It also happens, without counting against backoffLimit, when a
// pod of a running job disappears (its node was lost, it was deleted) and when the number of
// replicas changes (it is in every pod's environment). Elastic jobs, and TFJobs with dynamic
// workers, replace single pods.
//
// An elastic job whose rendezvous is an etcd that nobody serves could never begin: after
// kRendezvousGrace it is told to meet at worker 0 (an annotation of the job, and an event).
//
// Thread:     any.
// Invariants: what counts a failure is one conditional write of the job (restarts.h); pods of an
//             epoch are made only when none of an earlier one is left, so the scheduler never sees
//             a gang of two epochs.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/reconcile.h"
#include "json/projection.h"
#include "json/value.h"
#include "net/ssh_key.h"
#include "training/job.h"

namespace muster::training {

inline constexpr Duration kRendezvousGrace = seconds(5);

struct JobChildren {
  std::vector<json::Value> pods;      // controlled by the job
  std::vector<json::Value> services;  // ...
  json::Value pod_group;              // null if there is none
  // Names that the job needs and somebody else's objects have, as "pods \"x\"".
  std::vector<std::string> taken;
  json::Value autoscaler;  // of the job's name; null if there is none
  // "namespace/name" of the Service that an elastic job's rendezvous (etcd) needs and that does not
  // exist.
  std::string missing_rendezvous;
  std::map<std::string, json::Value> mpi_objects;  // of an MPIJob, by resource; mpi.h
  net::SshKeyPair ssh_key;                         // a new one, where it has no Secret yet
};

// What ReconcileJob reads of a pod, besides identity fields.
const json::Fields& ChildPodFields();

client::Reconciled ReconcileJob(const Job& job, const JobChildren& children, Time now);
// For a job that ParseJob refuses: it fails and says why.
client::Reconciled RefuseJob(const schema::TrainingKind& kind, const json::Value& object,
                             const Status& why, Time now);

}  // namespace muster::training
