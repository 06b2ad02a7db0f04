// InferenceService: kserve pkg/apis/serving/v1beta1/inference_service_defaults.go.

#include <string_view>

#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"
#include "schema/serving_formats.h"

namespace muster::schema {

using json::Value;

// A framework's own field becomes spec.predictor.model with its format, in which the controller and
// everybody else look for it. Who applies the old form again means the same.
Value DefaultInferenceService(Value service) {
  const Value before = service["spec"]["predictor"];
  if (!before.IsObject()) return service;
  Value predictor = before;
  for (const std::string_view format : kFrameworks) {
    const Value* given = predictor.Find(format);
    if (given == nullptr) continue;
    if (given->IsObject()) {
      Value model = json::Obj({{"modelFormat", json::Obj({{"name", format}})}});
      for (const auto& [key, value] : given->members()) model = std::move(model).Set(key, value);
      predictor = std::move(predictor).Set("model", std::move(model));
    }
    predictor = predictor.Remove(format);
  }
  if (!predictor.SameAs(before))
    service = std::move(service).SetPath({"spec", "predictor"}, std::move(predictor));
  return service;
}

}  // namespace muster::schema
