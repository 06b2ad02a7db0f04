// src/apiserver/turns.h
//
// Turns: requests wait here to be handled, those of each user in a queue of their own, and the
// users take turns: nobody who floods the server keeps others out. A few are handled per task of
// the loop, so that whatever else is due comes in between. (Upstream: API priority and fairness.)
//
// Life cycle: a member of the server; destroying it drops what waits.
// Thread:     the loop thread.
// Invariants: at most kMaxWaitingOfUser of one user and kMaxWaitingRequests of all wait; requests
//             of one user are handled in the order in which they came.

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "apiserver/fair_queue.h"
#include "base/task.h"
#include "loop/loop.h"

namespace muster::apiserver {

// Beyond these the answer is 429, and clients try again a second later.
inline constexpr size_t kMaxWaitingRequests = 4000;
inline constexpr size_t kMaxWaitingOfUser = 2000;

class Turns {
 public:
  // `per_task` requests are handled in one task of the loop.
  Turns(Loop& loop, int per_task) : loop_(loop), per_task_(per_task) {}

  // Runs `handle` when the user's turn has come. False, and nothing happens, when too many wait.
  bool Wait(const std::string& user, Task handle);
  size_t waiting() const { return queue_.size(); }

 private:
  void RunLater();
  void Run();

  Loop& loop_;
  const int per_task_;
  FairQueue<Task> queue_{kMaxWaitingRequests, kMaxWaitingOfUser};
  bool posted_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace muster::apiserver
