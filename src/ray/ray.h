// src/ray/ray.h
//
// The Ray layer: controllers of RayCluster, RayJob and RayService (ray.io/v1). See
// controllers/controllers.h for how a process puts a runtime together.

#pragma once

#include "client/reconcile.h"

namespace muster::ray {

// REQUIRES: before Runtime::Start().
void AddAll(client::Runtime& runtime);

}  // namespace muster::ray
