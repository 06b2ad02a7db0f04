#include "store/store_core.h"

#include <gtest/gtest.h>

#include "loop/sim_loop.h"
#include "store/memory_store.h"
#include "store/store_test_support.h"

namespace muster::store {
namespace {

class MemoryStoreTest : public ::testing::Test {
 protected:
  // Writes without waiting; the answer lands in results_.
  Result<Revision> Write(Put put) {
    return store_->Write(
        std::move(put), [this](Result<EntryPtr> result) { results_.push_back(std::move(result)); });
  }
  Result<Revision> Delete(std::string_view key, std::optional<Revision> expected = std::nullopt) {
    return store_->Delete(key, expected, Durability::kDurable, [this](Result<EntryPtr> result) {
      results_.push_back(std::move(result));
    });
  }
  std::vector<std::string>* WatchFrom(std::string prefix, Revision after) {
    auto* seen = &logs_.emplace_back();
    const Result<Store::WatchId> id =
        store_->Watch(std::move(prefix), after, [seen](const std::vector<WatchEvent>& events) {
          for (const WatchEvent& event : events) seen->push_back(Describe(event));
        });
    EXPECT_TRUE(id.has_value());
    last_watch_ = *id;
    return seen;
  }

  SimLoop loop_;
  std::unique_ptr<Store> store_ = OpenMemoryStore(loop_);
  std::vector<Result<EntryPtr>> results_;
  std::deque<std::vector<std::string>> logs_;
  Store::WatchId last_watch_ = 0;
};

TEST_F(MemoryStoreTest, AssignsGaplessRevisionsAtOnceAndShowsThemAfterCommit) {
  EXPECT_EQ(*Write(MakePut("/a", "1")), 1);
  EXPECT_EQ(*Write(MakePut("/b", "2")), 2);
  EXPECT_EQ(store_->CommittedRevision(), 0);
  EXPECT_EQ(store_->Get("/a"), nullptr);
  EXPECT_EQ(*store_->GetLatest("/a")->value, "1");
  EXPECT_TRUE(results_.empty());
  loop_.RunReady();
  EXPECT_EQ(store_->CommittedRevision(), 2);
  EXPECT_EQ(store_->Get("/a")->mod_revision, 1);
  ASSERT_EQ(results_.size(), 2U);
  EXPECT_EQ((*results_[1])->key, "/b");
}

TEST_F(MemoryStoreTest, ChecksPreconditionsAgainstPendingWrites) {
  EXPECT_EQ(*Write(MakePut("/a", "1", 0)), 1);
  EXPECT_EQ(Write(MakePut("/a", "2", 0)).error().reason(), Reason::kConflict);
  EXPECT_EQ(*Write(MakePut("/a", "2", 1)), 2);
  EXPECT_EQ(Write(MakePut("/a", "3", 1)).error().reason(), Reason::kConflict);
  EXPECT_EQ(Delete("/a", 1).error().reason(), Reason::kConflict);
  EXPECT_EQ(*Delete("/a", 2), 3);
  EXPECT_EQ(store_->GetLatest("/a"), nullptr);
  EXPECT_EQ(Delete("/a").error().reason(), Reason::kNotFound);
  EXPECT_EQ(*Write(MakePut("/a", "4", 0)), 4);
  loop_.RunReady();
  EXPECT_EQ(store_->Get("/a")->create_revision, 4);
  EXPECT_EQ(results_.size(), 4U);
}

TEST_F(MemoryStoreTest, FillsTheRevisionSlot) {
  Put put = MakePut("/a", "{\"rv\":" + std::string(kRevisionSlotBytes, '?') + "}");
  put.revision_slot = 6;
  ASSERT_TRUE(Write(MakePut("/other", "")).has_value());
  ASSERT_TRUE(Write(std::move(put)).has_value());
  ASSERT_TRUE(Delete("/a").has_value());
  loop_.RunReady();
  EXPECT_EQ(*(*results_[1])->value, "{\"rv\":\"2\"" + std::string(19, ' ') + "}");
  // The last state, as it is told to watchers of the deletion, carries the revision of the
  // deletion.
  EXPECT_EQ(*(*results_[2])->value, "{\"rv\":\"3\"" + std::string(19, ' ') + "}");
  EXPECT_EQ((*results_[2])->mod_revision, 3);
}

TEST_F(MemoryStoreTest, TellsWatchersThePastAndThePresentOfTheirPrefixInOrder) {
  ASSERT_TRUE(Write(MakePut("/pods/a", "1")));
  ASSERT_TRUE(Write(MakePut("/nodes/n", "2")));
  loop_.RunReady();
  const auto* from_start = WatchFrom("/pods/", 0);
  const auto* from_now = WatchFrom("/pods/", store_->CommittedRevision());
  EXPECT_TRUE(from_start->empty());
  ASSERT_TRUE(Write(MakePut("/pods/a", "3")));
  ASSERT_TRUE(Delete("/pods/a"));
  ASSERT_TRUE(Write(MakePut("/podsx", "no")));
  loop_.RunReady();
  EXPECT_EQ(*from_start,
            (std::vector<std::string>{"put /pods/a 1 1", "put /pods/a 3 3", "delete /pods/a 4 3"}));
  EXPECT_EQ(*from_now, (std::vector<std::string>{"put /pods/a 3 3", "delete /pods/a 4 3"}));
}

TEST_F(MemoryStoreTest, WatchFromTheFutureStartsThere) {
  const auto* seen = WatchFrom("/", 2);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Write(MakePut("/a", "x")));
  loop_.RunReady();
  EXPECT_EQ(*seen, (std::vector<std::string>{"put /a 3 x"}));
}

TEST_F(MemoryStoreTest, CancelledWatchHearsNothingMore) {
  const auto* seen = WatchFrom("/", 0);
  ASSERT_TRUE(Write(MakePut("/a", "1")));
  loop_.RunReady();
  store_->CancelWatch(last_watch_);
  store_->CancelWatch(last_watch_);
  ASSERT_TRUE(Write(MakePut("/a", "2")));
  loop_.RunReady();
  EXPECT_EQ(seen->size(), 1U);
}

TEST_F(MemoryStoreTest, WatcherMayCancelItselfAndOthersFromItsCallback) {
  Store::WatchId first = 0;
  Store::WatchId second = 0;
  int calls = 0;
  const auto cancel_both = [&](const std::vector<WatchEvent>&) {
    ++calls;
    store_->CancelWatch(first);
    store_->CancelWatch(second);
  };
  first = *store_->Watch("/", 0, cancel_both);
  second = *store_->Watch("/", 0, cancel_both);
  loop_.RunReady();
  ASSERT_TRUE(Write(MakePut("/a", "1")));
  loop_.RunReady();
  EXPECT_EQ(calls, 1);
}

TEST_F(MemoryStoreTest, PagesThroughAPrefixAtOneRevision) {
  for (const char* key : {"/p/a", "/p/b", "/p/c", "/p/d", "/q/a"})
    ASSERT_TRUE(Write(MakePut(key, "1")));
  loop_.RunReady();
  const RangeResult first = *store_->Range("/p/", "", 2, 0);
  EXPECT_EQ(Keys(first), (std::vector<std::string>{"/p/a", "/p/b"}));
  EXPECT_TRUE(first.more);
  EXPECT_EQ(first.remaining, 2);
  ASSERT_TRUE(Delete("/p/c"));
  ASSERT_TRUE(Write(MakePut("/p/bb", "2")));
  ASSERT_TRUE(Write(MakePut("/p/d", "2")));
  loop_.RunReady();
  const RangeResult rest = *store_->Range("/p/", "/p/b", 0, first.revision);
  EXPECT_EQ(Keys(rest), (std::vector<std::string>{"/p/c", "/p/d"}));
  EXPECT_EQ(*rest.entries[1]->value, "1");
  EXPECT_FALSE(rest.more);
  EXPECT_EQ(Keys(*store_->Range("/p/", "/p/b", 0, 0)), (std::vector<std::string>{"/p/bb", "/p/d"}));
}

TEST_F(MemoryStoreTest, RefusesTheCompactedPastAndTheFuture) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Write(MakePut("/a", std::to_string(i))));
  loop_.RunReady();
  ASSERT_TRUE(store_->Compact(3).ok());
  EXPECT_EQ(store_->CompactedRevision(), 3);
  EXPECT_EQ(store_->Range("/", "", 0, 2).error().reason(), Reason::kExpired);
  EXPECT_EQ(*store_->Range("/", "", 0, 3)->entries[0]->value, "2");
  EXPECT_EQ(store_->Range("/", "", 0, 6).error().reason(), Reason::kTimeout);
  const auto ignore = [](const std::vector<WatchEvent>&) {};
  EXPECT_EQ(store_->Watch("/", 2, ignore).error().reason(), Reason::kExpired);
  EXPECT_TRUE(store_->Watch("/", 3, ignore).has_value());
  EXPECT_FALSE(store_->Compact(6).ok());
}

