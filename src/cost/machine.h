// src/cost/machine.h
//
// Machine: what decides about the price of a node; NodeFacts: that, and how pods divide its GPUs.
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/projection.h"
#include "json/value.h"

namespace muster::cost {

// On a node: what it costs for an hour, "2.50", where no table knows it.
inline constexpr std::string_view kHourlyPriceAnnotation = "muster.dev/hourly-price";

struct Machine {
  std::string instance_type;  // label node.kubernetes.io/instance-type
  bool spot = false;
  std::string hourly_price;  // kHourlyPriceAnnotation; "" without one
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  std::map<std::string, int64_t> gpus;  // by model

  int64_t GpuCount() const;
  auto operator<=>(const Machine&) const = default;
};

struct NodeFacts {
  std::string name, uid;
  Time created{};
  Machine machine;
  struct Gpu {
    std::string model;
    int64_t shares = 1;  // pods to a GPU, by time-slicing
    bool operator==(const Gpu&) const = default;
  };
  std::map<std::string, Gpu> gpus;  // by id; empty where the node does not list its devices
  int64_t gpu_units = 0;            // how many nvidia.com/gpu it offers, shares included
  bool operator==(const NodeFacts&) const = default;
};

// Capacity counts, not what is allocatable: a GPU that is broken or a core that is kept back is
// paid for, too.
NodeFacts NodeFactsOf(const json::Value& node);
// What that reads, besides identity fields.
const json::Fields& NodeFactsFields();

json::Value ToJson(const Machine& machine);
Machine MachineFromJson(const json::Value& value);

}  // namespace muster::cost
