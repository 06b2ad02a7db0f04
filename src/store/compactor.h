// src/store/compactor.h
//
// Compactor: lets a store forget its past, as the Kubernetes API server does with etcd: every
// kCompactionPeriod up to the revision that was the latest one period ago. So a client may continue
// a list or a watch for at least that long.
//
// Life cycle: from construction to destruction. REQUIRES: loop and store outlive it.
// Thread:     the loop thread.
// Invariants: an idle store is left alone.

#pragma once

#include "base/time.h"
#include "loop/loop.h"
#include "store/store.h"

namespace muster::store {

inline constexpr Duration kCompactionPeriod = minutes(5);

class Compactor {
 public:
  Compactor(Loop& loop, Store& store, Duration period = kCompactionPeriod);
  ~Compactor() { loop_.Cancel(timer_); }
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;

 private:
  void Schedule();

  Loop& loop_;
  Store& store_;
  const Duration period_;
  Revision one_period_ago_;
  TimerId timer_ = 0;
};

}  // namespace muster::store