TEST_F(MemoryStoreTest, WatcherThatIsBeingToldThePastKeepsItThroughACompaction) {
  for (int i = 0; i < 12000; ++i) ASSERT_TRUE(Write(MakePut("/a", "x")));
  loop_.RunReady();
  const auto* seen = WatchFrom("/", 0);
  ASSERT_TRUE(store_->Compact(12000).ok());
  EXPECT_EQ(store_->Range("/", "", 0, 5).error().reason(), Reason::kExpired);
  loop_.RunReady();
  EXPECT_EQ(seen->size(), 12000U);
}

TEST_F(MemoryStoreTest, RefusesWhatIsTooLarge) {
  EXPECT_EQ(Write(MakePut("", "v")).error().reason(), Reason::kRequestEntityTooLarge);
  EXPECT_EQ(Write(MakePut(std::string(kMaxKeyBytes + 1, 'k'), "v")).error().reason(),
            Reason::kRequestEntityTooLarge);
  EXPECT_EQ(Write(MakePut("/a", std::string(kMaxValueBytes + 1, 'v'))).error().reason(),
            Reason::kRequestEntityTooLarge);
  EXPECT_TRUE(Write(MakePut("/a", std::string(kMaxValueBytes, 'v'))).has_value());
}

TEST_F(MemoryStoreTest, RefusesMoreThanItsQueueHolds) {
  for (size_t i = 0; i < kMaxPendingWrites; ++i) ASSERT_TRUE(Write(MakePut("/a", "")));
  EXPECT_EQ(Write(MakePut("/a", "")).error().reason(), Reason::kTooManyRequests);
  loop_.RunReady();
  EXPECT_TRUE(Write(MakePut("/a", "")).has_value());
}

