// src/schema/dcgm_exporter.h
//
// How NVIDIA's dcgm-exporter is recognised, whose chart makes a DaemonSet. It asks the driver
// through a daemon of its own and a kubelet's socket for pods; muster's nodes have the same metrics
// themselves (gpu/gpu_metrics.h).
//
// Thread: any (pure function).

#pragma once

#include "json/value.h"

namespace muster::schema {

// By its image, under whatever registry and tag.
bool IsDcgmExporter(const json::Value& pod_spec);

}  // namespace muster::schema
