#include "durability/power_cuts.h"

#include <map>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "base/rng.h"
#include "durability/expected_log.h"
#include "durability/fault_disk.h"
#include "loop/sim_loop.h"
#include "store/sqlite_backend.h"
#include "store/store_core.h"
#include "store/store_test_support.h"

namespace muster::durability {

namespace {

using store::Durability;
using store::EntryPtr;
using store::Revision;
using store::WatchEvent;

// Acknowledges what it was given at once: the second mutant.
class HastyCommitter final : public store::Committer {
 public:
  HastyCommitter(Loop& loop, store::Backend& backend, OnCommit on_commit)
      : loop_(loop),
        on_commit_(std::make_shared<OnCommit>(std::move(on_commit))),
        committer_(store::MakeLoopCommitter(loop, backend, [](const Result<Revision>&) {})) {}
  void Enqueue(store::LogRecord record) override {
    loop_.Post([revision = record.revision, weak = std::weak_ptr<OnCommit>(on_commit_)] {
      if (const auto call = weak.lock()) (*call)(revision);
    });
    committer_->Enqueue(std::move(record));
  }
  void Compact(Revision target) override { committer_->Compact(target); }
  void Recover(Revision last) override { committer_->Recover(last); }

 private:
  Loop& loop_;
  std::shared_ptr<OnCommit> on_commit_;
  std::unique_ptr<store::Committer> committer_;
};

class World {
 public:
  World(uint64_t seed, Mutant mutant, simulation::Counts& counts)
      : mutant_(mutant), counts_(counts), rng_(seed), disk_(rng_.Next(), counts) {}

  Outcome Run(int cuts) {
    Start();
    while (outcome_.cuts < cuts && outcome_.violations.empty()) {
      Live();
      if (!outcome_.violations.empty()) break;
      store_.reset();
      PowerOn();
      Recover();
    }
    disk_.CutAfter(0);
    store_.reset();
    outcome_.trace = disk_.trace();
    return std::move(outcome_);
  }

 private:
  template <class... Args>
  void Violation(fmt::format_string<Args...> format, Args&&... args) {
    outcome_.violations.push_back(fmt::format("after {} cuts: {}", outcome_.cuts,
                                              fmt::format(format, std::forward<Args>(args)...)));
  }

  void PowerOn() {
    ++outcome_.cuts;
    disk_.PowerOn();
  }

  // --- opening

  Status Open() {
    store::SqliteOptions options;
    options.boot_id = std::to_string(boot_);
    options.checkpoint_pages_idle = 20;
    options.checkpoint_pages_busy = 60;
    options.clock = &clock_;
    if (mutant_ == Mutant::kSynchronousOff) options.synchronous = "OFF";
    ASSIGN_OR_RETURN(auto backend, store::OpenSqliteBackend(folder_.File("store/db"), options));
    store::StoreCore::Options core;
    core.max_history_bytes = 6000;
    if (mutant_ == Mutant::kReplyBeforeCommit) {
      core.committer = [](Loop& loop, store::Backend& to, store::Committer::OnCommit on_commit) {
        return std::make_unique<HastyCommitter>(loop, to, std::move(on_commit));
      };
    }
    ASSIGN_OR_RETURN(store_, store::StoreCore::Open(loop_, std::move(backend), std::move(core)));
    return Status::Ok();
  }

  // Until the store opens; the power may fail on the way.
  bool OpenAtLast() {
    while (true) {
      if (rng_.Chance(0.2)) disk_.CutAfter(1 + rng_.Below(12));
      const Status status = Open();
      if (status.ok()) return true;
      if (!disk_.is_cut()) {
        Violation("the store does not open: {}", status.message());
        return false;
      }
      counts_.Add("cuts while the store opens");
      PowerOn();
    }
  }

  void Start() {
    if (OpenAtLast()) Recover(0);
  }

  // --- life

  void Live() {
    WatchEverything();
    if (!disk_.is_cut()) disk_.CutAfter(1 + rng_.Below(rng_.Chance(0.3) ? 1500 : 150));
    // What is un-synced at a cut without a change under way counts as well.
    const uint64_t idle_cut = rng_.Chance(0.2) ? rng_.Below(400) : UINT64_MAX;
    for (uint64_t step = 0; !disk_.is_cut() && outcome_.violations.empty(); ++step) {
      Step();
      if (step == idle_cut) disk_.CutNow();
    }
    if (disk_.is_cut()) loop_.RunReady();  // answers that are on their way, and the failure
  }

  void Step() {
    const uint64_t what = rng_.Below(1000);
    if (what < 450) {
      Put();
    } else if (what < 560) {
      Delete();
    } else if (what < 590) {
      counts_.Add("compactions");
      (void)store_->Compact(rng_.Between(log_.base, store_->CommittedRevision()));
    } else if (what < 620) {
      Read();
    } else if (what < 990) {
      for (uint64_t tasks = rng_.Below(4); tasks > 0 && loop_.Step(); --tasks) {
      }
    } else if (what < 995) {
      RestartCleanly();
    } else {
      WatchEverything();
    }
  }

