#include "net/io_thread.h"

#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/check.h"
#include "net/io_threads.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class IoThreadImpl;

class ReadyFdImpl final : public ReadyFd {
 public:
  ReadyFdImpl(IoThreadImpl& thread, asio::io_context& context, int fd, FdEvents& events);
  ~ReadyFdImpl() override;

  int fd() const override { return shared_->fd; }
  void WaitReadable() override;
  void WaitWritable() override;

 private:
  // Outlives the watch in handlers that are still queued.
  struct Shared {
    Shared(IoThreadImpl& t, asio::io_context& context, int descriptor, FdEvents& e)
        : thread(t), stream(context, descriptor), fd(descriptor), events(&e) {}
    IoThreadImpl& thread;
    asio::posix::stream_descriptor stream;
    const int fd;
    FdEvents* events;  // null once the watch is gone
    bool reading = false;
    bool writing = false;
  };
  std::shared_ptr<Shared> shared_;
};

class IoThreadImpl final : public IoThread {
 public:
  explicit IoThreadImpl(int index)
      : timer_(context_), read_scratch_(kReadScratchBytes), write_scratch_(kWriteScratchBytes) {
    thread_ = std::thread([this, index] {
      pthread_setname_np(pthread_self(), fmt::format("net-io-{}", index).c_str());
      auto guard = asio::make_work_guard(context_);
      context_.run();
    });
  }
  ~IoThreadImpl() override { CHECK(!thread_.joinable()); }

  // Runs one turn: an event and what follows from it.
  template <class F>
  void Turn(F&& event) {
    event();
    EndTurn();
  }

  void Post(Task task) override {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    mailbox_.push_back(std::move(task));
    if (mailbox_.size() == 1) asio::post(context_, [this] { DrainMailbox(); });
  }

  void PostBehind(Task task) override {
    behind_.push_back(std::move(task));
    if (behind_.size() == 1) asio::post(context_, [this] { RunOneBehind(); });
  }

  TimerId After(Duration delay, Task task) override {
    TimerId id = ++last_timer_;
    auto position =
        timers_.emplace(Now() + std::max(delay, Duration(0)), std::make_pair(id, std::move(task)));
    timer_positions_[id] = position;
    if (position == timers_.begin()) ArmTimer();
    return id;
  }
  void Cancel(TimerId timer) override {
    auto found = timer_positions_.find(timer);
    if (found == timer_positions_.end()) return;
    timers_.erase(found->second);
    timer_positions_.erase(found);
  }
  Duration Now() const override { return RealClock().Monotonic(); }

  std::unique_ptr<ReadyFd> Watch(int fd, FdEvents& events) override {
    return std::make_unique<ReadyFdImpl>(*this, context_, fd, events);
  }

  void Resolve(const std::string& host, uint16_t port,
               Function<void(Result<std::vector<SocketAddress>>)> done) override;

  void Keep(std::shared_ptr<IoObject> object) override { kept_[object.get()] = std::move(object); }
  void Release(IoObject& object) override {
    auto found = kept_.find(&object);
    if (found == kept_.end()) return;
    released_.push_back(std::move(found->second));
    kept_.erase(found);
  }
  void MarkDirty(IoObject& object) override { dirty_.push_back(object.weak_from_this()); }

  std::span<char> read_scratch() override { return read_scratch_; }
  std::span<char> write_scratch() override { return write_scratch_; }

