// src/autoscaler/offering.h
//
// Offering: a machine that a NodePool may add: a type of the catalog, on demand or spot, at its
// price, with the Node that it would become.
//
// What pods may use of a machine is less than it has, as on EKS: of the CPU 6 % of the first core,
// 1 % of the second, 0.5 % of the third and fourth, 0.25 % of the rest; of the memory 255 MiB and
// 11 MiB for each pod that it may have (110), and 100 MiB below which pods are evicted.
//
// Thread: any (values and pure functions).

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autoscaler/instance_catalog.h"
#include "autoscaler/node_pool.h"
#include "cluster/pod_info.h"
#include "json/value.h"

namespace muster::autoscaler {

struct Offering {
  size_t pool = 0;  // position in the pools
  cluster::InstanceType type;
  cluster::CapacityType capacity = cluster::CapacityType::kOnDemand;
  cluster::MicroUsd price = 0;  // for an hour
  cluster::ResourceList has;    // capacity, as limits count it, kNodesResource included
  // The Node that it would become, of which pods of DaemonSets have their part already.
  std::shared_ptr<const cluster::NodeInfo> node;
};

// The labels of such a node, as Karpenter's provider for AWS gives them.
cluster::Labels LabelsOf(const NodePool& pool, const cluster::InstanceType& type,
                         cluster::CapacityType capacity);

json::Value CapacityOf(const cluster::InstanceType& type);
json::Value AllocatableOf(const cluster::InstanceType& type);

// The Node object of a simulated machine, Ready.
json::Value NodeObject(const NodePool& pool, const cluster::InstanceType& type,
                       cluster::CapacityType capacity, const std::string& name, Time now);

// What is said to run on every node: of a DaemonSet's template.
struct Daemon {
  cluster::PodConstraints constraints;
};
Daemon ToDaemon(const json::Value& daemon_set);

// Those that the pools' requirements allow, pools of a higher weight first, then the cheapest.
std::vector<Offering> OfferingsOf(const std::vector<NodePool>& pools, const Catalog& catalog,
                                  const std::vector<Daemon>& daemons);

// "g5.2xlarge (spot, 0.8484 USD/h)"
std::string TextOf(const Offering& offering);

}  // namespace muster::autoscaler
