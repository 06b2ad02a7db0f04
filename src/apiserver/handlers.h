// src/apiserver/handlers.h
//
// The verbs. Each function answers one call on one resource, now or after a commit.
//
// Thread: the loop thread.

#pragma once

#include "apiserver/call.h"
#include "apiserver/core.h"
#include "apiserver/resource_registry.h"

namespace muster::apiserver {

void HandleGet(Core& core, const CallPtr& call, const ResourcePtr& resource);
void HandleList(Core& core, const CallPtr& call, const ResourcePtr& resource);
void HandleWatch(Core& core, const CallPtr& call, const ResourcePtr& resource);
void HandleCreate(Core& core, const CallPtr& call, const ResourcePtr& resource);
void HandleUpdate(Core& core, const CallPtr& call, const ResourcePtr& resource);
void HandlePatch(Core& core, const CallPtr& call, const ResourcePtr& resource);
void HandleDelete(Core& core, const CallPtr& call, const ResourcePtr& resource);
void HandleDeleteCollection(Core& core, const CallPtr& call, const ResourcePtr& resource);

// Kinds that are questions.
void HandleReview(Core& core, const CallPtr& call, const ResourcePtr& resource);
// get and list of metrics.k8s.io.
void HandleMetrics(Core& core, const CallPtr& call, const ResourcePtr& resource);

// Subresources.
void HandleFinalizeNamespace(Core& core, const CallPtr& call, const ResourcePtr& resource);
void HandleBinding(Core& core, const CallPtr& call, const ResourcePtr& pods);
void HandleEviction(Core& core, const CallPtr& call, const ResourcePtr& pods);
void HandleLog(Core& core, const CallPtr& call, const ResourcePtr& pods);
void HandleExec(Core& core, const CallPtr& call, const ResourcePtr& pods);
void HandleNodeProxy(Core& core, const CallPtr& call);
void HandleServiceProxy(Core& core, const CallPtr& call);
void HandleTokenRequest(Core& core, const CallPtr& call, const ResourcePtr& accounts);
void HandleScale(Core& core, const CallPtr& call, const ResourcePtr& resource);

}  // namespace muster::apiserver