TEST_F(MemoryStoreTest, QueueIsBoundedInBytesToo) {
  const std::string big(kMaxValueBytes, 'v');
  size_t taken = 0;
  while (Write(MakePut("/a", big)).has_value()) ++taken;
  EXPECT_EQ(taken, kMaxPendingBytes / kMaxValueBytes);
}

TEST_F(MemoryStoreTest, DestructionCallsNobodyBack) {
  ASSERT_TRUE(Write(MakePut("/a", "1")));
  WatchFrom("/", 0);
  store_.reset();
  loop_.RunReady();
  EXPECT_TRUE(results_.empty());
}

// A backend in memory that remembers its batches and fails when told to.
struct FakeBackendState {
  std::vector<std::vector<LogRecord>> batches;
  std::vector<bool> durable;
  bool fail = false;
  bool fail_housekeeping = false;
  bool recoverable = false;  // what `fail` says of itself
  int recoveries = 0;
  bool keeps_log = false;
  bool gives_log = false;
  int log_reads = 0;
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(FakeBackendState& state) : state_(state) {}
  Result<LoadedState> Load(const std::function<void(LogRecord)>&) override { return LoadedState{}; }
  Status Append(std::span<const LogRecord> batch, bool durable) override {
    if (state_.fail) return Failure();
    state_.batches.emplace_back(batch.begin(), batch.end());
    state_.durable.push_back(durable);
    return Status::Ok();
  }
  Result<bool> CompactStep(Revision) override { return false; }
  Status Maintain(bool) override {
    if (state_.fail_housekeeping) return Error(Reason::kInternalError, "the sync failed");
    return Status::Ok();
  }
  Status Recover(Revision last) override {
    ++state_.recoveries;
    EXPECT_EQ(last, state_.batches.empty() ? 0 : state_.batches.back().back().revision);
    return state_.fail ? Failure() : Status::Ok();
  }
  bool KeepsLog() const override { return state_.keeps_log; }
  Result<ReadAtResult> ReadAt(std::string_view, std::string_view, size_t, Revision) override {
    return Error(Reason::kExpired, "not kept");
  }
  Result<std::vector<LogChange>> ReadLog(Revision after, Revision last) override {
    ++state_.log_reads;
    if (!state_.gives_log) return Error(Reason::kInternalError, "the disk does not work");
    std::vector<LogChange> changes;
    for (const std::vector<LogRecord>& batch : state_.batches) {
      for (const LogRecord& record : batch) {
        if (record.revision > after && record.revision <= last)
          changes.push_back({record, nullptr});
      }
    }
    return changes;
  }

