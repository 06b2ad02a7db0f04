// src/agent/node/idle_gpu_events.h
//
// IdleGpuEvents: tells pods, and who made them, that they hold a GPU and do nothing with it: an
// event GPUIdle, and GPUBusy when it works again.
//
// Life cycle: lives as long as its agent.
// Thread:     the loop thread.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/event_recorder.h"
#include "gpu/gpu_health.h"
#include "gpu/idle_gpus.h"
#include "json/value.h"

namespace muster::agent {

class IdleGpuEvents {
 public:
  struct Who {
    // UIDs of the pods that have the GPU or a share of it.
    std::function<std::vector<std::string>(const std::string& gpu)> holders_of;
    std::function<const json::Value*(const std::string& uid)> pod_of;  // nullptr: it is gone
  };
  IdleGpuEvents(client::EventRecorder& events, std::string node, Duration threshold, Who who)
      : events_(events), node_(std::move(node)), idle_(threshold), who_(std::move(who)) {}

  // After a regular look.
  void Observe(const gpu::GpuHealth& health, Time now);

 private:
  void Tell(const json::Value& pod, const gpu::Gpu& gpu, const gpu::IdleGpus::Notice& notice);

  client::EventRecorder& events_;
  const std::string node_;
  gpu::IdleGpus idle_;
  Who who_;
};

}  // namespace muster::agent
