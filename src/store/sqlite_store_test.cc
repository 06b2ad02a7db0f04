#include "store/sqlite_store.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "loop/sim_loop.h"
#include "store/sqlite_backend.h"
#include "store/sqlite_db.h"
#include "store/store_core.h"
#include "store/store_test_support.h"

namespace muster::store {
namespace {

class SqliteStoreTest : public ::testing::Test {
 protected:
  void Open() {
    store_.reset();
    Result<std::unique_ptr<Store>> store = OpenSqliteStore(loop_, Path());
    ASSERT_TRUE(store.has_value()) << store.error().ToString();
    store_ = std::move(*store);
  }
  std::string Path() const { return folder_.File("store/muster.db"); }

  // Writes and waits for the commit.
  EntryPtr Write(Put put) {
    std::optional<Result<EntryPtr>> answer;
    const Result<Revision> revision =
        store_->Write(std::move(put), [&](Result<EntryPtr> result) { answer = std::move(result); });
    EXPECT_TRUE(revision.has_value());
    loop_.RunUntil([&] { return answer.has_value(); });
    EXPECT_TRUE(answer->has_value());
    return **answer;
  }
  void Delete(std::string_view key) {
    bool done = false;
    ASSERT_TRUE(store_->Delete(key, std::nullopt, Durability::kDurable,
                               [&](Result<EntryPtr>) { done = true; }));
    loop_.RunUntil([&] { return done; });
  }
  std::vector<std::string> WatchUntil(Revision after, Revision last) {
    std::vector<std::string> seen;
    Revision position = 0;
    const Result<Store::WatchId> id =
        store_->Watch("/", after, [&](const std::vector<WatchEvent>& events) {
          for (const WatchEvent& event : events) {
            seen.push_back(Describe(event) +
                           (event.previous ? " was " + *event.previous->value : ""));
          }
          position = events.back().revision;
        });
    EXPECT_TRUE(id.has_value());
    loop_.RunUntil([&] { return position >= last; });
    store_->CancelWatch(*id);
    return seen;
  }
  int64_t QueryFile(const char* sql) {
    Database database;
    EXPECT_TRUE(database.Open(Path()).ok());
    return *database.QueryInt(sql);
  }

