// src/serving/predictor_pod.h
//
// The pods of a predictor: the runtime's containers, what the InferenceService says beside them,
// and the model mounted under /mnt/models. Source: kserve
// pkg/controller/v1beta1/inferenceservice/{components/predictor.go,utils/utils.go}.
//
// Thread: any (pure).

#pragma once

#include "base/status.h"
#include "json/value.h"
#include "serving/inference_service.h"

namespace muster::serving {

// Where the server listens, unless its container names another port first.
inline constexpr int kDefaultServerPort = 8080;
// A pod that is told to go is still asked for as long as it takes until everybody knows.
inline constexpr int64_t kDrainSeconds = 2;

// `runtime` is a ServingRuntime or ClusterServingRuntime; null for a predictor with containers of
// its own. The result is a pod template {metadata, spec} without the label `app`, which says whose
// Deployment it is.
Result<json::Value> PredictorPodTemplate(const InferenceService& service,
                                         const json::Value& runtime);

int ServerPortOf(const json::Value& pod_template);

}  // namespace muster::serving
