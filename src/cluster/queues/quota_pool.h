// src/cluster/queues/quota_pool.h
//
// Queues with quotas, thin, after Kueue: a pool (ClusterQueue) has so much of each resource in each
// flavor; a workload reserves what all its pods need, or waits. One pool lends nothing to another
// and evicts nobody.
//
// Words of reasons: kueue pkg/scheduler/flavorassigner. A flavor is tried after the other, in the
// order of the pool, for all resources of a group together; the first in which all fit is taken.
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/node_affinity.h"
#include "cluster/resources.h"
#include "cluster/taints.h"
#include "json/value.h"

namespace muster::cluster {

// ResourceFlavor: a kind of nodes.
struct Flavor {
  std::string name;
  Labels node_labels;
  std::vector<Taint> taints;
  std::vector<Toleration> tolerations;
};
Flavor ToFlavor(const json::Value& resource_flavor);
using Flavors = std::map<std::string, Flavor, std::less<>>;

// Amounts by {flavor, resource}, in the units of resources.h.
using QuotaUsage = std::map<std::pair<std::string, std::string>, int64_t>;
void AddUsage(QuotaUsage& sum, const QuotaUsage& more);
void TakeUsage(QuotaUsage& sum, const QuotaUsage& less);

struct QuotaGroup {
  struct FlavorQuota {
    std::string flavor;
    ResourceList nominal;  // an absent one is zero
  };
  std::vector<std::string> resources;
  std::vector<FlavorQuota> flavors;
};

// ClusterQueue.
struct QuotaPool {
  std::string name;
  bool strict = false;  // StrictFIFO: nobody passes one that does not fit
  std::vector<QuotaGroup> groups;

  const QuotaGroup* GroupOf(std::string_view resource) const;
};
QuotaPool ToQuotaPool(const json::Value& cluster_queue);

// Pods of a workload that are equal.
struct PodSet {
  std::string name;
  int64_t count = 0;
  ResourceList requests;  // of all of them
  NodeAffinity affinity;
  std::vector<Toleration> tolerations;
};
// Of Workload.spec.podSets.
std::vector<PodSet> ToPodSets(const json::Value& workload);

struct PodSetAssignment {
  std::string name;
  int64_t count = 0;
  std::map<std::string, std::string> flavors;  // by resource
  ResourceList usage;
};
using Assignment = std::vector<PodSetAssignment>;
QuotaUsage UsageOf(const Assignment& assignment);
// Workload.status.admission, and back. What an admission of a workload that has none uses is
// nothing.
json::Value AdmissionOf(const QuotaPool& pool, const Assignment& assignment);
QuotaUsage ReservedBy(const json::Value& workload);

struct Unassigned {
  std::string message;  // "couldn't assign flavors to pod set main: ..."
  // It would not fit either if nothing else were in the pool.
  bool never_fits = false;
};

// The order in which workloads that wait are looked at: by priority, then by age.
void SortByTurn(std::vector<const json::Value*>& workloads);

// What `pod_sets` get beside `used`: all of them, or none.
std::expected<Assignment, Unassigned> AssignFlavors(const QuotaPool& pool, const Flavors& flavors,
                                                    const QuotaUsage& used,
                                                    const std::vector<PodSet>& pod_sets);

// Who must end before `pod_sets` fit: of `holders` (what each has reserved), the first ones in
// their order that together make room, without those that need not. nullopt: not even all of them.
std::optional<std::vector<size_t>> WhoseEndWouldAdmit(const QuotaPool& pool, const Flavors& flavors,
                                                      const std::vector<QuotaUsage>& holders,
                                                      const std::vector<PodSet>& pod_sets);

}  // namespace muster::cluster
