// src/controllers/persistentvolume/claim_pass.h
//
// One pass over a claim: it finds or makes the claim's volume, and carries out the binding of the
// two, or says what the claim waits for.
// Source: k8s.io/kubernetes pkg/controller/volume/persistentvolume (syncClaim).
//
// Thread: the loop thread.

#pragma once

#include "client/reconcile.h"
#include "json/value.h"

namespace muster::controllers {

void SyncClaim(const client::View& view, const client::Observations& observations,
               const json::Value& claim, client::Reconciled& out);

}  // namespace muster::controllers