 private:
  Status Failure() const {
    const std::string text = "no space left on device";
    return state_.recoverable ? RecoverableError(text) : Status(Reason::kInternalError, text);
  }
  FakeBackendState& state_;
};

class FakeBackendTest : public ::testing::Test {
 protected:
  std::unique_ptr<StoreCore> Open(StoreCore::Options options = {}) {
    return *StoreCore::Open(loop_, std::make_unique<FakeBackend>(backend_), std::move(options));
  }
  SimLoop loop_;
  FakeBackendState backend_;
};

TEST_F(FakeBackendTest, FailedCommitFailsEveryPendingWriteAndLeavesReads) {
  const std::unique_ptr<StoreCore> store = Open();
  std::vector<Result<EntryPtr>> results;
  const auto keep = [&](Result<EntryPtr> result) { results.push_back(std::move(result)); };
  ASSERT_TRUE(store->Write(MakePut("/a", "1"), keep));
  loop_.RunReady();
  backend_.fail = true;
  // More than one batch: none of the later ones may reach the disk.
  for (size_t i = 0; i < kMaxBatchWrites + 10; ++i)
    ASSERT_TRUE(store->Write(MakePut("/a", "2"), keep));
  std::vector<std::string> seen;
  ASSERT_TRUE(store->Watch("/", 1, [&](const std::vector<WatchEvent>& events) {
    for (const WatchEvent& event : events) seen.push_back(Describe(event));
  }));
  loop_.RunReady();
  backend_.fail = false;
  ASSERT_EQ(results.size(), kMaxBatchWrites + 11);
  EXPECT_TRUE(results[0].has_value());
  for (size_t i = 1; i < results.size(); ++i) ASSERT_FALSE(results[i].has_value());
  EXPECT_NE(store->Health().message().find("no space left on device"), std::string::npos);
  EXPECT_EQ(store->Write(MakePut("/b", "1"), keep).error().message(), store->Health().message());
  EXPECT_EQ(store->Delete("/a", std::nullopt, Durability::kDurable, keep).error().message(),
            store->Health().message());
  EXPECT_EQ(*store->Get("/a")->value, "1");
  EXPECT_EQ(*store->GetLatest("/a")->value, "1");
  EXPECT_EQ(store->CommittedRevision(), 1);
  EXPECT_EQ(store->Range("/", "", 0, 0)->entries.size(), 1U);
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(backend_.batches.size(), 1U);
}

TEST_F(FakeBackendTest, ComesBackByItselfWhenThereIsRoomAgain) {
  const std::unique_ptr<StoreCore> store = Open();
  ASSERT_TRUE(store->Write(MakePut("/a", "1"), {}));
  loop_.RunReady();
  backend_.fail = backend_.recoverable = true;
  std::vector<Result<EntryPtr>> results;
  const auto keep = [&](Result<EntryPtr> result) { results.push_back(std::move(result)); };
  std::vector<std::string> seen;
  ASSERT_TRUE(store->Watch("/", 1, [&](const std::vector<WatchEvent>& events) {
    for (const WatchEvent& event : events) seen.push_back(Describe(event));
  }));
  for (size_t i = 0; i < kMaxBatchWrites + 10; ++i)
    ASSERT_TRUE(store->Write(MakePut("/lost", "2"), keep));
  loop_.RunReady();
  ASSERT_EQ(results.size(), kMaxBatchWrites + 10);
  EXPECT_NE(store->Health().message().find("make room, and it goes on by itself"),
            std::string::npos)
      << store->Health().message();
  // It tries less and less often, but it tries.
  loop_.RunFor(minutes(5));
  EXPECT_GE(backend_.recoveries, 10);
  EXPECT_LE(backend_.recoveries, 16);
  EXPECT_FALSE(store->Write(MakePut("/b", "1"), keep));
  backend_.fail = false;
  loop_.RunFor(kMaxRecoveryDelay);
  ASSERT_TRUE(store->Health().ok()) << store->Health().message();
  // Memory, the log and watchers are as if the failed writes had never been.
  EXPECT_EQ(store->Get("/lost"), nullptr);
  EXPECT_EQ(*store->Write(MakePut("/b", "1"), keep), 2);
  loop_.RunReady();
  EXPECT_EQ(store->CommittedRevision(), 2);
  EXPECT_EQ(backend_.batches.size(), 2U);
  EXPECT_EQ(seen.size(), 1U);
  const int recoveries = backend_.recoveries;
  loop_.RunFor(minutes(5));
  EXPECT_EQ(backend_.recoveries, recoveries) << "a healthy store looks no more";
}

