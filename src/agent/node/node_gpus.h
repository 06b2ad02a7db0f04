// src/agent/node/node_gpus.h
//
// NodeGpus: the real GPUs of this node, as devices (whole or cut for time-slicing), labels, a
// condition and events.
//
// Life cycle: Start() once; destroy to stop.
// Thread:     the loop thread; the driver is asked by another process (gpu/probe_process.h).

#pragma once

#include <functional>
#include <map>
#include <string>

#include "agent/node/gpu_slices.h"
#include "agent/node/node_object.h"
#include "agent/node/time_slicing_config.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "gpu/gpu_monitor.h"
#include "gpu/probe_process.h"

namespace muster::agent {

// What events of a node are about. The kubelet names a Node by its name in place of the uid.
json::Value NodeReference(const std::string& name);

class NodeGpus {
 public:
  // `on_change` as GpuMonitor's, and when other time-slicing is wished. `allocator`: who has what.
  NodeGpus(AsioLoop& loop, client::InformerSet& informers, client::EventRecorder& events,
           const DeviceAllocator& allocator, std::string node_name, Duration steady,
           std::function<void()> on_change);

  void Start() { monitor_.Start(); }
  gpu::GpuMonitor& monitor() { return monitor_; }

  // devices, gpu_labels and gpu_fault_*. GPUs that are free are cut as is wished.
  void Fill(NodeFacts& facts);
  // A GPU is to be cut otherwise once nobody has any of it.
  bool waits() const { return slices_.waiting() > 0; }
  bool one_each() const { return slices_.wish().one_each; }

 private:
  void Tell();
  Status TakeTimeSlicing(const gpu::TimeSlicing& slicing);

  client::EventRecorder& events_;
  const json::Value node_;  // what events are about
  std::function<void()> on_change_;
  std::map<std::string, bool> was_healthy_;  // by uuid
  GpuSlices slices_;
  TimeSlicingConfig time_slicing_;
  gpu::ProbeProcess prober_;
  gpu::GpuMonitor monitor_;
};

}  // namespace muster::agent
