// src/agent/node/node_gpus.h
//
// NodeGpus: the real GPUs of this node, as devices, labels, a condition and events.
//
// Life cycle: Start() once; destroy to stop.
// Thread:     the loop thread; the driver is asked by another process (gpu/probe_process.h).

#pragma once

#include <functional>
#include <map>
#include <string>

#include "agent/node/node_object.h"
#include "client/event_recorder.h"
#include "gpu/gpu_monitor.h"
#include "gpu/probe_process.h"

namespace muster::agent {

class NodeGpus {
 public:
  // `on_change` as GpuMonitor's.
  NodeGpus(AsioLoop& loop, client::EventRecorder& events, std::string node_name, Duration steady,
           std::function<void()> on_change);

  void Start() { monitor_.Start(); }
  gpu::GpuMonitor& monitor() { return monitor_; }

  std::vector<cluster::Device> Devices() const;
  // devices, gpu_labels and gpu_fault_*.
  void Fill(NodeFacts& facts) const;

 private:
  void Tell();

  client::EventRecorder& events_;
  const json::Value node_;  // what events are about
  std::function<void()> on_change_;
  std::map<std::string, bool> was_healthy_;  // by uuid
  gpu::ProbeProcess prober_;
  gpu::GpuMonitor monitor_;
};

}  // namespace muster::agent
