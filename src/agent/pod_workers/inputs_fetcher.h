// src/agent/pod_workers/inputs_fetcher.h
//
// Reads the ConfigMaps and Secrets of a pod from the API server, and its Services from the
// informer.
//
// Thread: the loop thread. Missing objects are left out of the result; other errors fail it.

#pragma once

#include "agent/pod_workers/pod_inputs.h"
#include "base/status.h"
#include "base/task.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "json/value.h"

namespace muster::agent {

void FetchPodInputs(client::ApiClient& client, const client::Informer& services,
                    const json::Value& pod, Function<void(Result<PodInputs>)> done);

}  // namespace muster::agent
