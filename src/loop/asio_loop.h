// src/loop/asio_loop.h
//
// AsioLoop: the production Loop, one thread inside Run().
//
// Life cycle: construct, Run() on the thread that becomes the loop thread (it returns after
//             Stop()), destroy.
// Thread:     Post() and Stop() from any thread; the rest on the loop thread (or before Run()).

#pragma once

#include <memory>

#include "loop/loop.h"
#include "loop/task_times.h"

namespace muster {

// Watches a file descriptor that it does not own; destroying it ends the watch, and no callback
// runs afterwards.
class FdWatch {
 public:
  virtual ~FdWatch() = default;
};

class AsioLoop final : public Loop {
 public:
  AsioLoop();
  ~AsioLoop() override;

  void Run();
  void Stop();
  // After Run() returned: lets it be called again.
  void Restart();

  void Post(Task task) override;
  TimerId After(Duration delay, Task task) override;
  void Cancel(TimerId timer) override;
  Time Now() const override;
  bool InThread() const override;

  // Calls `on_readable` whenever `fd` can be read (end of file included), until the watch is
  // destroyed. The callback must read until EAGAIN or close. `fd` must stay open as long as the
  // watch lives.
  std::unique_ptr<FdWatch> WatchReadable(int fd, Function<void()> on_readable);
  // Calls `on_signal` for each arrival of `signal_number` (SIGINT, SIGTERM, SIGHUP, SIGCHLD).
  void OnSignal(int signal_number, Function<void()> on_signal);

  // How long tasks, timers and watches held the thread: the metric loop_lag_seconds.
  TaskTimes& task_times();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
