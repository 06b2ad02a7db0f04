#include "durability/kill_rounds.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "base/rng.h"
#include "store/sqlite_store.h"
#include "store/store_test_support.h"

namespace muster::durability {

namespace {

using store::EntryPtr;
using store::Revision;
using store::WatchEvent;

constexpr int kKeys = 40;

// What the child reports. Smaller than PIPE_BUF: whole or not at all.
struct Report {
  Revision revision = 0;  // 0: the store is open
  int32_t key = 0;
  uint8_t deleted = 0;
  uint8_t padding[3] = {};
  uint64_t value_hash = 0;
};

uint64_t Hash(std::string_view text) { return std::hash<std::string_view>()(text); }

std::string KeyName(int key) { return fmt::format("/k/{:02}", key); }

// --- the child

class Child {
 public:
  Child(const std::string& path, uint64_t seed, int pipe) : path_(path), rng_(seed), pipe_(pipe) {}

  [[noreturn]] void Run() {
    Result<std::unique_ptr<store::Store>> opened = store::OpenSqliteStore(loop_, path_);
    CHECK_MSG(opened.has_value(), opened ? "" : opened.error().message());
    store_ = std::move(*opened);
    Tell({});
    while (true) {
      for (uint64_t writes = 1 + rng_.Below(60); writes > 0; --writes) Write();
      if (rng_.Chance(0.1)) CHECK(store_->Compact(store_->CommittedRevision()).ok());
      if (rng_.Chance(0.3)) {
        loop_.RunUntil([&] { return store_->CommittedRevision() >= last_; });
      } else {
        loop_.RunReady();
      }
    }
  }

 private:
  void Tell(const Report& report) const {
    if (write(pipe_, &report, sizeof report) != sizeof report) _exit(1);
  }

