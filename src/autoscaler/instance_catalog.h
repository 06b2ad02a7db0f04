// src/autoscaler/instance_catalog.h
//
// Which machines there are to choose from: those that are built in, and those of a file
// (`muster up --instance-types FILE`), which is YAML:
//
//   types:
//   - {name: lab.h100, cpu: 96, memory: 1Ti, gpus: 8, gpuProduct: NVIDIA-H100-80GB-HBM3,
//      gpuMemoryMiB: 81920, price: "40.5", spotPrice: "15"}
//
// A name that is built in is replaced. A price of 0, or none, means: not offered so.
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/instance_types.h"

namespace muster::autoscaler {

inline constexpr size_t kMaxInstanceTypes = 2'000;

// The ConfigMap of kube-system in which a cluster keeps the text of such a file, and its key.
inline constexpr const char* kCatalogConfigMap = "muster-instance-types";
inline constexpr const char* kCatalogKey = "types.yaml";

using Catalog = std::vector<cluster::InstanceType>;  // sorted by name

// BadRequest names the type and the field. "": what is built in.
Result<Catalog> ReadCatalog(const std::string& yaml);

}  // namespace muster::autoscaler
