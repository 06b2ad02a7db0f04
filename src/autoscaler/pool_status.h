// src/autoscaler/pool_status.h
//
// What a NodePool says of itself: what there is of it, and whether it can have machines at all.
// Conditions, reasons and the event: kubernetes-sigs/karpenter
// (pkg/controllers/{nodepool/validation,provisioning/scheduling}).
//
// Thread: any (pure functions).

#pragma once

#include <string>

#include "autoscaler/instance_catalog.h"
#include "autoscaler/node_pool.h"
#include "base/time.h"
#include "cluster/resources.h"
#include "json/value.h"

namespace muster::autoscaler {

inline constexpr const char* kNoCompatibleTypes = "NoCompatibleInstanceTypes";

// status of the NodePool of which there is `has`.
json::Value PoolStatus(const json::Value& object, const cluster::ResourceList& has, Time now);

// Why no machine of the catalog is ever added for it; "" if some may be.
std::string WhyNothingIsOffered(const NodePool& pool, const Catalog& catalog);

}  // namespace muster::autoscaler
