// src/apiserver/bootstrap.h
//
// Bootstrap: the objects that every cluster has. Missing ones are created; our own CRDs and the
// endpoint of default/kubernetes are brought up to date.
//
// Thread: the loop thread.

#pragma once

#include "apiserver/core.h"
#include "base/status.h"
#include "base/task.h"

namespace muster::apiserver {

// `done` runs once everything is durable, or with the first failure.
void Bootstrap(Core& core, Function<void(Status)> done);

}  // namespace muster::apiserver
