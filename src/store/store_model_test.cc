// Random operations on every kind of store, compared with the simplest model that can be right: the
// whole state of every revision.

#include <map>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "loop/sim_loop.h"
#include "store/memory_store.h"
#include "store/sqlite_backend.h"
#include "store/sqlite_store.h"
#include "store/store_core.h"
#include "store/store_test_support.h"

namespace muster::store {
namespace {

struct ModelEntry {
  std::string value;
  Revision create = 0;
  Revision mod = 0;
  bool operator==(const ModelEntry&) const = default;
};
using ModelState = std::map<std::string, ModelEntry>;

class Model {
 public:
  const ModelState& Latest() const { return states_.back(); }
  const ModelState& At(Revision revision) const { return states_[static_cast<size_t>(revision)]; }
  Revision revision() const { return static_cast<Revision>(states_.size()) - 1; }

  void Put(const std::string& key, const std::string& value) {
    ModelState next = Latest();
    ModelEntry& entry = next[key];
    entry.mod = revision() + 1;
    if (entry.create == 0) entry.create = entry.mod;
    entry.value = value;
    log_.push_back(fmt::format("put {} {} {}", key, entry.mod, value));
    states_.push_back(std::move(next));
  }
  void Delete(const std::string& key) {
    ModelState next = Latest();
    log_.push_back(fmt::format("delete {} {} {}", key, revision() + 1, next[key].value));
    next.erase(key);
    states_.push_back(std::move(next));
  }
  // The events of `prefix` with revision > after.
  std::vector<std::string> Log(std::string_view prefix, Revision after) const {
    std::vector<std::string> selected;
    for (size_t i = static_cast<size_t>(after); i < log_.size(); ++i) {
      const size_t key = log_[i].find(' ') + 1;
      if (std::string_view(log_[i]).substr(key).starts_with(prefix)) selected.push_back(log_[i]);
    }
    return selected;
  }

 private:
  std::vector<ModelState> states_ = {{}};  // by revision
  std::vector<std::string> log_;
};

class Run {
 public:
  enum class Kind { kMemory, kSqlite, kSqliteShortHistory };

  Run(Kind kind, uint64_t seed) : kind_(kind), rng_(seed) { Open(); }

  void Step() {
    const uint64_t what = rng_.Below(100);
    if (what < 45) {
      Put();
    } else if (what < 60) {
      Delete();
    } else if (what < 75) {
      Range();
    } else if (what < 80) {
      Watch();
    } else if (what < 82) {
      ASSERT_TRUE(store_->Compact(rng_.Between(0, store_->CommittedRevision())).ok());
    } else if (what < 98) {
      loop_.RunReady();
      ASSERT_EQ(store_->CommittedRevision(), model_.revision());
    } else if (kind_ != Kind::kMemory) {
      Reopen();
    }
  }

  void Finish() {
    loop_.RunReady();
    CheckWatches();
    const RangeResult all = *store_->Range("", "", 0, 0);
    Compare(all, model_.Latest(), "", "", 0);
  }

 private:
  struct WatchLog {
    std::string prefix;
    Revision after = 0;
    std::vector<std::string> seen;
  };

  void Open() {
    if (kind_ == Kind::kMemory) {
      store_ = OpenMemoryStore(loop_);
    } else if (kind_ == Kind::kSqlite) {
      store_ = *OpenSqliteStoreOnLoop(loop_, folder_.File("s/m.db"));
    } else {
      StoreCore::Options options;
      options.max_history_bytes = 1500;
      store_ =
          *StoreCore::Open(loop_, *OpenSqliteBackend(folder_.File("s/m.db")), std::move(options));
    }
  }

  void Reopen() {
    loop_.RunReady();
    CheckWatches();
    watches_.clear();
    store_.reset();
    Open();
    ASSERT_EQ(store_->CommittedRevision(), model_.revision());
  }

  std::string Key() {
    return fmt::format("/{}/{}", static_cast<char>('a' + rng_.Below(3)), rng_.Below(6));
  }
  std::string Prefix() {
    return rng_.Chance(0.2) ? std::string()
                            : fmt::format("/{}/", static_cast<char>('a' + rng_.Below(3)));
  }

  std::optional<Revision> Expectation(const std::string& key, bool& holds) {
    const auto found = model_.Latest().find(key);
    const Revision actual = found == model_.Latest().end() ? 0 : found->second.mod;
    holds = true;
    if (rng_.Chance(0.3)) return std::nullopt;
    if (rng_.Chance(0.6)) return actual;
    const Revision guess = rng_.Between(0, model_.revision());
    holds = guess == actual;
    return guess;
  }

