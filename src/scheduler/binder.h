// src/scheduler/binder.h
//
// Binder: carries decisions out: POST pods/NAME/binding for every pod of a unit, in the order of
// the decisions, many at a time.
//
// What a failed binding means:
//   no answer, or a fault of the server: the binding may have happened. The place is kept and the
//     same binding repeated (a pod can be bound only once, so a repeat is harmless) until the
//     server answers or the pod is seen bound or gone. From the kMaxBindAttempts-th failure on it
//     asks for the pod: one that is not bound counts as refused.
//   Conflict: the pod is asked for; one that is bound to our node was bound by an earlier attempt
//     whose answer was lost.
//   NotFound: the pod is gone; its place is given back.
//   any other refusal: if no pod of the unit is bound, the whole unit gives its places back. If
//     some are, the refused ones keep their places and are tried again up to kMaxBindAttempts
//     times, so that the gang completes; then they give them back.
//
// Life cycle: lives with its scheduler; destroying it abandons what is in flight.
// Thread:     the loop thread. Hooks run there, never from inside Bind().

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "client/api_client.h"
#include "client/lifetime.h"
#include "cluster/cluster_cache.h"
#include "json/value.h"

namespace muster::scheduler {

inline constexpr size_t kMaxBindsInFlight = 256;
inline constexpr size_t kMaxBindsPerTask = 64;  // so that no task holds the loop for long
inline constexpr int kMaxBindAttempts = 5;
inline constexpr Duration kFirstBindBackoff = milliseconds(100);
inline constexpr Duration kMaxBindBackoff = seconds(10);

// 100 ms, 200 ms, ... 10 s. REQUIRES: attempts > 0.
Duration BindBackoff(int attempts);

struct BinderHooks {
  // The Binding to send; null when there is nothing to bind any more (the pod is gone, finished or
  // seen bound).
  std::function<json::Value(const cluster::PodKey& pod)> binding_of;
  std::function<void(const cluster::PodKey& pod, const json::Value& binding)> on_bound;
  // The pod's place is given back. Called after the unit's other pods were answered, if none of
  // them is bound.
  std::function<void(const cluster::PodKey& pod, const Status& refusal)> on_released;
};

class Binder {
 public:
  Binder(client::ApiClient& api, BinderHooks hooks);

  // `partly_bound`: other members of the gang are bound already.
  void Bind(const std::vector<cluster::PodKey>& pods, bool partly_bound);
  bool Idle() const { return waiting_.empty() && in_flight_ == 0 && backing_off_ == 0; }

 private:
  struct UnitBinding {
    bool any_bound = false;
    size_t unanswered = 0;
    std::vector<std::pair<size_t, Status>> refused;  // members that wait for the others' answers
    std::vector<cluster::PodKey> pods;
    std::vector<int> attempts;  // by member
  };
  struct Job {
    std::shared_ptr<UnitBinding> unit;
    size_t member = 0;
  };

  void Pump();
  void SchedulePump();
  void Send(Job job);
  void OnAnswer(const Job& job, const json::Value& binding, const Status& status);
  void Settle(UnitBinding& unit, const std::shared_ptr<UnitBinding>& shared);
  void Verify(const Job& job, const json::Value& binding, const Status& failure);
  void OnDecision(const Job& job, const json::Value& binding, const Status& status);
  void RetryLater(Job job);

  client::ApiClient& api_;
  BinderHooks hooks_;
  std::deque<Job> waiting_;
  size_t in_flight_ = 0;
  size_t backing_off_ = 0;
  bool pump_posted_ = false;
  client::Lifetime lifetime_;
};

}  // namespace muster::scheduler
