#include "serving/serving.h"

#include <memory>

#include "serving/builtin_runtime_controller.h"
#include "serving/graph_controller.h"
#include "serving/serving_controller.h"

namespace muster::serving {

void AddAll(client::Runtime& runtime, const GatewayAddress& gateway) {
  runtime.Add(std::make_unique<BuiltinRuntimeController>());
  runtime.Add(std::make_unique<ServingController>(gateway));
  runtime.Add(std::make_unique<GraphController>(gateway));
}

}  // namespace muster::serving