TEST_F(FakeBackendTest, ABrokenDiskNeedsARestart) {
  const std::unique_ptr<StoreCore> store = Open();
  backend_.fail = true;
  ASSERT_TRUE(store->Write(MakePut("/a", "1"), {}));
  loop_.RunFor(minutes(5));
  backend_.fail = false;
  loop_.RunFor(minutes(5));
  EXPECT_EQ(backend_.recoveries, 0);
  EXPECT_NE(store->Health().message().find("repair the disk, then restart"), std::string::npos);
}

TEST_F(FakeBackendTest, BatchesAreBoundedAndSyncedOnlyForDurableWrites) {
  const std::unique_ptr<StoreCore> store = Open();
  const auto write = [&](Durability durability, size_t bytes) {
    Put put = MakePut("/a", std::string(bytes, 'v'));
    put.durability = durability;
    ASSERT_TRUE(store->Write(std::move(put), {}));
  };
  write(Durability::kRelaxed, 1);
  loop_.RunReady();
  for (size_t i = 0; i < kMaxBatchWrites; ++i) write(Durability::kRelaxed, 1);
  write(Durability::kDurable, 1);
  loop_.RunReady();
  write(Durability::kRelaxed, kMaxBatchBytes);
  write(Durability::kDurable, kMaxBatchBytes);
  loop_.RunReady();
  std::vector<size_t> sizes;
  for (const auto& batch : backend_.batches) sizes.push_back(batch.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{1, kMaxBatchWrites, 1, 1, 1}));
  EXPECT_EQ(backend_.durable, (std::vector<bool>{false, false, true, false, true}));
}

TEST_F(FakeBackendTest, DestructionWritesWhatIsPending) {
  std::unique_ptr<StoreCore> store = Open();
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(store->Write(MakePut("/a", "1"), {}));
  store.reset();
  ASSERT_EQ(backend_.batches.size(), 2U);
  EXPECT_EQ(backend_.batches[1].back().revision, 300);
}

