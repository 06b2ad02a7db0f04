// src/controllers/pods/status_patch.h
//
// How controllers write into the status of pods that others own.
//
// Thread: any (pure functions).

#pragma once

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

// A strategic merge patch of the pod's status that sets conditions or the phase; it applies to no
// other pod of the name.
json::Value StatusPatchOf(const json::Value& pod, json::Object status);

client::Target StatusTargetOf(const json::Value& pod);

}  // namespace muster::controllers
