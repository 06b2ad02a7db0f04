#include "store/committer.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

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

// At most one step of compaction, and what the backend does between commits.
Status HouseKeep(Backend& backend, bool& compacting, Revision target, bool queue_is_empty) {
  if (compacting) {
    ASSIGN_OR_RETURN(compacting, backend.CompactStep(target));
  }
  return backend.Maintain(queue_is_empty && !compacting);
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

  void Recover(Revision last) override {
    queue_.clear();
    recovering_ = last;
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
    if (recovering_) return TryRecovery(*std::exchange(recovering_, std::nullopt));
    if (failed_) return;
    Revision committed = 0;
    bool durable = false;
    const std::vector<LogRecord> batch = TakeBatch(queue_, durable);
    Status status;
    if (!batch.empty()) {
      status = backend_.Append(batch, durable);
      if (status.ok()) committed = batch.back().revision;
    }
    if (status.ok()) status = HouseKeep(backend_, compacting_, target_, queue_.empty());
    failed_ = !status.ok();
    if (!failed_ && (!queue_.empty() || compacting_)) Schedule();
    if (committed != 0) on_commit_(committed);
    if (failed_) on_commit_(Error(std::move(status)));
  }

  void TryRecovery(Revision last) {
    Status status = backend_.Recover(last);
    failed_ = !status.ok();
    if (!failed_ && compacting_) Schedule();
    if (failed_) return on_commit_(Error(std::move(status)));
    on_commit_(last);
  }

  Loop& loop_;
  Backend& backend_;
  OnCommit on_commit_;
  std::deque<LogRecord> queue_;
  Revision target_ = 0;
  bool compacting_ = false;
  std::optional<Revision> recovering_;  // where the log ends
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

  void Recover(Revision last) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.clear();
      recovering_ = last;
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

      Status status;
      if (!batch.empty()) {
        status = backend_.Append(batch, durable);
        if (status.ok()) Report(on_commit, batch.back().revision);
        batch.clear();
      }
      if (status.ok()) status = HouseKeep(backend_, compacting, target, QueueIsEmpty());
      lock.lock();
      compacting_ = compacting_ || compacting;
      // Nothing may follow a hole in the log.
      while (!status.ok()) {
        Report(on_commit, Error(std::move(status)));
        wake_.wait(lock, [this] { return stopping_ || recovering_; });
        if (stopping_) return;
        const Revision last = *std::exchange(recovering_, std::nullopt);
        lock.unlock();
        status = backend_.Recover(last);
        if (status.ok()) Report(on_commit, last);
        lock.lock();
      }
    }
  }

  bool QueueIsEmpty() {
    const std::lock_guard lock(mutex_);
    return queue_.empty();
  }

  void Report(const std::weak_ptr<OnCommit>& on_commit, Result<Revision> last) {
    loop_.Post([on_commit, last = std::move(last)]() mutable {
      if (const std::shared_ptr<OnCommit> call = on_commit.lock()) (*call)(std::move(last));
    });
  }

  Loop& loop_;
  Backend& backend_;
  std::shared_ptr<OnCommit> on_commit_;

  std::mutex mutex_;  // guards the six below
  std::condition_variable wake_;
  std::deque<LogRecord> queue_;
  Revision target_ = 0;
  bool compacting_ = false;
  std::optional<Revision> recovering_;  // where the log ends
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
