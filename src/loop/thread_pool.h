// src/loop/thread_pool.h
//
// ThreadPool: the production Pool. Work runs in the order given on `threads` threads; destroying it
// finishes what was started and drops what was not.
//
// Thread: Run() from any.

#pragma once

#include <memory>
#include <string>

#include "loop/loop.h"

namespace muster {

inline constexpr size_t kMaxPoolQueue = 100'000;  // beyond it Run() is a bug of the caller (CHECK)

class ThreadPool final : public Pool {
 public:
  ThreadPool(std::string name, int threads);
  ~ThreadPool() override;
  void Run(Task work, Loop& loop, Task done) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
