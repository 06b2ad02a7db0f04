#include "serving/inference_service.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/go_duration.h"

namespace muster::serving {
namespace {

ScaleMetric MetricOf(std::string_view text) {
  if (text == "memory") return ScaleMetric::kMemory;
  if (text == "concurrency") return ScaleMetric::kConcurrency;
  if (text == "rps") return ScaleMetric::kRps;
  return ScaleMetric::kCpu;
}

// Annotations of the InferenceService, and of its pods as Knative has them.
std::string_view Annotation(const json::Value& object, std::string_view name) {
  const json::Value& of_pods = object["spec"]["predictor"]["annotations"][name];
  return object["metadata"]["annotations"][name].AsString(of_pods.AsString());
}

ScalePolicy ScaleOf(const json::Value& object) {
  const json::Value& predictor = object["spec"]["predictor"];
  ScalePolicy scale;
  scale.least = std::max<int64_t>(predictor["minReplicas"].AsInt(1), 0);
  scale.most = std::max({predictor["maxReplicas"].AsInt(0), scale.least, int64_t{1}});
  scale.metric = MetricOf(predictor["scaleMetric"].AsString());
  scale.target = predictor["scaleTarget"].Int();
  const std::string_view by = Annotation(object, kAutoscalerAnnotation);
  scale.external = by == "external" || by == "none";
  if (const auto window = ParseGoDuration(Annotation(object, kWindowAnnotation)))
    scale.window = std::clamp(*window, kMinWindow, kMaxWindow);
  return scale;
}

}  // namespace

Duration TimeoutOf(const json::Value& asked) {
  constexpr int64_t kMost = std::chrono::duration_cast<std::chrono::seconds>(kMaxTimeout).count();
  const int64_t count = asked.AsInt();
  return count > 0 ? Duration(seconds(std::min(count, kMost))) : kDefaultTimeout;
}

InferenceService ParseInferenceService(const json::Value& object) {
  InferenceService service;
  service.object = object;
  service.ns = object["metadata"]["namespace"].Str();
  service.name = object["metadata"]["name"].Str();
  service.uid = object["metadata"]["uid"].Str();
  service.scale = ScaleOf(object);
  const json::Value& predictor = service.predictor();
  service.canary_percent = predictor["canaryTrafficPercent"].Int();
  service.container_concurrency = std::max<int64_t>(predictor["containerConcurrency"].AsInt(0), 0);
  service.timeout = TimeoutOf(predictor["timeout"]);
  service.stopped = Annotation(object, kStopAnnotation) == "true";
  return service;
}

std::string PredictorName(std::string_view service) { return fmt::format("{}-predictor", service); }
std::string CanaryName(std::string_view service) {
  return fmt::format("{}-predictor-canary", service);
}
std::string AppLabel(std::string_view deployment) { return fmt::format("isvc.{}", deployment); }

json::Value OwnerReferencesTo(const json::Value& owner) {
  return json::List({json::Obj({{"apiVersion", owner["apiVersion"]},
                                {"kind", owner["kind"]},
                                {"name", owner["metadata"]["name"]},
                                {"uid", owner["metadata"]["uid"]},
                                {"controller", true},
                                {"blockOwnerDeletion", true}})});
}

}  // namespace muster::serving
