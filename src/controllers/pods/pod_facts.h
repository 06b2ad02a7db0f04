// src/controllers/pods/pod_facts.h
//
// What the controllers of replicas read of a pod.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "json/projection.h"
#include "json/value.h"

namespace muster::controllers {

// The fields that the functions below read.
const json::Fields& PodFactFields();

// Neither over nor on its way out.
bool IsActive(const json::Value& pod);
bool IsReady(const json::Value& pod);
// Since when the pod has been ready for `min_ready`; later than now: when it will have been.
// nullopt: it is not ready. One that became ready further ahead than that has been ready since
// before the clock was set back.
std::optional<Time> AvailableFrom(const json::Value& pod, Duration min_ready, Time now);

// The order in which replicas are ended when there are too many, first those that matter least:
// unassigned, pending, not ready, with a lower controller.kubernetes.io/pod-deletion-cost, on a
// node with more of them, ready for a shorter time, with more restarts, younger, by name. Source:
// ActivePodsWithRanks in k8s.io/kubernetes pkg/controller/controller_utils.go.
// `related`: pods whose number on a node counts; those of all ReplicaSets of one owner.
void SortForDeletion(std::vector<json::Value>& pods, const std::vector<json::Value>& related,
                     Time now);

}  // namespace muster::controllers
