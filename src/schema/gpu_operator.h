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

// By its image, under whatever registry and tag. Where a mirror's path does not say whose it is, by
// how its chart starts it: others call theirs alike (rocm/gpu-operator).
bool IsGpuOperator(const json::Value& pod_spec);

// What whoever asks for a replica of it is told.
inline constexpr const char* kGpuOperatorIsKept =
    "spec.replicas: kept at 0: muster's nodes offer nvidia.com/gpu and their metrics themselves, "
    "by the driver of the machine, and NVIDIA's GPU operator has nothing to do here";

}  // namespace muster::schema
