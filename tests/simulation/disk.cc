#include "simulation/disk.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "store/store_core.h"

namespace muster::simulation {
namespace {

using store::LogRecord;
using store::Revision;

class DiskBackend final : public store::Backend {
 public:
  explicit DiskBackend(Disk& disk) : disk_(disk), generation_(disk.generation) {}

  Result<store::LoadedState> Load(const std::function<void(LogRecord)>& sink) override {
    for (const auto& [key, record] : StateAt(disk_.last)) {
      if (!record->deleted) sink(*record);
    }
    return store::LoadedState{disk_.last, disk_.compacted};
  }

  Status Append(std::span<const LogRecord> batch, bool) override {
    const bool dead = disk_.generation != generation_;
    CrashPoint::When fate = CrashPoint::When::kNever;
    for (const LogRecord& record : batch) {
      if (dead || disk_.crash == nullptr || !CrashPoint::Counts(record.key)) continue;
      if (const auto next = disk_.crash->Next(); next != CrashPoint::When::kNever) fate = next;
    }
    if (dead || fate == CrashPoint::When::kBefore) {
      disk_.lost += batch.size();
    } else {
      for (const LogRecord& record : batch) {
        CHECK(record.revision == disk_.last + 1);
        disk_.last = record.revision;
        disk_.log.emplace(record.revision, record);
      }
    }
    if (fate != CrashPoint::When::kNever) {
      Kill(disk_);
      disk_.crash->kill();
    }
    return Status::Ok();
  }

  Result<bool> CompactStep(Revision target) override {
    if (disk_.generation != generation_) return false;
    std::map<std::string_view, Revision> newest;  // up to target
    for (const auto& [revision, record] : disk_.log) {
      if (revision <= target) newest[record.key] = revision;
    }
    std::set<Revision> live;
    for (const auto& [key, revision] : newest) {
      if (!disk_.log.at(revision).deleted) live.insert(revision);
    }
    for (auto it = disk_.log.begin(); it != disk_.log.end() && it->first <= target;)
      it = live.contains(it->first) ? std::next(it) : disk_.log.erase(it);
    disk_.compacted = std::max(disk_.compacted, target);
    return false;
  }

  Status Maintain(bool) override { return Status::Ok(); }
  Status Recover(Revision) override { return Status::Ok(); }  // this disk does not break
  bool KeepsLog() const override { return true; }

  Result<store::ReadAtResult> ReadAt(std::string_view prefix, std::string_view after, size_t limit,
                                     Revision revision) override {
    store::ReadAtResult result;
    for (const auto& [key, record] : StateAt(revision)) {
      if (record->deleted || !key.starts_with(prefix) || key <= after) continue;
      if (limit != 0 && result.records.size() == limit) {
        ++result.remaining;
      } else {
        result.records.push_back(*record);
      }
    }
    return result;
  }

  Result<std::vector<store::LogChange>> ReadLog(Revision after, Revision last) override {
    std::vector<store::LogChange> changes;
    for (auto it = disk_.log.upper_bound(after); it != disk_.log.end() && it->first <= last; ++it) {
      store::LogChange& change = changes.emplace_back();
      change.record = it->second;
      const auto previous = disk_.log.find(it->second.previous_revision);
      if (previous != disk_.log.end() && !previous->second.deleted)
        change.previous = std::make_unique<LogRecord>(previous->second);
    }
    return changes;
  }

 private:
  std::map<std::string_view, const LogRecord*> StateAt(Revision revision) const {
    std::map<std::string_view, const LogRecord*> state;
    for (const auto& [number, record] : disk_.log) {
      if (number > revision) break;
      state[record.key] = &record;
    }
    return state;
  }

  Disk& disk_;
  const uint64_t generation_;
};

// Commits take time: a loop whose tasks come late, in order.
class SlowLoop final : public Loop {
 public:
  SlowLoop(Loop& loop, Rng rng, Duration max_delay)
      : loop_(loop), rng_(rng), max_delay_(max_delay) {}
  void Post(Task task) override { After(Duration::zero(), std::move(task)); }
  TimerId After(Duration delay, Task task) override {
    return loop_.After(delay + Duration(rng_.Between(0, max_delay_.count())), std::move(task));
  }
  void Cancel(TimerId timer) override { loop_.Cancel(timer); }
  Time Now() const override { return loop_.Now(); }
  bool InThread() const override { return true; }

 private:
  Loop& loop_;
  Rng rng_;
  const Duration max_delay_;
};

// The core's committer, until the store is killed.
class MortalCommitter final : public store::Committer {
 public:
  MortalCommitter(Loop& loop, store::Backend& backend, OnCommit on_commit, Disk& disk, Rng rng,
                  Duration max_commit_time)
      : slow_(loop, rng, max_commit_time),
        committer_(store::MakeLoopCommitter(
            slow_, backend,
            [&disk, generation = disk.generation,
             on_commit = std::move(on_commit)](Result<Revision> last) mutable {
              if (disk.generation == generation) on_commit(std::move(last));
            })) {}
  void Enqueue(LogRecord record) override { committer_->Enqueue(std::move(record)); }
  void Compact(Revision target) override { committer_->Compact(target); }
  void Recover(Revision last) override { committer_->Recover(last); }

 private:
  SlowLoop slow_;
  std::unique_ptr<store::Committer> committer_;
};

}  // namespace

std::unique_ptr<store::Store> OpenStore(Loop& loop, Disk& disk, store::Store::Decorator decorator,
                                        Rng rng, Duration max_commit_time) {
  ++disk.generation;
  store::StoreCore::Options options;
  options.decorator = std::move(decorator);
  options.committer = [&disk, rng, max_commit_time](Loop& on, store::Backend& backend,
                                                    store::Committer::OnCommit on_commit) {
    return std::unique_ptr<store::Committer>(std::make_unique<MortalCommitter>(
        on, backend, std::move(on_commit), disk, rng, max_commit_time));
  };
  Result<std::unique_ptr<store::StoreCore>> core =
      store::StoreCore::Open(loop, std::make_unique<DiskBackend>(disk), std::move(options));
  CHECK(core.has_value());  // this disk does not break
  return std::move(*core);
}

void Kill(Disk& disk) { ++disk.generation; }

}  // namespace muster::simulation
