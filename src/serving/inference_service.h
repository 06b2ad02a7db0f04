// src/serving/inference_service.h
//
// An InferenceService as the controllers read it, and the names of what belongs to it. Names are
// those of KServe's raw deployment mode (kserve pkg/constants/constants.go); the canary's
// Deployment is ours, because upstream's raw mode has revisions only in 0.20, under other fields.
//
// Thread: any (values).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "client/api_client.h"
#include "json/value.h"

namespace muster::serving {

inline const client::Resource kInferenceServices{"serving.kserve.io", "v1beta1",
                                                 "inferenceservices"};
inline const client::Resource kServingRuntimes{"serving.kserve.io", "v1alpha1", "servingruntimes"};
inline const client::Resource kClusterServingRuntimes{"serving.kserve.io", "v1alpha1",
                                                      "clusterservingruntimes"};
inline const client::Resource kInferenceGraphs{"serving.kserve.io", "v1alpha1", "inferencegraphs"};

inline constexpr std::string_view kServiceLabel = "serving.kserve.io/inferenceservice";
inline constexpr std::string_view kStopAnnotation = "serving.kserve.io/stop";
inline constexpr std::string_view kAutoscalerAnnotation = "serving.kserve.io/autoscalerClass";
// How long nobody may have asked before the last pod goes, and over which rates are averaged:
// Knative's name, "60s".
inline constexpr std::string_view kWindowAnnotation = "autoscaling.knative.dev/window";
inline constexpr std::string_view kServerContainer = "kserve-container";

inline constexpr Duration kDefaultWindow = seconds(60);  // as Knative's stable window
inline constexpr Duration kMinWindow = seconds(6);       // as Knative's least
inline constexpr Duration kMaxWindow = seconds(3600);
inline constexpr Duration kDefaultTimeout = seconds(300);  // as KServe's
inline constexpr Duration kMaxTimeout = hours(7 * 24);
// Of a spec's timeout, in seconds: the default where there is none.
Duration TimeoutOf(const json::Value& seconds);

enum class ScaleMetric : uint8_t { kCpu, kMemory, kConcurrency, kRps };

// How many pods there should be.
struct ScalePolicy {
  int64_t least = 1, most = 1;
  ScaleMetric metric = ScaleMetric::kCpu;
  std::optional<int64_t> target;
  Duration window = kDefaultWindow;
  bool external = false;  // somebody else's business (autoscalerClass external or none)

  // The gateway's numbers decide: it counts requests, or there may be no pod to be measured.
  bool ByTraffic() const {
    return !external &&
           (least == 0 || metric == ScaleMetric::kConcurrency || metric == ScaleMetric::kRps);
  }
  // A HorizontalPodAutoscaler decides.
  bool ByPods() const { return !external && !ByTraffic() && most > least; }
};

struct InferenceService {
  json::Value object;
  std::string ns, name, uid;
  ScalePolicy scale;
  std::optional<int64_t> canary_percent;
  int64_t container_concurrency = 0;  // 0: no limit
  Duration timeout = kDefaultTimeout;
  bool stopped = false;

  const json::Value& predictor() const { return object["spec"]["predictor"]; }
  const json::Value& model() const { return predictor()["model"]; }
};

InferenceService ParseInferenceService(const json::Value& object);

// "iris-predictor", the Deployment, Service and HorizontalPodAutoscaler.
std::string PredictorName(std::string_view service);
// "iris-predictor-canary", the Deployment and Service of a revision that gets a part of it.
std::string CanaryName(std::string_view service);
// "isvc.iris-predictor", the label `app` of the pods of a Deployment.
std::string AppLabel(std::string_view deployment);

json::Value OwnerReferencesTo(const json::Value& owner);

}  // namespace muster::serving
