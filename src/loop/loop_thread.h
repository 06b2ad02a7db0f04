// src/loop/loop_thread.h
//
// LoopThread: an AsioLoop with a thread of its own, for a part that must go on while the
// control-plane loop is busy (the gateway).
//
// Life cycle: the constructor starts the thread; RunAndWait() takes down what lives there; the
//             destructor stops the loop and joins.
// Thread:     constructor, destructor and RunAndWait() on the owner's thread; loop() as AsioLoop.

#pragma once

#include <memory>
#include <string>

#include "loop/asio_loop.h"

namespace muster {

class LoopThread {
 public:
  explicit LoopThread(std::string name);
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  AsioLoop& loop();
  // Blocks until `task` has run there. Never from inside that thread.
  void RunAndWait(Task task);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