  TemporaryFolder folder_;
  WaitingLoop loop_;
  std::unique_ptr<Store> store_;
};

TEST_F(SqliteStoreTest, KeepsStateRevisionsAndSlotsOverAReopen) {
  Open();
  Put put = MakePut("/a", std::string(kRevisionSlotBytes, '?') + "one");
  put.revision_slot = 0;
  Write(std::move(put));
  Write(MakePut("/b", "two"));
  Delete("/b");
  Open();
  EXPECT_EQ(store_->CommittedRevision(), 3);
  EXPECT_EQ(store_->Get("/a")->mod_revision, 1);
  EXPECT_EQ(store_->Get("/a")->revision_slot, 0U);
  EXPECT_EQ(*store_->Get("/a")->value, "\"1\"" + std::string(19, ' ') + "one");
  EXPECT_EQ(store_->Get("/b"), nullptr);
  EXPECT_EQ(Write(MakePut("/b", "three"))->mod_revision, 4);
}

TEST_F(SqliteStoreTest, DecoratesWhatItLoads) {
  Open();
  Write(MakePut("/a", "one"));
  store_.reset();
  struct Length : Meta {
    size_t length = 0;
  };
  store_ = *OpenSqliteStore(loop_, Path(), [](std::string_view, std::string_view value) {
    auto meta = std::make_shared<Length>();
    meta->length = value.size();
    return meta;
  });
  EXPECT_EQ(static_cast<const Length&>(*store_->Get("/a")->meta).length, 3U);
}

TEST_F(SqliteStoreTest, FilesAreForTheOwnerOnly) {
  Open();
  Write(MakePut("/a", "one"));
  const auto mode = [](const std::string& path) {
    struct stat info{};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  };
  EXPECT_EQ(mode(Path()), 0600U);
  EXPECT_EQ(mode(Path() + "-wal"), 0600U);
  EXPECT_EQ(mode(Path() + ".lock"), 0600U);
  EXPECT_EQ(mode(folder_.File("store")), 0700U);
}

TEST_F(SqliteStoreTest, SecondOpenIsRefusedWhileTheFirstLives) {
  Open();
  const Result<std::unique_ptr<Store>> second = OpenSqliteStore(loop_, Path());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().reason(), Reason::kConflict);
}

TEST_F(SqliteStoreTest, RefusesForeignAndNewerFiles) {
  Open();
  store_.reset();
  {
    Database database;
    ASSERT_TRUE(database.Open(Path()).ok());
    ASSERT_TRUE(database.Exec("UPDATE store_info SET format_version = 2").ok());
  }
  EXPECT_EQ(OpenSqliteStore(loop_, Path()).error().reason(), Reason::kInvalid);
  {
    Database database;
    ASSERT_TRUE(database.Open(Path()).ok());
    ASSERT_TRUE(database.Exec("PRAGMA application_id = 7").ok());
  }
  EXPECT_EQ(OpenSqliteStore(loop_, Path()).error().reason(), Reason::kInvalid);
}

TEST_F(SqliteStoreTest, SaysWhichFileIsDamagedAndWhatHelps) {
  const auto expect_advice = [&](const std::string& what) {
    const Result<std::unique_ptr<Store>> store = OpenSqliteStore(loop_, Path());
    ASSERT_FALSE(store.has_value());
    const std::string& text = store.error().message();
    EXPECT_NE(text.find(what), std::string::npos) << text;
    EXPECT_NE(text.find("start with a new data directory"), std::string::npos) << text;
  };
  Open();
  for (int i = 0; i < 200; ++i) Write(MakePut(fmt::format("/k/{}", i), std::string(500, 'v')));
  store_.reset();
  {
    // The pages after the first, which says what the file is.
    std::fstream file(Path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    const std::string garbage(std::filesystem::file_size(Path()) - 4096, '\x5a');
    file.write(garbage.data(), static_cast<std::streamsize>(garbage.size()));
  }
  expect_advice("the database " + Path() + " is damaged");
  std::ofstream(Path(), std::ios::trunc) << std::string(8192, 'x');
  expect_advice(Path() + " is not a muster store");
}

TEST_F(SqliteStoreTest, ReadsAndWatchesThePastFromTheFileAfterAReopen) {
  Open();
  Write(MakePut("/a", "1"));
  Write(MakePut("/b", "2"));
  Write(MakePut("/a", "3"));
  Delete("/b");
  Write(MakePut("/b", "5"));
  Open();
  EXPECT_EQ(Keys(*store_->Range("/", "", 0, 1)), (std::vector<std::string>{"/a"}));
  const RangeResult at_2 = *store_->Range("/", "", 1, 2);
  EXPECT_EQ(*at_2.entries[0]->value, "1");
  EXPECT_EQ(at_2.remaining, 1);
  EXPECT_TRUE(at_2.more);
  EXPECT_EQ(Keys(*store_->Range("/", "/a", 0, 2)), (std::vector<std::string>{"/b"}));
  EXPECT_EQ(Keys(*store_->Range("/", "", 0, 4)), (std::vector<std::string>{"/a"}));
  EXPECT_EQ(WatchUntil(0, 5),
            (std::vector<std::string>{"put /a 1 1", "put /b 2 2", "put /a 3 3 was 1",
                                      "delete /b 4 2 was 2", "put /b 5 5"}));
  EXPECT_EQ(WatchUntil(3, 5), (std::vector<std::string>{"delete /b 4 2 was 2", "put /b 5 5"}));
}

TEST_F(SqliteStoreTest, CompactionRemovesWhatIsSupersededAndSurvivesAReopen) {
  Open();
  for (int i = 0; i < 2500; ++i) {
    ASSERT_TRUE(store_->Write(MakePut(fmt::format("/k/{}", i % 10), fmt::format("{}", i)), {}));
  }
  Write(MakePut("/gone", "x"));
  Delete("/gone");  // revision 2502, the last one
  ASSERT_TRUE(store_->Compact(2502).ok());
  Open();
  EXPECT_EQ(store_->CommittedRevision(), 2502);
  ASSERT_TRUE(store_->Compact(2502).ok());
  Write(MakePut("/k/0", "new"));
  // Compaction runs between commits: each write lets it take at least one step of 1000 rows.
  for (int i = 0; i < 5; ++i) Write(MakePut("/k/1", "new"));
  store_.reset();
  // Ten keys, of which two got new revisions after the compaction: 1 + 5 rows more.
  EXPECT_EQ(QueryFile("SELECT COUNT(*) FROM log"), 10 + 1 + 5);
  EXPECT_EQ(QueryFile("SELECT compact_revision FROM store_info"), 2502);
  Open();
  EXPECT_EQ(store_->CompactedRevision(), 2502);
  EXPECT_EQ(store_->Range("/", "", 0, 2501).error().reason(), Reason::kExpired);
  EXPECT_EQ(store_->Range("/", "", 0, 2502)->entries.size(), 10U);
}

TEST_F(SqliteStoreTest, RevisionsDoNotGoBackWhenTheLastOneIsCompacted) {
  Open();
  Write(MakePut("/a", "1"));
  Delete("/a");
  ASSERT_TRUE(store_->Compact(2).ok());
  store_.reset();
  Open();
  EXPECT_EQ(store_->CommittedRevision(), 2);
  EXPECT_EQ(Write(MakePut("/a", "2"))->mod_revision, 3);
}

TEST_F(SqliteStoreTest, CommitsThatWaitForTheDiskAreTimed) {
  SqliteOptions options;
  options.commit_times = std::make_shared<TaskTimes>();
  Result<std::unique_ptr<Store>> store = OpenSqliteStore(loop_, Path(), {}, options);
  ASSERT_TRUE(store.has_value());
  store_ = std::move(*store);
  Write(MakePut("/a", "1"));
  Put relaxed = MakePut("/a", "2");
  relaxed.durability = Durability::kRelaxed;
  Write(std::move(relaxed));
  const TaskTimes::Snapshot times = options.commit_times->Read();
  EXPECT_EQ(std::accumulate(times.counts.begin(), times.counts.end(), uint64_t{0}), 1U);
  EXPECT_GT(times.sum.count(), 0);
}

TEST_F(SqliteStoreTest, CheckpointsKeepTheWalShort) {
  Open();
  const std::string value(4000, 'v');
  for (int i = 0; i < 20'000; ++i) {
    Result<Revision> revision = store_->Write(MakePut(fmt::format("/k/{}", i), value), {});
    ASSERT_TRUE(revision.has_value());
    if (i % 100 == 0) loop_.RunUntil([&] { return store_->CommittedRevision() == *revision; });
  }
  EXPECT_LT(std::filesystem::file_size(Path() + "-wal"), 2ULL * kCheckpointPagesBusy * 4096);
}

TEST_F(SqliteStoreTest, FullDiskTurnsTheStoreReadOnly) {
  StoreCore::Options options;
  options.committer = MakeThreadCommitter;
  std::unique_ptr<StoreCore> store =
      *StoreCore::Open(loop_, *OpenSqliteBackend(Path(), {.max_pages = 40}), std::move(options));
  int acknowledged = 0;
  Status failure;
  for (int i = 0; failure.ok() && i < 1000; ++i) {
    bool answered = false;
    ASSERT_TRUE(store->Write(MakePut(fmt::format("/k/{}", i), std::string(4000, 'v')),
                             [&](Result<EntryPtr> result) {
                               answered = true;
                               if (result) {
                                 ++acknowledged;
                               } else {
                                 failure = result.error();
                               }
                             }));
    loop_.RunUntil([&] { return answered; });
  }
  EXPECT_NE(failure.message().find("the disk that holds " + Path() + " is full"), std::string::npos)
      << failure.message();
  EXPECT_FALSE(store->Health().ok());
  EXPECT_EQ(store->Range("/", "", 0, 0)->entries.size(), static_cast<size_t>(acknowledged));
  store.reset();
  Open();
  EXPECT_EQ(store_->CommittedRevision(), acknowledged);
}

TEST_F(SqliteStoreTest, RelaxedWritesKeepTheirPlaceAmongDurableOnes) {
  Open();
  std::vector<Revision> order;
  for (int i = 0; i < 100; ++i) {
    Put put = MakePut("/a", std::to_string(i));
    put.durability = i % 2 == 0 ? Durability::kRelaxed : Durability::kDurable;
    ASSERT_TRUE(store_->Write(std::move(put), [&](Result<EntryPtr> result) {
      order.push_back((*result)->mod_revision);
    }));
  }
  loop_.RunUntil([&] { return order.size() == 100; });
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

// The child writes and reports each acknowledged revision through a pipe until it is killed.
[[noreturn]] void WriteUntilKilled(const std::string& path, int report) {
  WaitingLoop loop;
  std::unique_ptr<Store> store = *OpenSqliteStore(loop, path);
  for (Revision i = store->CommittedRevision();; ++i) {
    Put put = MakePut(fmt::format("/k/{}", i % 50), fmt::format("{}", i + 1));
    Result<Revision> revision = store->Write(std::move(put), [&](Result<EntryPtr> result) {
      const Revision committed = (*result)->mod_revision;
      if (write(report, &committed, sizeof committed) != sizeof committed) _exit(1);
    });
    if (i % 7 == 0) loop.RunUntil([&] { return store->CommittedRevision() >= *revision; });
    if (i % 200 == 0) CHECK(store->Compact(store->CommittedRevision()).ok());
  }
}

TEST(SqliteStoreKill, AcknowledgedWritesSurviveKill9) {
  const TemporaryFolder folder;
  const std::string path = folder.File("store/muster.db");
  Revision acknowledged = 0;
  for (int round = 0; round < 5; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(ends[0]);
      WriteUntilKilled(path, ends[1]);
    }
    close(ends[1]);
    const Revision stop_at = acknowledged + 150 + 60 * round;
    while (acknowledged < stop_at && read(ends[0], &acknowledged, sizeof acknowledged) > 0) {
    }
    ASSERT_EQ(kill(child, SIGKILL), 0);
    // What it acknowledged between the decision and its death counts too.
    while (read(ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged) {
    }
    close(ends[0]);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    ASSERT_GE(acknowledged, stop_at);

    WaitingLoop loop;
    const std::unique_ptr<Store> store = *OpenSqliteStore(loop, path);
    ASSERT_GE(store->CommittedRevision(), acknowledged);
    for (Revision revision = acknowledged - 49; revision <= acknowledged; ++revision) {
      const EntryPtr entry = store->Get(fmt::format("/k/{}", (revision - 1) % 50));
      ASSERT_NE(entry, nullptr);
      ASSERT_GE(entry->mod_revision, revision);
      ASSERT_EQ(*entry->value, fmt::format("{}", entry->mod_revision));
    }
    acknowledged = store->CommittedRevision();
  }
}

}  // namespace
}  // namespace muster::store
