#include "loop/sim_loop.h"

#include <algorithm>

namespace muster {

SimLoop::SimLoop(Time start) : now_(start) {}

void SimLoop::Post(Task task) { After(Duration::zero(), std::move(task)); }

TimerId SimLoop::After(Duration delay, Task task) {
  const std::lock_guard lock(mutex_);
  const TimerId id = next_id_++;
  const Time due = now_ + std::max(delay, Duration::zero());
  queue_.emplace(Slot(due, id), std::move(task));
  due_.emplace(id, due);
  return id;
}

void SimLoop::Cancel(TimerId timer) {
  const std::lock_guard lock(mutex_);
  const auto found = due_.find(timer);
  if (found == due_.end()) return;
  queue_.erase({found->second, timer});
  due_.erase(found);
}

Time SimLoop::Now() const {
  const std::lock_guard lock(mutex_);
  return now_ + jumped_;
}

Time SimLoop::Steady() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

void SimLoop::JumpClock(Duration by) {
  const std::lock_guard lock(mutex_);
  jumped_ += by;
}

std::optional<Time> SimLoop::NextDue() const {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return std::nullopt;
  return queue_.begin()->first.first;
}

bool SimLoop::Step() {
  Task task;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return false;
    const auto first = queue_.begin();
    now_ = std::max(now_, first->first.first);
    task = std::move(first->second);
    due_.erase(first->first.second);
    queue_.erase(first);
    ++steps_;
  }
  task();
  return true;
}

size_t SimLoop::RunReady(size_t limit) {
  size_t ran = 0;
  while (ran < limit) {
    const std::optional<Time> due = NextDue();
    if (!due || *due > Steady()) break;
    Step();
    ++ran;
  }
  return ran;
}

void SimLoop::RunFor(Duration duration) {
  const Time end = Steady() + duration;
  for (std::optional<Time> due = NextDue(); due && *due <= end; due = NextDue()) Step();
  const std::lock_guard lock(mutex_);
  now_ = std::max(now_, end);
}

bool SimLoop::RunUntil(Function<bool()> done, Duration deadline) {
  const Time end = Steady() + deadline;
  while (!done()) {
    const std::optional<Time> due = NextDue();
    if (!due || *due > end) return done();
    Step();
  }
  return true;
}

void SimPool::Run(Task work, Loop& loop, Task done) {
  loop.Post([work = std::move(work), &loop, done = std::move(done)]() mutable {
    work();
    loop.Post(std::move(done));
  });
}

}  // namespace muster
