// src/schema/pod_qos.h
//
// The quality-of-service class of a pod. Source: k8s.io/kubernetes pkg/apis/core/v1/helper/qos.
//
// Thread: any (pure function).

#pragma once

#include <string_view>

#include "json/value.h"

namespace muster::schema {

// Guaranteed, Burstable or BestEffort, from requests and limits of cpu and memory.
std::string_view QosClassOf(const json::Value& pod);

}  // namespace muster::schema
