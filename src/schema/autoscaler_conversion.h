// src/schema/autoscaler_conversion.h
//
// HorizontalPodAutoscaler of autoscaling/v1, which knows one metric (the share of CPU that the pods
// use of what they ask for), and as it is stored, autoscaling/v2. What v1 has no field for stands
// in annotations of v1 objects and nowhere else, as in k8s.io/kubernetes
// pkg/apis/autoscaling/v1/conversion.go:
//
//   autoscaling.alpha.kubernetes.io/metrics          [MetricSpec] of v1, other than that of CPU
//   autoscaling.alpha.kubernetes.io/behavior         spec.behavior, keys with capitals
//   autoscaling.alpha.kubernetes.io/current-metrics  [MetricStatus] of v1
//   autoscaling.alpha.kubernetes.io/conditions       [HorizontalPodAutoscalerCondition]
//
// An annotation that cannot be read says nothing. There and back is the same object, but that the
// metric of CPU comes last.
//
// Thread: any (pure functions).

#pragma once

#include "json/value.h"
#include "schema/conversion.h"

namespace muster::schema {

Converted AutoscalerToStored(const json::Value& object);
json::Value AutoscalerFromStored(const json::Value& object);

}  // namespace muster::schema
