// src/agent/pod_workers/inputs_fetcher.h
//
// Reads the ConfigMaps and Secrets of a pod from the API server, its claims with the
// PersistentVolumes that are bound to them, asks for the tokens of the pod's service account, and
// takes its Services from the informer. All questions are asked at once.
//
// Thread: the loop thread. Missing objects are left out of the result, what is wrong with
//         a token or a claim is in its place; other errors fail it.
// Source: the kubelet's token manager.

#pragma once

#include "agent/pod_workers/pod_inputs.h"
#include "base/status.h"
#include "base/task.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "json/value.h"

namespace muster::agent {

// A token is not used longer, whatever its life.
inline constexpr Duration kMaxTokenAge = hours(24);

// `known`: what the pod has. Its tokens are kept until they are to be refreshed, and as long as
// they are valid when the server gives no new one; claims that were found are not asked for again.
void FetchPodInputs(client::ApiClient& client, const client::Informer& services,
                    const json::Value& pod, const PodInputs& known,
                    Function<void(Result<PodInputs>)> done);

}  // namespace muster::agent
