#include "training/restarts.h"

#include <algorithm>

#include "base/strings.h"
#include "training/pods.h"

namespace muster::training {

Duration Restarts::Delay() const {
  if (count <= 1) return Duration::zero();
  constexpr int64_t kMostDoublings = 20;
  const Duration delay = seconds(int64_t{1} << std::min(count - 2, kMostDoublings));
  return std::min<Duration>(delay, kMaxRestartDelay);
}

Restarts RestartsOf(const json::Value& job) {
  const json::Value& annotations = job["metadata"]["annotations"];
  Restarts restarts;
  restarts.epoch = ParseInt(annotations[kEpochAnnotation].AsString()).value_or(0);
  restarts.count = ParseInt(annotations[kRestartsAnnotation].AsString()).value_or(0);
  restarts.restarted_at = ParseTime(annotations[kRestartedAtAnnotation].AsString());
  for (const std::string_view uid :
       SplitNonEmpty(annotations[kReplacedPodsAnnotation].AsString(), ',')) {
    restarts.replaced_pods.emplace_back(uid);
  }
  return restarts;
}

json::Value RestartsPatch(const json::Value& job, const Restarts& restarts) {
  json::Object annotations{{std::string(kEpochAnnotation), std::to_string(restarts.epoch)},
                           {std::string(kRestartsAnnotation), std::to_string(restarts.count)}};
  if (restarts.restarted_at) {
    annotations.emplace_back(kRestartedAtAnnotation, FormatMicroTime(*restarts.restarted_at));
  }
  if (!restarts.replaced_pods.empty() ||
      job["metadata"]["annotations"].Has(kReplacedPodsAnnotation)) {
    annotations.emplace_back(kReplacedPodsAnnotation, Join(restarts.replaced_pods, ","));
  }
  return json::Obj(
      {{"metadata", json::Obj({{"uid", job["metadata"]["uid"]},
                               {"resourceVersion", job["metadata"]["resourceVersion"]},
                               {"annotations", json::Value(std::move(annotations))}})}});
}

}  // namespace muster::training
