#include "store/committer.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"

namespace muster::store {

namespace {

// Moves the next batch out of `queue`; sets `durable` if one of its records wants that.
std::vector<LogRecord> TakeBatch(std::deque<LogRecord>& queue, bool& durable) {
  std::vector<LogRecord> batch;
  size_t bytes = 0;
  durable = false;
  while (!queue.empty() && batch.size() < kMaxBatchWrites) {
    const LogRecord& next = queue.front();
    const size_t size = next.key.size() + (next.value ? next.value->size() : 0);
    if (!batch.empty() && bytes + size > kMaxBatchBytes) break;
    bytes += size;
    durable = durable || next.durable;
    batch.push_back(std::move(queue.front()));
    queue.pop_front();
  }
  return batch;
}

// One step; false when there is nothing left to do. A failure waits for the next Compact(): what
// could not be forgotten now costs space, not correctness.
bool CompactOnce(Backend& backend, Revision target) {
  const Result<bool> more = backend.CompactStep(target);
  if (more) return *more;
  LOG_WARN("store: compaction failed target={} error={:?}", target, more.error().message());
  return false;
}

class LoopCommitter final : public Committer {
 public:
  LoopCommitter(Loop& loop, Backend& backend, OnCommit on_commit)
      : loop_(loop), backend_(backend), on_commit_(std::move(on_commit)) {}

  ~LoopCommitter() override {
    bool durable = false;
    while (!failed_ && !queue_.empty()) {
      const std::vector<LogRecord> batch = TakeBatch(queue_, durable);
      failed_ = !backend_.Append(batch, durable).ok();
    }
  }

  void Enqueue(LogRecord record) override {
    queue_.push_back(std::move(record));
    Schedule();
  }

  void Compact(Revision target) override {
    target_ = std::max(target_, target);
    compacting_ = true;
    Schedule();
  }

 private:
  void Schedule() {
    if (scheduled_) return;
    scheduled_ = true;
    loop_.Post([this, alive = std::weak_ptr<int>(alive_)] {
      if (alive.lock()) Work();
    });
  }

  void Work() {
    scheduled_ = false;
    if (failed_) return;
    Result<Revision> committed(Revision{0});
    if (!queue_.empty()) {
      bool durable = false;
      const std::vector<LogRecord> batch = TakeBatch(queue_, durable);
      if (const Status status = backend_.Append(batch, durable); status.ok()) {
        committed = batch.back().revision;
      } else {
        failed_ = true;
        committed = Error(status);
      }
    }
    if (!failed_ && compacting_) compacting_ = CompactOnce(backend_, target_);
    if (!failed_) backend_.Maintain(queue_.empty() && !compacting_);
    if (!failed_ && (!queue_.empty() || compacting_)) Schedule();
    if (!committed || *committed != 0) on_commit_(std::move(committed));
  }

  Loop& loop_;
  Backend& backend_;
  OnCommit on_commit_;
  std::deque<LogRecord> queue_;
  Revision target_ = 0;
  bool compacting_ = false;
  bool scheduled_ = false;
  bool failed_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

class ThreadCommitter final : public Committer {
 public:
  ThreadCommitter(Loop& loop, Backend& backend, OnCommit on_commit)
      : loop_(loop),
        backend_(backend),
        on_commit_(std::make_shared<OnCommit>(std::move(on_commit))),
        thread_([this, weak = std::weak_ptr<OnCommit>(on_commit_)] { Run(weak); }) {}

  ~ThreadCommitter() override {
    on_commit_.reset();  // results that are still on their way to the loop find nobody
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void Enqueue(LogRecord record) override {
    bool was_empty = false;
    {
      const std::lock_guard lock(mutex_);
      was_empty = queue_.empty();
      queue_.push_back(std::move(record));
    }
    if (was_empty) wake_.notify_one();
  }

  void Compact(Revision target) override {
    {
      const std::lock_guard lock(mutex_);
      target_ = std::max(target_, target);
      compacting_ = true;
    }
    wake_.notify_one();
  }

 private:
  void Run(const std::weak_ptr<OnCommit>& on_commit) {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty() || compacting_; });
      if (queue_.empty() && stopping_) return;
      bool durable = false;
      std::vector<LogRecord> batch = TakeBatch(queue_, durable);
      const Revision target = target_;
      bool compacting = compacting_ && !stopping_;
      compacting_ = false;
      lock.unlock();

      if (!batch.empty()) {
        const Status status = backend_.Append(batch, durable);
        Report(on_commit, status, batch.back().revision);
        if (!status.ok()) return;  // nothing may follow a hole in the log
        batch.clear();
      }
      if (compacting) compacting = CompactOnce(backend_, target);

      lock.lock();
      compacting_ = compacting_ || compacting;
      const bool idle = queue_.empty() && !compacting_;
      lock.unlock();
      backend_.Maintain(idle);
      lock.lock();
    }
  }

  void Report(const std::weak_ptr<OnCommit>& on_commit, const Status& status, Revision last) {
    loop_.Post([on_commit, status, last] {
      const std::shared_ptr<OnCommit> call = on_commit.lock();
      if (!call) return;
      if (status.ok()) {
        (*call)(last);
      } else {
        (*call)(Error(status));
      }
    });
  }

  Loop& loop_;
  Backend& backend_;
  std::shared_ptr<OnCommit> on_commit_;

  std::mutex mutex_;  // guards the five below
  std::condition_variable wake_;
  std::deque<LogRecord> queue_;
  Revision target_ = 0;
  bool compacting_ = false;
  bool stopping_ = false;

  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace

std::unique_ptr<Committer> MakeLoopCommitter(Loop& loop, Backend& backend,
                                             Committer::OnCommit on_commit) {
  return std::make_unique<LoopCommitter>(loop, backend, std::move(on_commit));
}

std::unique_ptr<Committer> MakeThreadCommitter(Loop& loop, Backend& backend,
                                               Committer::OnCommit on_commit) {
  return std::make_unique<ThreadCommitter>(loop, backend, std::move(on_commit));
}

}  // namespace muster::store
