#include "serving/builtin_runtime_controller.h"

#include "serving/builtin_runtime.h"
#include "serving/inference_service.h"

namespace muster::serving {
namespace {

constexpr char kDefinition[] = "clusterservingruntimes.serving.kserve.io";

}  // namespace

// Its definition says that there may be one, and is there from the first boot.
std::vector<client::Trigger> BuiltinRuntimeController::Setup(client::InformerSet& informers) {
  informers.Get(client::resources::kCustomResourceDefinitions);
  informers.Get(kClusterServingRuntimes, json::Fields::Whole());
  const auto wake = [](const client::ObjectKey& key, const json::Value&, const json::Value&) {
    const bool ours = key.name == kDefinition || key.name == kSklearnRuntime;
    return ours ? std::vector{client::ObjectKey{"", kSklearnRuntime}}
                : std::vector<client::ObjectKey>{};
  };
  return {{client::resources::kCustomResourceDefinitions, wake}, {kClusterServingRuntimes, wake}};
}

client::Reconciled BuiltinRuntimeController::Reconcile(const client::View& view,
                                                       const client::Observations&,
                                                       const client::ObjectKey& key, Time,
                                                       uint64_t) {
  client::Reconciled out;
  if (view.Of(kClusterServingRuntimes).Find(key) == nullptr)
    out.Create({kClusterServingRuntimes, "", kSklearnRuntime, ""}, MakeSklearnRuntime());
  return out;
}

}  // namespace muster::serving
