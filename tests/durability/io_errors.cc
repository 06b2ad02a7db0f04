#include "durability/io_errors.h"

#include <algorithm>
#include <memory>

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

constexpr int kSteps = 120;

struct Fault {
  Failure failure = Failure::kNone;
  uint64_t first = 0, last = 0;
  bool power_fails_afterwards = false;

  std::string Text() const {
    return fmt::format("{} from call {}{}{}", failure == Failure::kFull ? "full" : "broken", first,
                       last == first + 1 ? ", once" : "",
                       power_fails_afterwards ? ", then a power cut" : "");
  }
};

class Scenario {
 public:
  Scenario(uint64_t seed, const Fault& fault, simulation::Counts& counts)
      : fault_(fault), counts_(counts), rng_(seed), disk_(seed, counts) {}

  std::vector<std::string> Run() {
    disk_.FailCalls(fault_.failure, fault_.first, fault_.last);
    Status opened = Open();
    if (!opened.ok()) {
      counts_.Add("opening refused");
      CheckMessage(opened);
      Repair();
      opened = Open();
      if (!opened.ok()) Violation("does not open on a mended disk: {}", opened.message());
    }
    for (int i = 0; i < kSteps && violations_.empty(); ++i) Step();
    loop_.RunReady();
    calls_ = disk_.calls();
    if (violations_.empty() && fault_.failure == Failure::kFull) MakeRoom();
    if (violations_.empty()) Reopen(fault_.power_fails_afterwards);
    // What is written on the mended disk must outlive the next power cut too.
    if (violations_.empty()) Reopen(true);
    store_.reset();
    return std::move(violations_);
  }
  uint64_t calls() const { return calls_; }

 private:
  template <class... Args>
  void Violation(fmt::format_string<Args...> format, Args&&... args) {
    violations_.push_back(
        fmt::format("{}: {}", fault_.Text(), fmt::format(format, std::forward<Args>(args)...)));
  }

  void CheckMessage(const Status& status) {
    if (!status.message().contains(folder_.File("store/db")))
      Violation("the message names no file: {}", status.message());
    if (disk_.failed() == 0 && !had_failed_)
      Violation("failed without a fault: {}", status.message());
  }

  void Repair() { disk_.FailCalls(Failure::kNone, 0, 0); }

  Status Open() {
    store::SqliteOptions options;
    options.boot_id = std::to_string(boot_);
    options.checkpoint_pages_idle = 20;
    options.checkpoint_pages_busy = 60;
    ASSIGN_OR_RETURN(auto backend, store::OpenSqliteBackend(folder_.File("store/db"), options));
    store::StoreCore::Options core;
    core.max_history_bytes = 4000;
    ASSIGN_OR_RETURN(store_, store::StoreCore::Open(loop_, std::move(backend), std::move(core)));
    return Status::Ok();
  }