TEST_F(FakeBackendTest, HistoryIsBoundedInBytesAndCompactsWhatItDrops) {
  const std::unique_ptr<StoreCore> store = Open({.max_history_bytes = 100'000});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(store->Write(MakePut("/a", std::string(1000, 'v')), {}));
    loop_.RunReady();
  }
  EXPECT_GT(store->CompactedRevision(), 850);
  EXPECT_LT(store->CompactedRevision(), 950);
  EXPECT_EQ(store->Range("/", "", 0, store->CompactedRevision() - 1).error().reason(),
            Reason::kExpired);
  EXPECT_TRUE(store->Range("/", "", 0, store->CompactedRevision()).has_value());
}

TEST_F(FakeBackendTest, CompactsItselfWhenNobodyElseDoes) {
  const std::unique_ptr<StoreCore> store = Open({.max_uncompacted_revisions = 100});
  for (int i = 0; i < 101; ++i) ASSERT_TRUE(store->Write(MakePut("/a", "v"), {}));
  loop_.RunReady();
  EXPECT_EQ(store->CompactedRevision(), 51);
}

TEST_F(FakeBackendTest, CompactsItselfWhenThePastIsLarge) {
  backend_.keeps_log = true;
  const std::unique_ptr<StoreCore> store = Open({.max_uncompacted_bytes = 100'000});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(store->Write(MakePut("/a", std::string(1000, 'v')), {}));
    loop_.RunReady();
    ASSERT_LE(store->CommittedRevision() - store->CompactedRevision(), 101);
  }
  EXPECT_GE(store->CommittedRevision() - store->CompactedRevision(), 45);
}

// A sync that failed may have lost what an earlier commit left to it.
TEST_F(FakeBackendTest, FailedHousekeepingTurnsTheStoreReadOnly) {
  const std::unique_ptr<StoreCore> store = Open();
  backend_.fail_housekeeping = true;
  bool acknowledged = false;
  ASSERT_TRUE(store->Write(MakePut("/a", "1"), [&](const Result<EntryPtr>& entry) {
    acknowledged = entry.has_value();
  }));
  loop_.RunReady();
  EXPECT_TRUE(acknowledged);  // its own commit was good
  EXPECT_NE(store->Health().message().find("the sync failed"), std::string::npos);
  EXPECT_FALSE(store->Write(MakePut("/a", "2"), {}).has_value());
  EXPECT_EQ(*store->Get("/a")->value, "1");
}

TEST_F(FakeBackendTest, WatchEndsWithTheReasonWhenTheDiskDoesNotGiveThePast) {
  backend_.keeps_log = true;
  const std::unique_ptr<StoreCore> store = Open({.max_history_bytes = 100});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store->Write(MakePut("/a", "v"), {}));
  loop_.RunReady();
  ASSERT_FALSE(store->InMemory(1));
  Status end;
  int events = 0;
  ASSERT_TRUE(store->Watch(
      "/", 1, [&](const std::vector<WatchEvent>&) { ++events; },
      [&](const Status& why) { end = why; }));
  loop_.RunReady();
  EXPECT_EQ(end.message(), "the disk does not work");
  ASSERT_TRUE(store->Write(MakePut("/a", "v"), {}));
  loop_.RunReady();
  EXPECT_EQ(events, 0);
  EXPECT_TRUE(store->Health().ok());
}

// As a thousand nodes that come back to a server that was started again.
TEST_F(FakeBackendTest, WatchersAreToldThePastOfTheDiskTogether) {
  backend_.keeps_log = backend_.gives_log = true;
  const std::unique_ptr<StoreCore> store = Open({.max_history_bytes = 100});
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(store->Write(MakePut("/a/x", "1"), {}));
    ASSERT_TRUE(store->Write(MakePut("/b/x", "2"), {}));
  }
  loop_.RunReady();
  ASSERT_FALSE(store->InMemory(950));
  struct Told {
    std::string prefix;
    Revision next = 0;  // that it has to be told
    Revision step = 0;
  };
  std::deque<Told> all;
  const auto watch = [&](std::string prefix, Revision after, Revision step) {
    Told& told = all.emplace_back(prefix, after + step, step);
    ASSERT_TRUE(store->Watch(prefix, after, [&told](const std::vector<WatchEvent>& events) {
      for (const WatchEvent& event : events) {
        EXPECT_EQ(event.revision, told.next) << told.prefix;
        told.next += told.step;
      }
    }));
  };
  for (int i = 0; i < 30; ++i) {
    watch("/", 0, 1);
    watch("/", 450 + i, 1);
    watch("/b/", 300, 2);
    watch("/", 995, 1);
  }
  loop_.RunReady();
  EXPECT_EQ(backend_.log_reads, 5);
  ASSERT_TRUE(store->Write(MakePut("/a/x", "3"), {}));
  loop_.RunReady();
  for (const Told& told : all) EXPECT_EQ(told.next, 1002) << told.prefix;
}

TEST_F(FakeBackendTest, WatcherThatFallsTooFarBehindDoesNotKeepThePast) {
  const std::unique_ptr<StoreCore> store = Open({.max_uncompacted_revisions = 100});
  for (int i = 0; i < 101; ++i) ASSERT_TRUE(store->Write(MakePut("/a", "v"), {}));
  // Its turn comes after the commit of these.
  Status end;
  int events = 0;
  ASSERT_TRUE(store->Watch(
      "/", 0, [&](const std::vector<WatchEvent>&) { ++events; },
      [&](const Status& why) { end = why; }));
  loop_.RunReady();
  EXPECT_EQ(store->CompactedRevision(), 51);
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.reason(), Reason::kExpired);
  EXPECT_EQ(events, 0);
}

}  // namespace
}  // namespace muster::store
