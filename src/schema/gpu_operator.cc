#include "schema/gpu_operator.h"

#include <algorithm>

#include "schema/device_plugin.h"

namespace muster::schema {

bool IsGpuOperator(const json::Value& pod_spec) {
  const json::Array& containers = pod_spec["containers"].items();
  return std::any_of(containers.begin(), containers.end(), [](const json::Value& container) {
    return LastPartOfImage(container["image"].AsString()) == "gpu-operator";
  });
}

}  // namespace muster::schema
