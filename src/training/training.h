// src/training/training.h
//
// The training layer: controllers of the training kinds (PyTorchJob, TFJob, JAXJob, MPIJob) and of
// DistributedTraining, which becomes a PyTorchJob. See controllers/controllers.h for how a process
// puts a runtime together.

#pragma once

#include "client/reconcile.h"

namespace muster::training {

// REQUIRES: before Runtime::Start().
void AddAll(client::Runtime& runtime);

}  // namespace muster::training