  void Write() {
    const int key = static_cast<int>(rng_.Below(kKeys));
    const std::string name = KeyName(key);
    const auto durability =
        rng_.Chance(0.3) ? store::Durability::kRelaxed : store::Durability::kDurable;
    const bool remove = store_->GetLatest(name) != nullptr && rng_.Chance(0.2);
    store::Put put = store::MakePut(name, std::to_string(rng_.Next()));
    put.value.resize(put.value.size() + rng_.Below(rng_.Chance(0.1) ? 20'000 : 800), 'v');
    put.durability = durability;
    Report report{0, key, static_cast<uint8_t>(remove), {}, remove ? 0 : Hash(put.value)};
    auto done = [this, report](const Result<EntryPtr>& entry) mutable {
      CHECK_MSG(entry.has_value(), entry ? "" : entry.error().message());
      report.revision = (*entry)->mod_revision;
      Tell(report);
    };
    const Result<Revision> revision =
        remove ? store_->Delete(name, std::nullopt, durability, std::move(done))
               : store_->Write(std::move(put), std::move(done));
    CHECK(revision.has_value());
    last_ = *revision;
  }

  const std::string path_;
  Rng rng_;
  const int pipe_;
  store::WaitingLoop loop_;
  std::unique_ptr<store::Store> store_;
  Revision last_ = 0;
};

// --- the parent

class Parent {
 public:
  Parent(uint64_t seed, simulation::Counts& counts) : counts_(counts), rng_(seed) {}

  std::vector<std::string> Run(int rounds) {
    for (int round = 0; round < rounds && violations_.empty(); ++round) {
      Kill(Start());
      Check(round);
      counts_.Add("kills");
    }
    return std::move(violations_);
  }

 private:
  std::string Path() const { return folder_.File("store/muster.db"); }

  pid_t Start() {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    const uint64_t seed = rng_.Next();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      close(ends[0]);
      Child(Path(), seed, ends[1]).Run();
    }
    close(ends[1]);
    pipe_ = ends[0];
    return child;
  }

  // After so many acknowledgements, or so many microseconds, whichever comes first.
  void Kill(pid_t child) {
    const bool early = rng_.Chance(0.2);
    uint64_t reports = early ? 0 : 1 + rng_.Below(400);
    const int wait_ms = static_cast<int>(early ? rng_.Below(8) : 10'000);
    open_ = false;
    pollfd readable{pipe_, POLLIN, 0};
    if (early) {
      poll(nullptr, 0, wait_ms);
    } else {
      while (reports > 0 && poll(&readable, 1, wait_ms) > 0 && Read()) --reports;
    }
    CHECK(kill(child, SIGKILL) == 0);
    // What it acknowledged between the decision and its death counts too.
    while (Read()) {
    }
    close(pipe_);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
      violations_.push_back(fmt::format("the child ended by itself: status {}", status));
    if (!open_) counts_.Add("kills before the store was open");
  }

  bool Read() {
    Report report;
    if (read(pipe_, &report, sizeof report) != sizeof report) return false;
    if (report.revision == 0) {
      open_ = true;
      return true;
    }
    counts_.Add("acknowledged writes");
    acknowledged_ = std::max(acknowledged_, report.revision);
    Report& latest = latest_[report.key];
    if (report.revision > latest.revision) latest = report;
    return true;
  }

  template <class... Args>
  void Violation(int round, fmt::format_string<Args...> format, Args&&... args) {
    violations_.push_back(
        fmt::format("round {}: {}", round, fmt::format(format, std::forward<Args>(args)...)));
  }

  void Check(int round) {
    store::WaitingLoop loop;
    Result<std::unique_ptr<store::Store>> opened = store::OpenSqliteStore(loop, Path());
    if (!opened) return Violation(round, "does not open: {}", opened.error().message());
    store::Store& store = **opened;
    const Revision committed = store.CommittedRevision();
    if (committed < acknowledged_)
      return Violation(round, "revision {} was acknowledged, {} is the last", acknowledged_,
                       committed);
    if (committed > acknowledged_) counts_.Add("rounds with un-acknowledged writes that survived");
    for (const auto& [key, report] : latest_) {
      const EntryPtr entry = store.Get(KeyName(key));
      if (entry != nullptr && entry->mod_revision > acknowledged_) continue;
      if (report.deleted != 0 ? entry != nullptr : entry == nullptr) {
        // Only a write that was never acknowledged may have taken it away or brought it back.
        if (entry == nullptr && committed > acknowledged_) continue;
        Violation(round, "{} is {} after revision {}", KeyName(key),
                  entry == nullptr ? "absent" : "present", report.revision);
      } else if (entry != nullptr && (entry->mod_revision != report.revision ||
                                      Hash(*entry->value) != report.value_hash)) {
        Violation(round, "{} is not what revision {} made it", KeyName(key), report.revision);
      }
    }
    CheckLog(round, store, loop);
    // What is there counts as promised from now on.
    acknowledged_ = committed;
    latest_.clear();
    const store::RangeResult all = *store.Range("/", "", 0, 0);
    for (const EntryPtr& entry : all.entries) {
      const int key = std::stoi(entry->key.substr(3));
      latest_[key] = {entry->mod_revision, key, 0, {}, Hash(*entry->value)};
    }
  }

  void CheckLog(int round, store::Store& store, store::WaitingLoop& loop) {
    Revision told = store.CompactedRevision();
    if (told == store.CommittedRevision()) return;
    const auto watch = store.Watch("/", told, [&](const std::vector<WatchEvent>& events) {
      for (const WatchEvent& event : events) {
        if (event.revision != ++told)
          Violation(round, "revision {} follows {}", event.revision, told - 1);
      }
    });
    CHECK(watch.has_value());
    loop.RunUntil([&] { return told >= store.CommittedRevision() || !violations_.empty(); });
  }

  simulation::Counts& counts_;
  Rng rng_;
  store::TemporaryFolder folder_;
  int pipe_ = -1;
  bool open_ = false;
  Revision acknowledged_ = 0;
  std::map<int, Report> latest_;  // by key
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string_view> KillRoundCounts() {
  return {"kills", "kills before the store was open", "acknowledged writes",
          "rounds with un-acknowledged writes that survived"};
}

std::vector<std::string> RunKillRounds(uint64_t seed, int rounds, simulation::Counts& counts) {
  return Parent(seed, counts).Run(rounds);
}

}  // namespace muster::durability
