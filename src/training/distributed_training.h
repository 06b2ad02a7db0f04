// src/training/distributed_training.h
//
// One pass over one DistributedTraining (ml.example.com/v1): a few words become a PyTorchJob of the
// same name (whose controller makes the gang), a claim for checkpoints and, where the user brings
// no program, a ConfigMap with a small one; what becomes of the job becomes its status.
//
//   worker 0 is the job's Master, workers 1 to n-1 are its Workers
//   spec.trainingDuration is over: the job is stopped, and the training has succeeded
//   spec.suspend: the job is suspended; one in a queue is deleted, which gives its quota back
//
// Thread:     any (pure).
// Invariants: children have the training's name (and a suffix), so a repeat is harmless; the GPU
//             type of a job that has begun is never changed under it.

#pragma once

#include <set>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::training {

inline const client::Resource kDistributedTrainings{"ml.example.com", "v1", "distributedtrainings"};

// What there is of the names that a training uses; null if there is none, whosever it is.
struct TrainingChildren {
  json::Value job;      // PyTorchJob
  json::Value claim;    // PersistentVolumeClaim
  json::Value program;  // ConfigMap
  // The values of nvidia.com/gpu.product among the nodes.
  std::set<std::string> products;
};

// The job that the training becomes.
json::Value MakeJob(const json::Value& training, const std::set<std::string>& products);

client::Reconciled ReconcileTraining(const json::Value& training, const TrainingChildren& children,
                                     Time now);

}  // namespace muster::training
