#include "schema/gpu_operator.h"

#include <algorithm>

#include "schema/device_plugin.h"

namespace muster::schema {
namespace {

constexpr std::string_view kName = "gpu-operator";

bool IsStartedAsItsChartDoes(const json::Value& container) {
  const json::Array& environment = container["env"].items();
  return container["name"].AsString() == kName && container["command"].size() == 1 &&
         container["command"].At(0).AsString() == kName &&
         std::any_of(environment.begin(), environment.end(), [](const json::Value& variable) {
           return variable["name"].AsString() == "OPERATOR_NAMESPACE";
         });
}

}  // namespace

bool IsGpuOperator(const json::Value& pod_spec) {
  const json::Array& containers = pod_spec["containers"].items();
  return std::any_of(containers.begin(), containers.end(), [](const json::Value& container) {
    const std::string_view image = container["image"].AsString();
    return LastPartOfImage(image) == kName &&
           (IsImageOfNvidia(image) || IsStartedAsItsChartDoes(container));
  });
}

}  // namespace muster::schema
