// src/agent/node/time_slicing_config.h
//
// TimeSlicingConfig: follows the ConfigMap of NVIDIA's device plugin, kube-system's
// nvidia-device-plugin-config, and says what time-slicing it asks for. What cannot be is told in
// events of the ConfigMap and of the node, and what held before goes on.
//
// Life cycle: Watch() once the node has GPUs; lives as long as the informers.
// Thread:     the loop thread.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "gpu/time_slicing.h"
#include "json/value.h"

namespace muster::agent {

inline constexpr std::string_view kTimeSlicingNamespace = "kube-system";
inline constexpr std::string_view kTimeSlicingConfigMap = "nvidia-device-plugin-config";
inline constexpr std::string_view kTimeSlicingFile = "config.yaml";

class TimeSlicingConfig {
 public:
  // `node`: what events are about. `take`: an error if the node cannot do it.
  TimeSlicingConfig(client::InformerSet& informers, client::EventRecorder& events, json::Value node,
                    std::function<Status(const gpu::TimeSlicing&)> take)
      : informers_(informers), events_(events), node_(std::move(node)), take_(std::move(take)) {}

  void Watch();

 private:
  void OnChange(const json::Value& config_map);

  client::InformerSet& informers_;
  client::EventRecorder& events_;
  const json::Value node_;
  std::function<Status(const gpu::TimeSlicing&)> take_;
  bool watches_ = false;
  std::optional<std::string> seen_;  // the file as it was last looked at
};

}  // namespace muster::agent
