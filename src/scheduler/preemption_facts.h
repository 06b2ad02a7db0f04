// src/scheduler/preemption_facts.h
//
// What preemption asks about the cluster besides its snapshot: who is placed with which priority,
// which gangs run, and which disruption budgets protect whom.
//
// Thread: made where the cache lives (the loop thread, of the live one), then a value.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/api_client.h"
#include "cluster/cluster_cache.h"
#include "json/value.h"
#include "scheduler/pending.h"
#include "schema/label_selector.h"

namespace muster::scheduler {

inline const client::Resource kPodDisruptionBudgets{"policy", "v1", "poddisruptionbudgets"};

// A PodDisruptionBudget.
struct DisruptionBudget {
  std::string ns;
  schema::LabelSelector pods = schema::LabelSelector::Nothing();
  int64_t allowed = 0;  // status.disruptionsAllowed
};

// A gang of which pods are placed.
struct RunningGang {
  std::string ns, name;
  int64_t min_member = 1;
  GangCount count;
  int64_t priority = INT64_MIN;
  struct Member {
    cluster::PlacementIndex placement = cluster::kNoIndex;
    size_t task = kNoTask;           // position in count.tasks
    size_t sub_group = kNoSubGroup;  // position in count.sub_groups.groups
  };
  std::vector<Member> members;  // its placed pods
};

struct PreemptionFacts {
  std::vector<cluster::PlacedPod> pods;  // by placement of the snapshot; empty: evict nobody
  std::vector<RunningGang> gangs;        // by namespace and name
  std::vector<DisruptionBudget> budgets;
};

// Without budgets.
PreemptionFacts MakePreemptionFacts(const cluster::ClusterCache& cache,
                                    const PriorityClasses& priorities);

// What is read of a PodDisruptionBudget.
const json::Fields& DisruptionBudgetFields();
// Adds it, and notes as leaving those whose eviction it granted already. One whose selector cannot
// be read protects nobody.
void AddBudget(const std::string& ns, const json::Value& budget, const cluster::ClusterCache& cache,
               PreemptionFacts& facts);
// A pod that counts as leaving.
void MarkLeaving(const cluster::PodKey& pod, const cluster::ClusterCache& cache,
                 PreemptionFacts& facts);

// Some unit might evict a placed pod, or somebody made room for one of its pods: plan with facts.
bool PreemptionMatters(const Queue& queue, const cluster::ClusterCache& cache);

// Of the pods that are placed; INT64_MAX if there are none.
int64_t LowestPriority(const PreemptionFacts& facts);

}  // namespace muster::scheduler
