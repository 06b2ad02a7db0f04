// src/controllers/statefulset/stateful_pods.h
//
// The pods and claims of a StatefulSet: their names, their identity, and what becomes of claims.
// Source: k8s.io/kubernetes pkg/controller/statefulset/stateful_set_utils.go.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/value.h"

namespace muster::controllers {

std::string OrdinalName(const json::Value& set, int64_t ordinal);
// nullopt: it is no name of the set's pods.
std::optional<int64_t> OrdinalOf(const json::Value& set, const json::Value& pod);

// The pod with that number, of a template and the revision that keeps it.
json::Value MakeStatefulPod(const json::Value& set, const json::Value& pod_template,
                            const std::string& revision, int64_t ordinal);

// The claims of that pod, one for each of volumeClaimTemplates.
std::vector<json::Value> MakeClaims(const json::Value& set, int64_t ordinal);

// metadata.ownerReferences of a claim as persistentVolumeClaimRetentionPolicy wants them: what is
// deleted with the set belongs to it, what is deleted by scaling down to the condemned pod. `pod`:
// null if there is none.
json::Value ClaimOwners(const json::Value& set, const json::Value& claim, const json::Value& pod,
                        bool condemned);

}  // namespace muster::controllers
