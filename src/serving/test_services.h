// src/serving/test_services.h
//
// InferenceServices and their children for the tests of this folder, written as YAML.

#pragma once

#include <string>
#include <string_view>

#include "base/check.h"
#include "json/parse.h"
#include "serving/inference_service.h"

namespace muster::serving {

inline json::Value Yaml(std::string_view text) {
  auto documents = json::ParseYaml(text);
  CHECK(documents.has_value() && documents->size() == 1);
  return (*documents)[0];
}

// Served by scikit-learn from a directory. `predictor` are further lines of its spec, as flow YAML:
// "minReplicas: 0, maxReplicas: 3".
inline json::Value Iris(std::string_view predictor = "", std::string_view uri = "file:///srv/a") {
  return Yaml(fmt::format(R"(
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: iris, namespace: ml, uid: u1, generation: 1, resourceVersion: "7"}}
spec:
  predictor: {{model: {{modelFormat: {{name: sklearn}}, storageUri: "{}"}}{}{}}}
)",
                          uri, predictor.empty() ? "" : ", ", predictor));
}

// A Deployment of iris as this layer made it, rolled out with `ready` pods unless told otherwise.
inline json::Value Made(json::Value deployment, int64_t ready) {
  const json::Value status = json::Obj({{"observedGeneration", 1},
                                        {"replicas", ready},
                                        {"updatedReplicas", ready},
                                        {"readyReplicas", ready},
                                        {"availableReplicas", ready}});
  return deployment.SetPath({"metadata", "uid"}, "d1")
      .SetPath({"metadata", "generation"}, 1)
      .Set("status", status);
}

}  // namespace muster::serving
