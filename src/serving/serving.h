// src/serving/serving.h
//
// The serving layer: controllers of InferenceServices and InferenceGraphs, and the model server
// that every cluster has. See controllers/controllers.h for how a process puts a runtime together.

#pragma once

#include "client/reconcile.h"
#include "serving/serving_pass.h"

namespace muster::serving {

// REQUIRES: before Runtime::Start().
void AddAll(client::Runtime& runtime, const GatewayAddress& gateway);

}  // namespace muster::serving
