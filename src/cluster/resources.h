// src/cluster/resources.h
//
// What pods ask for and what nodes offer, in the units in which scheduling counts: cpu in
// thousandths of a core, all else in whole units (bytes, pods, devices), rounded up.
// Source of the pod formula: k8s.io/component-helpers resource.PodRequests.
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"
#include "schema/names.h"

namespace muster::cluster {

namespace resource {
inline constexpr std::string_view kCpu = "cpu";
inline constexpr std::string_view kMemory = "memory";
inline constexpr std::string_view kEphemeralStorage = "ephemeral-storage";
inline constexpr std::string_view kPods = "pods";
inline constexpr std::string_view kNvidiaGpu = "nvidia.com/gpu";
// Thousandths of one GPU that pods share; at most kWholeGpu of it in one pod.
inline constexpr std::string_view kGpuMilli = "muster.dev/gpu-milli";
}  // namespace resource

// Larger amounts count as this one, so that thousands of them add up without overflow. In bytes:
// one pebibyte.
inline constexpr int64_t kMaxAmount = int64_t{1} << 50;

// Amounts by resource name, sorted by name, zero amounts left out.
using ResourceList = std::vector<std::pair<std::string, int64_t>>;

using schema::IsExtendedResource;  // counted in whole devices

// As people write it: "1500m" of cpu, "2Gi" of memory, "8" devices.
std::string AmountText(std::string_view resource, int64_t amount);

// 0 when the name is absent.
int64_t AmountOf(const ResourceList& list, std::string_view name);
void AddTo(ResourceList& list, const ResourceList& other);    // sum
void RaiseTo(ResourceList& list, const ResourceList& other);  // maximum of each

// A v1.ResourceList object. An amount that is negative or cannot be read counts as zero (the API
// server refuses such objects).
ResourceList ToResourceList(const json::Value& amounts);

// What a node must have free to run the pod: the larger of all containers together and of the most
// demanding moment of initialisation, with sidecars (init containers with restartPolicy Always)
// counted from their place in the order on, plus spec.overhead, plus one of `pods`. A limit without
// a request counts as the request, as API defaulting has it.
ResourceList PodRequests(const json::Value& pod);

// status.allocatable of a node (status.capacity where a node publishes no allocatable).
ResourceList NodeAllocatable(const json::Value& node);

}  // namespace muster::cluster
