// src/controllers/podgc/pod_gc_controller.h
//
// Removes pods that nobody else would: finished ones beyond a number (the oldest first), those of a
// node that is no more, those that were deleted before they had a node, and those on a node that an
// administrator declared dead (taint node.kubernetes.io/out-of-service). A pod that had not ended
// is Failed first, so that what counts it hears of it. Names, order and times:
// pkg/controller/podgc of Kubernetes.
//
// Keys: a node's name; "ns/name" of a pod that has no node; the empty key for finished pods.
//
// Thread:     the loop thread (see client/reconcile.h).
// Invariants: a node counts as gone when it has been missing for kNodeQuarantine and the API server
//             says so, past the cache.

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/reconcile.h"

namespace muster::controllers {

inline constexpr size_t kMaxTerminatedPods = 12'500;  // that are kept
inline constexpr Duration kPodGcPeriod = seconds(20);
inline constexpr Duration kNodeQuarantine = seconds(40);
inline constexpr std::string_view kOutOfServiceTaint = "node.kubernetes.io/out-of-service";

class PodGcController final : public client::Controller {
 public:
  explicit PodGcController(size_t max_terminated = kMaxTerminatedPods)
      : max_terminated_(max_terminated) {}

  std::string_view name() const override { return "pod-garbage-collector-controller"; }
  std::vector<client::Trigger> Setup(client::InformerSet& informers) override;
  client::Reconciled Reconcile(const client::View& view, const client::Observations& observations,
                               const client::ObjectKey& key, Time now, uint64_t seed) override;

 private:
  void CollectTerminated(const client::Informer& pods, Time now, client::Reconciled& out);
  void CollectOfMissingNode(const client::Informer& pods, const client::Observations& observations,
                            const std::string& node, Time now, client::Reconciled& out);

  const size_t max_terminated_;
  Time last_sweep_{};
  std::map<std::string, Time> missing_since_;  // by node that pods name and that is not there
};

}  // namespace muster::controllers
