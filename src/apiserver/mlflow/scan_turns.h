// src/apiserver/mlflow/scan_turns.h
//
// ScanTurns: requests that look through many objects, and hold what they read until they have
// answered, wait here for a slot, so that few of them are in memory at a time. Users take turns.
//
// Life cycle: a shared member of the server. A slot is free again when its last copy is gone.
// Thread:     the loop thread.
// Invariants: at most kMaxScans slots are taken; at most kMaxWaitingScans of all and
//             kMaxWaitingScansOfUser of one user wait.

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "apiserver/fair_queue.h"
#include "base/task.h"
#include "loop/loop.h"

namespace muster::apiserver {

inline constexpr size_t kMaxScans = 4;
// Beyond these the answer is 429, after which MLflow's clients ask again.
inline constexpr size_t kMaxWaitingScans = 1000;
inline constexpr size_t kMaxWaitingScansOfUser = 200;

class ScanTurns : public std::enable_shared_from_this<ScanTurns> {
 public:
  using Slot = std::shared_ptr<void>;
  using Begin = Function<void(Slot)>;

  explicit ScanTurns(Loop& loop) : loop_(loop) {}

  // `begin` gets its slot within this call if one is free and nobody waits, else later. False, and
  // nothing happens, when too many wait.
  bool Wait(const std::string& user, Begin begin);

 private:
  Slot Take();
  void Released();
  void RunNext();

  Loop& loop_;
  FairQueue<Begin> queue_{kMaxWaitingScans, kMaxWaitingScansOfUser};
  size_t taken_ = 0;
};

}  // namespace muster::apiserver