  void Put() {
    const std::string key = Key();
    const std::string value = fmt::format("v{}", rng_.Below(1000));
    bool holds = true;
    const std::optional<Revision> expected = Expectation(key, holds);
    const Result<Revision> revision = store_->Write(MakePut(key, value, expected), {});
    ASSERT_EQ(revision.has_value(), holds);
    if (!holds) return;
    ASSERT_EQ(*revision, model_.revision() + 1);
    model_.Put(key, value);
    ASSERT_EQ(*store_->GetLatest(key)->value, value);
  }

  void Delete() {
    const std::string key = Key();
    bool holds = true;
    const std::optional<Revision> expected = Expectation(key, holds);
    const bool exists = model_.Latest().contains(key);
    const Result<Revision> revision = store_->Delete(key, expected, Durability::kRelaxed, {});
    ASSERT_EQ(revision.has_value(), exists && holds);
    if (!revision) return;
    model_.Delete(key);
    ASSERT_EQ(store_->GetLatest(key), nullptr);
  }

  void Range() {
    const std::string prefix = Prefix();
    const std::string after = rng_.Chance(0.5) ? Key() : "";
    const size_t limit = rng_.Below(5);
    const Revision revision = rng_.Chance(0.3) ? 0 : rng_.Between(1, model_.revision() + 1);
    const Result<RangeResult> range = store_->Range(prefix, after, limit, revision);
    if (revision > store_->CommittedRevision()) {
      ASSERT_EQ(range.error().reason(), Reason::kTimeout);
    } else if (revision != 0 && revision < store_->CompactedRevision()) {
      ASSERT_EQ(range.error().reason(), Reason::kExpired);
    } else {
      ASSERT_TRUE(range.has_value());
      Compare(*range, model_.At(range->revision), prefix, after, limit);
    }
  }

  static void Compare(const RangeResult& range, const ModelState& state, std::string_view prefix,
                      std::string_view after, size_t limit) {
    size_t i = 0;
    int64_t remaining = 0;
    for (const auto& [key, expected] : state) {
      if (!key.starts_with(prefix) || key <= after) continue;
      if (limit != 0 && i == limit) {
        ++remaining;
        continue;
      }
      ASSERT_LT(i, range.entries.size());
      const Entry& entry = *range.entries[i++];
      ASSERT_EQ(entry.key, key);
      ASSERT_EQ((ModelEntry{*entry.value, entry.create_revision, entry.mod_revision}), expected);
    }
    ASSERT_EQ(range.entries.size(), i);
    ASSERT_EQ(range.remaining, remaining);
    ASSERT_EQ(range.more, remaining > 0);
  }

  void Watch() {
    WatchLog& log = watches_.emplace_back();
    log.prefix = Prefix();
    log.after = rng_.Between(0, store_->CommittedRevision());
    const Result<Store::WatchId> id =
        store_->Watch(log.prefix, log.after, [&log](const std::vector<WatchEvent>& events) {
          for (const WatchEvent& event : events) log.seen.push_back(Describe(event));
        });
    ASSERT_EQ(id.has_value(), log.after >= store_->CompactedRevision());
    if (!id) watches_.pop_back();
  }

  void CheckWatches() {
    for (const WatchLog& log : watches_) ASSERT_EQ(log.seen, model_.Log(log.prefix, log.after));
  }

  const Kind kind_;
  Rng rng_;
  TemporaryFolder folder_;
  SimLoop loop_;
  Model model_;
  std::deque<WatchLog> watches_;
  std::unique_ptr<Store> store_;
};

void RunSeeds(Run::Kind kind, uint64_t seeds, int steps) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Run run(kind, seed);
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) run.Step();
    if (::testing::Test::HasFatalFailure()) return;
    run.Finish();
  }
}

TEST(StoreModel, MemoryStoreAgrees) { RunSeeds(Run::Kind::kMemory, 40, 600); }
TEST(StoreModel, SqliteStoreAgrees) { RunSeeds(Run::Kind::kSqlite, 6, 400); }
TEST(StoreModel, SqliteStoreWithShortHistoryAgrees) {
  RunSeeds(Run::Kind::kSqliteShortHistory, 6, 400);
}

}  // namespace
}  // namespace muster::store
