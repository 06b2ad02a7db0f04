// src/schema/gpu_operator.h
//
// How NVIDIA's GPU operator is recognised, whose chart makes a Deployment. It would put a driver, a
// container runtime, a device plugin and an exporter on every node; muster's nodes need none of
// them, so it is kept at 0 replicas.
//
// Thread: any (pure function).

#pragma once

#include "json/value.h"

namespace muster::schema {

// By its image, under whatever registry and tag.
bool IsGpuOperator(const json::Value& pod_spec);

}  // namespace muster::schema