  void Step() {
    const uint64_t what = rng_.Below(100);
    const std::string key = fmt::format("/{}", rng_.Below(12));
    const std::string value(1 + rng_.Below(rng_.Chance(0.1) ? 20'000 : 600), 'v');
    const bool durable = rng_.Chance(0.6);
    const double where = rng_.Unit();
    if (what < 70) {
      Write(key, value, durable, what >= 55);
    } else if (what < 75) {
      if (!store_->Compact(Between(where)).ok()) Violation("compaction is refused");
    } else if (what < 82) {
      ReadPast(Between(where));
    } else if (what < 86) {
      Watch(Between(where));
    } else {
      loop_.RunReady();
    }
    ReadPresent();
  }

  // From the oldest revision that can be read to the latest.
  Revision Between(double where) const {
    const Revision oldest = store_->CompactedRevision();
    return oldest +
           static_cast<Revision>(where * static_cast<double>(store_->CommittedRevision() - oldest));
  }

  void Write(const std::string& key, const std::string& value, bool durable, bool remove) {
    const EntryPtr latest = store_->GetLatest(key);
    if (remove && latest == nullptr) return;
    const bool healthy = store_->Health().ok();
    const Revision revision = last_ + 1;
    const Durability durability = durable ? Durability::kDurable : Durability::kRelaxed;
    store::Store::Done done = [this, revision](const Result<EntryPtr>& entry) {
      if (entry) {
        log_.changes.at(revision).acknowledged = true;
      } else {
        CheckMessage(entry.error());
      }
    };
    store::Put put = store::MakePut(key, value);
    put.durability = durability;
    if (healthy) log_.changes[revision] = {key, remove ? *latest->value : value, remove, durable};
    const Result<Revision> given =
        remove ? store_->Delete(key, std::nullopt, durability, std::move(done))
               : store_->Write(std::move(put), std::move(done));
    if (given.has_value() != healthy) Violation("a write is taken by a store that is {}", healthy);
    if (given) {
      last_ = *given;
      return;
    }
    counts_.Add("writes refused");
    CheckMessage(given.error());
  }

  void ReadPresent() {
    const Result<store::RangeResult> range = store_->Range("/", "", 0, 0);
    if (!range || StateOf(*range) != log_.At(store_->CommittedRevision()))
      Violation("the present cannot be read");
    if (!store_->Health().ok()) counts_.Add("reads of a read-only store");
  }

  void ReadPast(Revision revision) {
    if (revision == 0) return;
    const Result<store::RangeResult> range = store_->Range("/", "", 0, revision);
    if (range) {
      if (StateOf(*range) != log_.At(revision)) Violation("revision {} is read wrong", revision);
      return;
    }
    counts_.Add("reads of the past refused");
    CheckMessage(range.error());
  }

  void Watch(Revision after) {
    const auto watch = store_->Watch(
        "/", after,
        [this, next = after + 1](const std::vector<WatchEvent>& events) mutable {
          for (const WatchEvent& event : events) {
            if (event.revision != next++ ||
                log_.changes.at(event.revision).Text(event.revision) != store::Describe(event))
              Violation("a watch is told wrong of revision {}", event.revision);
          }
        },
        [this](const Status& why) {
          counts_.Add("watches ended");
          CheckMessage(why);
        });
    if (!watch) Violation("no watch from {}: {}", after, watch.error().message());
  }

  // A store that promised to go on by itself does so, and what is written then lasts.
  void MakeRoom() {
    if (store_->Health().ok()) return;
    CheckMessage(store_->Health());
    const bool promised = store_->Health().message().contains("goes on by itself");
    had_failed_ = true;
    Repair();
    loop_.RunFor(2 * store::kMaxRecoveryDelay);
    if (store_->Health().ok() != promised)
      return Violation("with room again: {}", store_->Health().message());
    counts_.Add(promised ? "came back by itself" : "stayed read-only after a failed sync");
    if (!promised) return;
    last_ = store_->CommittedRevision();
    log_.changes.erase(log_.changes.upper_bound(last_), log_.changes.end());
    for (int i = 0; i < kSteps / 4 && violations_.empty(); ++i) Step();
    loop_.RunReady();
    if (store_->CommittedRevision() != last_) Violation("writes do not go on with room again");
  }

  void Reopen(bool cut) {
    if (!store_->Health().ok()) {
      counts_.Add("turned read-only");
      CheckMessage(store_->Health());
    } else if (disk_.failed() > 0) {
      counts_.Add("failures without harm");
    }
    if (cut) disk_.CutNow();
    store_.reset();
    if (cut) {
      disk_.PowerOn();
      ++boot_;
    }
    Repair();
    if (const Status status = Open(); !status.ok())
      return Violation("does not open again: {}", status.message());
    const auto jump = cut ? static_cast<Revision>(store::kMaxUnsyncedRevisions) : 0;
    const Revision recovered = store_->CommittedRevision() - jump;
    const Revision promised = cut ? log_.Promised(0) : log_.Acknowledged();
    if (recovered < promised || recovered > last_)
      Violation("revisions up to {} were acknowledged, {} is the last", promised, recovered);
    if (StateOf(*store_->Range("/", "", 0, 0)) != log_.At(recovered))
      Violation("the state is not that of revision {}", recovered);
    log_ = {log_.At(recovered), store_->CommittedRevision(), {}};
    last_ = store_->CommittedRevision();
    Write("/again", "v", true, false);
    loop_.RunReady();
    if (store_->CommittedRevision() != last_) Violation("writes do not go on");
  }

  const Fault fault_;
  simulation::Counts& counts_;
  Rng rng_;
  store::TemporaryFolder folder_;
  FaultDisk disk_;
  SimLoop loop_;
  std::unique_ptr<store::Store> store_;
  int boot_ = 1;
  bool had_failed_ = false;  // before a repair
  uint64_t calls_ = 0;
  ExpectedLog log_;
  Revision last_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string_view> IoErrorCounts() {
  return {"opening refused",
          "turned read-only",
          "writes refused",
          "reads of a read-only store",
          "reads of the past refused",
          "watches ended",
          "failures without harm",
          "came back by itself",
          "stayed read-only after a failed sync",
          "runs"};
}

std::vector<std::string> RunIoErrors(uint64_t seed, uint64_t stride, simulation::Counts& counts) {
  Scenario measure(seed, {}, counts);
  std::vector<std::string> violations = measure.Run();
  for (uint64_t call = 0; call < measure.calls(); call += stride) {
    for (const bool cut : {false, true}) {
      for (const Fault& fault : {Fault{Failure::kBroken, call, call + 1, cut},
                                 Fault{Failure::kBroken, call, UINT64_MAX, cut},
                                 Fault{Failure::kFull, call, UINT64_MAX, cut}}) {
        counts.Add("runs");
        const std::vector<std::string> found = Scenario(seed, fault, counts).Run();
        violations.insert(violations.end(), found.begin(), found.end());
      }
    }
  }
  return violations;
}

}  // namespace muster::durability