  std::string Value() {
    const size_t size = rng_.Chance(0.02) ? 100'000 : rng_.Chance(0.2) ? 8000 : 300;
    std::string value = fmt::format("{}:", rng_.Next());
    value.resize(1 + value.size() + rng_.Below(size), static_cast<char>('a' + rng_.Below(26)));
    return value;
  }

  store::Store::Done OnDone(Revision revision) {
    return [this, revision](const Result<EntryPtr>& entry) {
      if (!entry) {
        if (!disk_.is_cut()) Violation("revision {} failed: {}", revision, entry.error().message());
        return;
      }
      log_.changes.at(revision).acknowledged = true;
    };
  }

  void Put() {
    store::Put put = store::MakePut(fmt::format("/{}", rng_.Below(20)), Value());
    put.durability = rng_.Chance(0.3) ? Durability::kRelaxed : Durability::kDurable;
    const Revision revision = last_ + 1;
    counts_.Add(store_->GetLatest(put.key) == nullptr ? "creates" : "updates");
    if (put.durability == Durability::kRelaxed) counts_.Add("relaxed writes");
    log_.changes[revision] = {put.key, put.value, false, put.durability == Durability::kDurable};
    Submitted(store_->Write(std::move(put), OnDone(revision)));
  }

  void Delete() {
    const std::string key = fmt::format("/{}", rng_.Below(20));
    const EntryPtr latest = store_->GetLatest(key);
    if (latest == nullptr) return;
    counts_.Add("deletes");
    const auto durability = rng_.Chance(0.3) ? Durability::kRelaxed : Durability::kDurable;
    log_.changes[last_ + 1] = {key, *latest->value, true, durability == Durability::kDurable};
    Submitted(store_->Delete(key, std::nullopt, durability, OnDone(last_ + 1)));
  }

  void Submitted(const Result<Revision>& revision) {
    if (!revision) {
      log_.changes.erase(last_ + 1);
      if (!disk_.is_cut()) Violation("a write was refused: {}", revision.error().message());
    } else if (*revision != ++last_) {
      Violation("revision {} was given out, {} was next", *revision, last_);
    }
  }

  void Read() {
    const Revision committed = store_->CommittedRevision();
    const Revision oldest = std::max(store_->CompactedRevision(), log_.base);
    const Revision revision = rng_.Chance(0.5) ? committed : rng_.Between(oldest, committed);
    if (revision == 0) return;  // would mean the latest
    counts_.Add(store_->InMemory(revision) ? "reads from memory" : "reads from the disk");
    const Result<store::RangeResult> range = store_->Range("/", "", 0, revision);
    if (!range) {
      if (!disk_.is_cut())
        Violation("revision {} cannot be read: {}", revision, range.error().message());
      return;
    }
    shown_ = std::max(shown_, committed);
    if (StateOf(*range) != log_.At(revision))
      Violation("a read of revision {} differs from the log", revision);
  }

  void RestartCleanly() {
    loop_.RunReady();
    store_.reset();
    if (rng_.Chance(0.1)) disk_.CutNow();
    if (disk_.is_cut()) return;
    if (const Status status = Open(); !status.ok()) {
      if (!disk_.is_cut()) Violation("no clean restart: {}", status.message());
      return;
    }
    counts_.Add("clean restarts");
    if (store_->CommittedRevision() != last_)
      return Violation("a clean restart went from {} to {}", last_, store_->CommittedRevision());
    WatchEverything();
  }

  void WatchEverything() {
    const Revision oldest = std::max(store_->CompactedRevision(), log_.base);
    const Revision after = rng_.Chance(0.5) ? store_->CommittedRevision()
                                            : rng_.Between(oldest, store_->CommittedRevision());
    if (!store_->InMemory(after)) counts_.Add("watches from the disk");
    const auto watch = store_->Watch(
        "/", after,
        [this, next = after + 1](const std::vector<WatchEvent>& events) mutable {
          for (const WatchEvent& event : events) Told(event, next++);
        },
        [this](const Status& why) {
          if (!disk_.is_cut()) Violation("a watch ended: {}", why.message());
        });
    if (!watch) Violation("no watch from {}: {}", after, watch.error().message());
  }

