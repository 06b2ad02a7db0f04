// src/apiserver/kinds/pod_strategy.h
//
// Pods: what upstream's admission plugins Priority, DefaultTolerationSeconds, ServiceAccount and
// LimitRanger do, the first status, and graceful deletion.
//
// Thread: the loop thread.

#pragma once

#include "apiserver/strategy.h"
#include "store/store.h"

namespace muster::apiserver {

inline constexpr int64_t kDefaultTolerationSeconds = 300;  // of not-ready and unreachable
inline constexpr int64_t kDefaultTerminationSeconds = 30;  // terminationGracePeriodSeconds

class PodStrategy : public Strategy {
 public:
  // `store` has PriorityClasses, LimitRanges, ServiceAccounts. REQUIRES: outlives the strategy.
  explicit PodStrategy(const store::Store& store) : store_(store) {}

  bool returns_deleted_object() const override { return true; }
  bool AwaitsFurniture(const WriteContext& context, const json::Value& pod) override;
  Status PrepareCreate(WriteContext& context, json::Value& pod) override;
  Status Reserve(WriteContext& context, const json::Value* before, json::Value& pod) override;
  Status PrepareUpdate(WriteContext& context, const json::Value& before,
                       json::Value& after) override;
  Status PrepareStatusUpdate(WriteContext& context, const json::Value& before,
                             json::Value& after) override;
  Deletion PlanDeletion(const json::Value& pod, std::optional<int64_t> requested) override;

 private:
  Status SetPriority(const WriteContext& context, json::Value& pod) const;
  json::Value FindPriorityClass(std::string_view name) const;  // null if there is none

  const store::Store& store_;
};

// The PriorityClass of pods that name none; null if there is none.
json::Value DefaultPriorityClass(const store::Store& store);

}  // namespace muster::apiserver
