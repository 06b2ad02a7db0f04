#include "agent/node/time_slicing_config.h"

#include <fmt/core.h>

#include <utility>

#include "base/log.h"

namespace muster::agent {

void TimeSlicingConfig::Watch() {
  if (std::exchange(watches_, true)) return;
  client::Informer& config_maps =
      informers_.Get(client::resources::kConfigMaps, {{"data"}},
                     fmt::format("metadata.name={}", kTimeSlicingConfigMap));
  config_maps.Subscribe(
      {.on_change =
           [this](const client::ObjectKey& key, const json::Value&, const json::Value& after) {
             if (key.ns == kTimeSlicingNamespace) OnChange(after);
           },
       .on_synced = [] {}});
}

void TimeSlicingConfig::OnChange(const json::Value& config_map) {
  const json::Value& file = config_map["data"][kTimeSlicingFile];
  std::optional<std::string> text;
  if (!config_map.IsNull()) text = file.Str();
  if (text == seen_) return;
  seen_ = text;
  Result<gpu::TimeSlicing> slicing = gpu::TimeSlicing();
  if (!config_map.IsNull()) slicing = gpu::ParseTimeSlicing(file.AsString());
  Status taken = slicing ? take_(*slicing) : slicing.error();
  if (taken.ok()) return;
  LOG_WARN("gpu: time-slicing refused error={}", taken.message());
  const std::string message =
      fmt::format("ConfigMap {}/{}, {}: {}; what held before goes on", kTimeSlicingNamespace,
                  kTimeSlicingConfigMap, kTimeSlicingFile, taken.message());
  for (const json::Value& object : {config_map, node_})
    events_.Record(object, client::EventType::kWarning, "TimeSlicingRefused", message);
}

}  // namespace muster::agent
