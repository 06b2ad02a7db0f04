// src/serving/runtime_selection.h
//
// Which model server runs a model. Rules: kserve pkg/apis/serving/v1beta1/predictor_model.go and
// pkg/controller/v1beta1/inferenceservice/utils: the runtime that the model names, or one that
// takes its format by itself; those of the namespace go before those of the cluster, then the
// higher priority, then the newer, then the name.
//
// Thread: any (pure).

#pragma once

#include <string>
#include <vector>

#include "json/value.h"

namespace muster::serving {

// Words of status.modelStatus.lastFailureInfo.reason.
inline constexpr char kNoSupportingRuntime[] = "NoSupportingRuntime";
inline constexpr char kRuntimeNotRecognized[] = "RuntimeNotRecognized";
inline constexpr char kRuntimeDisabled[] = "RuntimeDisabled";
inline constexpr char kInvalidPredictorSpec[] = "InvalidPredictorSpec";

struct RuntimeChoice {
  json::Value runtime;  // the object; null if there is none
  bool of_cluster = false;
  std::string reason, message;  // why there is none
};

// `model` is spec.predictor.model. Runtimes: those of the namespace, and those of the cluster.
RuntimeChoice ChooseRuntime(const json::Value& model, const std::vector<json::Value>& of_namespace,
                            const std::vector<json::Value>& of_cluster);

}  // namespace muster::serving
