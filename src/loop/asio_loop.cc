#include "loop/asio_loop.h"

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/check.h"
#include "base/smooth_clock.h"

namespace muster {
namespace asio = boost::asio;

namespace {

template <typename Callable>
void RunTimed(Callable& callable, TaskTimes& times) {
  const Duration start = RealClock().Monotonic();
  callable();
  times.Record(RealClock().Monotonic() - start);
}

// A move-only task as a handler: Asio 1.74 copies nothing that post() is given by value.
struct TaskHandler {
  Task task;
  TaskTimes* times;
  void operator()() { RunTimed(task, *times); }
};

}  // namespace

struct AsioLoop::Impl {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::atomic<std::thread::id> thread{};
  TaskTimes times;

  // One Asio timer serves all of ours: it is armed for the earliest deadline.
  asio::steady_timer timer{io};
  Duration armed_for = Duration::max();
  TimerId next_id = 1;
  std::map<std::pair<Duration, TimerId>, Task> timers;
  std::unordered_map<TimerId, Duration> deadlines;
  std::vector<std::unique_ptr<asio::signal_set>> signals;
  std::mutex clock_mutex;  // Now() is also asked from elsewhere
  SmoothClock clock;

  void Arm() {
    if (timers.empty()) return;
    const Duration earliest = timers.begin()->first.first;
    if (earliest >= armed_for) return;
    armed_for = earliest;
    timer.expires_at(std::chrono::steady_clock::time_point(earliest));
    timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) RunDue();
    });
  }

  void RunDue() {
    armed_for = Duration::max();
    const Duration now = RealClock().Monotonic();
    // Timers made by these tasks wait for the next turn, so that no task starves the others.
    const TimerId first_new = next_id;
    while (!timers.empty() && timers.begin()->first.first <= now) {
      auto node = timers.begin();
      if (node->first.second >= first_new) break;
      TaskHandler handler{std::move(node->second), &times};
      deadlines.erase(node->first.second);
      timers.erase(node);
      handler();
    }
    Arm();
  }

  void WaitSignal(asio::signal_set& set, std::shared_ptr<Function<void()>> on_signal) {
    set.async_wait([this, &set, on_signal](const boost::system::error_code& error, int) {
      if (error) return;
      (*on_signal)();
      WaitSignal(set, on_signal);
    });
  }
};

namespace {

class AsioFdWatch final : public FdWatch {
 public:
  struct State {
    State(asio::io_context& io, int fd, TaskTimes& task_times)
        : descriptor(io, fd), times(task_times) {}
    asio::posix::stream_descriptor descriptor;
    TaskTimes& times;
    Function<void()> on_readable;
    bool alive = true;
  };

  AsioFdWatch(asio::io_context& io, int fd, TaskTimes& times, Function<void()> on_readable)
      : state_(std::make_shared<State>(io, fd, times)) {
    state_->on_readable = std::move(on_readable);
    Wait(state_);
  }
  ~AsioFdWatch() override {
    state_->alive = false;
    state_->descriptor.release();  // cancels the wait; the descriptor stays open, it is not ours
  }

 private:
  static void Wait(const std::shared_ptr<State>& state) {
    state->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                 [state](const boost::system::error_code& error) {
                                   if (error || !state->alive) return;
                                   RunTimed(state->on_readable, state->times);
                                   if (state->alive) Wait(state);
                                 });
  }

  std::shared_ptr<State> state_;
};

}  // namespace

AsioLoop::AsioLoop() : impl_(std::make_unique<Impl>()) {}

AsioLoop::~AsioLoop() = default;

void AsioLoop::Run() {
  impl_->thread.store(std::this_thread::get_id());
  impl_->io.run();
}

void AsioLoop::Stop() { impl_->io.stop(); }

void AsioLoop::Restart() { impl_->io.restart(); }

void AsioLoop::Post(Task task) {
  asio::post(impl_->io, TaskHandler{std::move(task), &impl_->times});
}

TimerId AsioLoop::After(Duration delay, Task task) {
  const TimerId id = impl_->next_id++;
  const Duration deadline = RealClock().Monotonic() + std::max(delay, Duration::zero());
  impl_->timers.emplace(std::pair(deadline, id), std::move(task));
  impl_->deadlines.emplace(id, deadline);
  impl_->Arm();
  return id;
}

void AsioLoop::Cancel(TimerId timer) {
  const auto found = impl_->deadlines.find(timer);
  if (found == impl_->deadlines.end()) return;
  impl_->timers.erase({found->second, timer});
  impl_->deadlines.erase(found);
}

Time AsioLoop::Now() const {
  const std::lock_guard lock(impl_->clock_mutex);
  return impl_->clock.Read(RealClock().Wall(), RealClock().Monotonic());
}

bool AsioLoop::InThread() const { return impl_->thread.load() == std::this_thread::get_id(); }

std::unique_ptr<FdWatch> AsioLoop::WatchReadable(int fd, Function<void()> on_readable) {
  CHECK(fd >= 0);
  return std::make_unique<AsioFdWatch>(impl_->io, fd, impl_->times, std::move(on_readable));
}

void AsioLoop::OnSignal(int signal_number, Function<void()> on_signal) {
  impl_->signals.push_back(std::make_unique<asio::signal_set>(impl_->io, signal_number));
  impl_->WaitSignal(*impl_->signals.back(),
                    std::make_shared<Function<void()>>(std::move(on_signal)));
}

TaskTimes& AsioLoop::task_times() { return impl_->times; }

}  // namespace muster
