// src/cost/cost.h
//
// The controllers of this folder; see controllers/controllers.h for how a process puts a runtime
// together.

#pragma once

#include "client/reconcile.h"

namespace muster::cost {

// REQUIRES: before Runtime::Start().
void AddAll(client::Runtime& runtime);

}  // namespace muster::cost
