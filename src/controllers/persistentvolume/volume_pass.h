// src/controllers/persistentvolume/volume_pass.h
//
// One pass over a volume: its phase, what becomes of it when its claim is gone, and the finalizer
// by which the directory of a local one goes with it.
// Source: k8s.io/kubernetes pkg/controller/volume/persistentvolume (syncVolume, reclaimVolume).
//
// Thread: the loop thread.

#pragma once

#include "base/time.h"
#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

// A node that is missing so long after its volume was deleted, and let go of by its claim, will not
// remove the directory.
inline constexpr Duration kVolumeNodeQuarantine = seconds(40);

void SyncVolume(const client::View& view, const client::Observations& observations,
                const json::Value& volume, Time now, client::Reconciled& out);

}  // namespace muster::controllers
