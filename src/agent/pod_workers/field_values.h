// src/agent/pod_workers/field_values.h
//
// The downward API: values of fieldRef and resourceFieldRef.
//
// Thread: any (pure).
// Source: the kubelet's fieldpath and resource helpers.

#pragma once

#include <string>
#include <string_view>

#include "agent/pod_workers/pod_inputs.h"
#include "base/status.h"
#include "json/value.h"

namespace muster::agent {

// "metadata.name", "metadata.labels['x']", "metadata.labels" (whole maps: volumes only),
// "spec.nodeName", "status.podIP", ... Invalid for any other path.
Result<std::string> FieldValue(const json::Value& pod, std::string_view path,
                               const PodFacts& facts);

// {containerName, resource: "limits.cpu", divisor}. `container` is used when containerName is
// absent.
Result<std::string> ResourceValue(const json::Value& pod, const json::Value& container,
                                  const json::Value& reference, const PodFacts& facts);

}  // namespace muster::agent