  void Told(const WatchEvent& event, Revision expected) {
    const std::string text = store::Describe(event);
    const auto change = log_.changes.find(event.revision);
    if (event.revision != expected) {
      Violation("a watch was told revision {} instead of {}", event.revision, expected);
    } else if (event.revision > store_->CommittedRevision()) {
      Violation("a watch was told revision {} before its commit", event.revision);
    } else if (change == log_.changes.end() || change->second.Text(event.revision) != text) {
      Violation("a watch was told what is not in the log: {}", text.substr(0, 60));
    }
    shown_ = std::max(shown_, event.revision);
    const auto [meaning, is_new] =
        meanings_.emplace(event.revision, std::hash<std::string>()(text));
    if (!is_new && meaning->second != std::hash<std::string>()(text))
      Violation("revision {} came back with another meaning", event.revision);
  }

  // --- after the cut

  void Recover() {
    // First as if the machine were still up, so that the log can be read; then in a new boot.
    if (rng_.Chance(0.7)) {
      if (!OpenAtLast()) return;
      const Revision recovered = store_->CommittedRevision();
      CheckRecovered(recovered);
      CheckLog(recovered);
      if (!outcome_.violations.empty()) return;
      // What this life has shown is promised.
      shown_ = recovered;
      for (auto& [revision, change] : log_.changes) change.durable = true;
      store_.reset();
      if (disk_.is_cut()) PowerOn();
    }
    ++boot_;
    if (!OpenAtLast()) return;
    // Whatever was there, also unseen, came before the jump. A file without a boot has none.
    const bool jumped = store_->CompactedRevision() > last_;
    const auto jump = jumped ? static_cast<Revision>(store::kMaxUnsyncedRevisions) : 0;
    if (!jumped && !meanings_.empty()) Violation("revisions did not jump");
    Recover(store_->CommittedRevision() - jump);
  }

  // The store is open at `recovered`, which counts as its beginning from now on.
  void Recover(Revision recovered) {
    CheckRecovered(recovered);
    last_ = store_->CommittedRevision();
    log_ = {log_.At(recovered), last_, {}};
    shown_ = 0;
  }

  void CheckRecovered(Revision recovered) {
    const Revision promised = log_.Promised(shown_);
    if (recovered < promised)
      return Violation("revision {} was promised, {} is the last one", promised, recovered);
    if (recovered > last_)
      return Violation("revision {} is there, {} was the last one", recovered, last_);
    if (StateOf(*store_->Range("/", "", 0, 0)) != log_.At(recovered))
      return Violation("the state at revision {} differs from the log", recovered);
    for (auto change = log_.changes.upper_bound(recovered); change != log_.changes.end();) {
      counts_.Add(change->second.acknowledged ? "acknowledged relaxed writes lost"
                                              : "un-acknowledged writes lost");
      change = log_.changes.erase(change);
    }
    if (!log_.changes.empty() && log_.changes.rbegin()->first > promised)
      counts_.Add("un-acknowledged writes that survived");
    last_ = std::max(log_.base, recovered);
  }

  void CheckLog(Revision recovered) {
    const Revision after = std::max(store_->CompactedRevision(), log_.base);
    Revision told = after;
    const auto watch = store_->Watch("/", after, [&](const std::vector<WatchEvent>& events) {
      for (const WatchEvent& event : events) Told(event, ++told);
    });
    loop_.RunReady();
    if (disk_.is_cut()) return;
    if (!watch || told != recovered)
      Violation("the log has revisions {} to {}, not to {}", after + 1, told, recovered);
    if (watch) store_->CancelWatch(*watch);
  }

  // Steps of compaction are cut by rows only: time would make runs differ.
  class StoppedClock final : public Clock {
   public:
    Time Wall() const override { return Time(); }
    Duration Monotonic() const override { return Duration(0); }
  };

  const Mutant mutant_;
  simulation::Counts& counts_;
  Rng rng_;
  StoppedClock clock_;
  store::TemporaryFolder folder_;
  FaultDisk disk_;
  SimLoop loop_;
  std::unique_ptr<store::Store> store_;
  int boot_ = 1;

  ExpectedLog log_;     // since the last cut
  Revision last_ = 0;   // given out
  Revision shown_ = 0;  // the highest that a reader or watcher has seen
  std::map<Revision, size_t> meanings_;
  Outcome outcome_;
};

}  // namespace

std::vector<std::string_view> PowerCutCounts() {
  std::vector<std::string_view> names = FaultDisk::ExpectedCounts();
  for (const std::string_view name :
       {"creates", "updates", "deletes", "relaxed writes", "compactions", "reads from memory",
        "reads from the disk", "watches from the disk", "clean restarts",
        "cuts while the store opens", "un-acknowledged writes lost",
        "un-acknowledged writes that survived", "acknowledged relaxed writes lost"}) {
    names.push_back(name);
  }
  return names;
}

Outcome RunPowerCuts(uint64_t seed, int cuts, Mutant mutant, simulation::Counts& counts) {
  World world(seed, mutant, counts);
  return world.Run(cuts);
}

}  // namespace muster::durability