  void Stop() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      asio::post(context_, [this] { AbortAll(); });
    }
    thread_.join();
    mailbox_.clear();  // tasks that came in before the close and were not run
  }

 private:
  void DrainMailbox() {
    std::vector<Task> tasks;
    {
      std::lock_guard lock(mutex_);
      tasks.swap(mailbox_);
    }
    Turn([&tasks] {
      for (Task& task : tasks) task();
    });
  }

  // The reactor looks for new events between two of these, since a handler that is posted waits
  // behind it.
  void RunOneBehind() {
    Task task = std::move(behind_.front());
    behind_.pop_front();
    if (!behind_.empty()) asio::post(context_, [this] { RunOneBehind(); });
    Turn(task);
  }

  void EndTurn() {
    // Flushing may mark others dirty (a drained source that refills), so until nothing is left.
    for (size_t i = 0; i < dirty_.size(); ++i) {
      if (std::shared_ptr<IoObject> object = dirty_[i].lock()) object->Flush();
    }
    dirty_.clear();
    while (!released_.empty()) {
      std::vector<std::shared_ptr<IoObject>> dying;
      dying.swap(released_);
    }
  }

  void ArmTimer() {
    if (timers_.empty()) return;
    timer_.expires_after(std::max(timers_.begin()->first - Now(), Duration(0)));
    timer_.async_wait([this](error_code error) {
      if (error) return;
      Turn([this] { RunTimers(); });
    });
  }

  void RunTimers() {
    Duration now = Now();
    while (!timers_.empty() && timers_.begin()->first <= now) {
      auto [id, task] = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      timer_positions_.erase(id);
      task();
    }
    ArmTimer();
  }

  void AbortAll() {
    while (!kept_.empty()) {
      std::shared_ptr<IoObject> object = kept_.begin()->second;
      object->Abort();
      Release(*object);
    }
    EndTurn();
    timers_.clear();
    timer_positions_.clear();
    context_.stop();
  }

  asio::io_context context_{1};
  asio::steady_timer timer_;
  std::thread thread_;

  // Shared with other threads.
  std::mutex mutex_;
  std::vector<Task> mailbox_;  // guarded by mutex_
  bool closed_ = false;        // guarded by mutex_

  // This thread only.
  std::multimap<Duration, std::pair<TimerId, Task>> timers_;
  std::unordered_map<TimerId, std::multimap<Duration, std::pair<TimerId, Task>>::iterator>
      timer_positions_;
  TimerId last_timer_ = 0;
  std::unordered_map<IoObject*, std::shared_ptr<IoObject>> kept_;
  std::vector<std::shared_ptr<IoObject>> released_;
  std::vector<std::weak_ptr<IoObject>> dirty_;
  std::deque<Task> behind_;
  std::vector<char> read_scratch_;
  std::vector<char> write_scratch_;
};

ReadyFdImpl::ReadyFdImpl(IoThreadImpl& thread, asio::io_context& context, int fd, FdEvents& events)
    : shared_(std::make_shared<Shared>(thread, context, fd, events)) {}

ReadyFdImpl::~ReadyFdImpl() {
  shared_->events = nullptr;
  error_code ignored;
  shared_->stream.close(ignored);
}

void ReadyFdImpl::WaitReadable() {
  if (std::exchange(shared_->reading, true)) return;
  shared_->stream.async_wait(asio::posix::stream_descriptor::wait_read,
                             [shared = shared_](error_code) {
                               shared->reading = false;
                               if (shared->events == nullptr) return;
                               shared->thread.Turn([&shared] { shared->events->OnReadable(); });
                             });
}

void ReadyFdImpl::WaitWritable() {
  if (std::exchange(shared_->writing, true)) return;
  shared_->stream.async_wait(asio::posix::stream_descriptor::wait_write,
                             [shared = shared_](error_code) {
                               shared->writing = false;
                               if (shared->events == nullptr) return;
                               shared->thread.Turn([&shared] { shared->events->OnWritable(); });
                             });
}

void IoThreadImpl::Resolve(const std::string& host, uint16_t port,
                           Function<void(Result<std::vector<SocketAddress>>)> done) {
  auto resolver = std::make_shared<asio::ip::tcp::resolver>(context_);
  auto shared_done =
      std::make_shared<Function<void(Result<std::vector<SocketAddress>>)>>(std::move(done));
  resolver->async_resolve(
      host, std::to_string(port), asio::ip::resolver_base::numeric_service,
      [this, resolver, shared_done, host](error_code error,
                                          const asio::ip::tcp::resolver::results_type& results) {
        Turn([&] {
          if (error) {
            (*shared_done)(Error(Reason::kServiceUnavailable, "host {:?} was not found: {}", host,
                                 error.message()));
            return;
          }
          std::vector<SocketAddress> addresses;
          for (const auto& entry : results) {
            const asio::ip::tcp::endpoint& endpoint = entry.endpoint();
            addresses.push_back(
                {endpoint.address().is_v6(), endpoint.address().to_string(), endpoint.port()});
          }
          (*shared_done)(std::move(addresses));
        });
      });
}

}  // namespace

std::shared_ptr<IoThread> StartIoThread(int index) { return std::make_shared<IoThreadImpl>(index); }
void StopIoThread(IoThread& thread) { static_cast<IoThreadImpl&>(thread).Stop(); }

IoThreads::IoThreads(int count, const std::function<void()>& on_start) {
  CHECK(count >= 1 && count <= kMaxIoThreads);
  for (int i = 0; i < count; ++i) {
    threads_.push_back(StartIoThread(i));
    if (on_start) threads_.back()->Post(on_start);
  }
}

IoThreads::~IoThreads() {
  for (const std::shared_ptr<IoThread>& thread : threads_) StopIoThread(*thread);
}

}  // namespace muster::net
