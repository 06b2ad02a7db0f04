// Databases that were lost, cut, replaced, locked or damaged: each is refused with a message that
// names the file and says what helps, and nothing starts empty.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "store/sqlite_backend.h"
#include "store/sqlite_db.h"
#include "store/sqlite_store.h"
#include "store/store_check.h"
#include "store/store_core.h"
#include "store/store_test_support.h"

namespace muster::store {
namespace {

namespace fs = std::filesystem;

class LostFilesTest : public ::testing::Test {
 protected:
  std::string Path() const { return folder_.File("store/muster.db"); }
  std::string Crashed() const { return folder_.File("crashed/muster.db"); }

  // A store with `count` revisions that is still open.
  std::unique_ptr<Store> Written(int count) {
    std::unique_ptr<Store> store = *OpenSqliteStore(loop_, Path());
    for (int i = 0; i < count; ++i)
      EXPECT_TRUE(store->Write(MakePut(fmt::format("/k/{}", i % 20), std::string(600, 'v')), {}));
    loop_.RunUntil([&] { return store->CommittedRevision() == count; });
    return store;
  }
  // The files as a kill -9 now would leave them.
  void CopyAsCrashed() {
    fs::remove_all(folder_.File("crashed"));
    fs::copy(folder_.File("store"), folder_.File("crashed"));
  }
  std::string Refusal(const std::string& path, SqliteOptions options = {}) {
    const auto store = OpenSqliteStore(loop_, path, {}, std::move(options));
    EXPECT_FALSE(store.has_value());
    if (store) return "";
    EXPECT_TRUE(store.error().message().contains(path)) << store.error().message();
    return store.error().message();
  }

  TemporaryFolder folder_;
  WaitingLoop loop_;
};

TEST_F(LostFilesTest, CrashedStoreOpensWithEverything) {
  const std::unique_ptr<Store> store = Written(50);
  CopyAsCrashed();
  EXPECT_EQ((*OpenSqliteStore(loop_, Crashed()))->CommittedRevision(), 50);
}

TEST_F(LostFilesTest, MissingDatabaseIsNotStartedAnew) {
  Written(50).reset();
  fs::remove(Path());
  const std::string text = Refusal(Path());
  EXPECT_TRUE(text.contains("missing or empty")) << text;
  EXPECT_TRUE(text.contains("muster restore")) << text;
  EXPECT_FALSE(fs::exists(Path()));
  // Whoever knows that there was one says so, even when the whole folder is gone.
  fs::remove_all(folder_.File("store"));
  EXPECT_TRUE(Refusal(Path(), {.must_exist = true}).contains("missing or empty"));
  EXPECT_FALSE(fs::exists(Path()));
}

TEST_F(LostFilesTest, EmptyDatabaseIsNotStartedAnew) {
  Written(50).reset();
  fs::resize_file(Path(), 0);
  EXPECT_TRUE(Refusal(Path()).contains("missing or empty"));
  EXPECT_EQ(fs::file_size(Path()), 0U);
}

TEST_F(LostFilesTest, LogWithoutItsDatabaseIsNotThrownAway) {
  const std::unique_ptr<Store> store = Written(50);
  CopyAsCrashed();
  fs::remove(Crashed());
  fs::remove(Crashed() + ".lock");
  EXPECT_TRUE(Refusal(Crashed()).contains("-wal is still there"));
  EXPECT_GT(fs::file_size(Crashed() + "-wal"), 0U);
}

TEST_F(LostFilesTest, LostOrCutLogIsNoticed) {
  const std::unique_ptr<Store> store = Written(50);
  for (const double left : {0.0, 0.4, 0.9}) {
    SCOPED_TRACE(left);
    CopyAsCrashed();
    const auto bytes = static_cast<double>(fs::file_size(Crashed() + "-wal"));
    if (left == 0.0) {
      fs::remove(Crashed() + "-wal");
    } else {
      fs::resize_file(Crashed() + "-wal", static_cast<uintmax_t>(bytes * left));
    }
    const Result<StoreReport> report = CheckStore(Crashed(), {}, {});
    ASSERT_TRUE(report.has_value()) << report.error().message();
    ASSERT_EQ(report->fault_count, 1) << "as `muster up` sees it";
    const std::string text = Refusal(Crashed());
    EXPECT_TRUE(report->faults[0].contains("but revision 50 was acknowledged"));
    EXPECT_TRUE(text.contains("but revision 50 was acknowledged")) << text;
    EXPECT_TRUE(text.contains("muster restore --force")) << text;
  }
}

TEST_F(LostFilesTest, OlderCopyOfTheDatabaseIsNoticed) {
  Written(50).reset();
  fs::copy_file(Path(), folder_.File("old.db"));
  std::unique_ptr<Store> store = *OpenSqliteStore(loop_, Path());
  ASSERT_TRUE(store->Write(MakePut("/k", "v"), {}));
  store.reset();
  fs::copy_file(folder_.File("old.db"), Path(), fs::copy_options::overwrite_existing);
  EXPECT_TRUE(Refusal(Path()).contains("ends at revision 50, but revision 51 was acknowledged"));
}

TEST_F(LostFilesTest, CutDatabaseIsRefusedOrReadsRight) {
  Written(400).reset();
  const uintmax_t bytes = fs::file_size(Path());
  int refused = 0;
  for (uintmax_t size = 100; size < bytes; size += bytes / 40) {
    SCOPED_TRACE(size);
    CopyAsCrashed();
    fs::resize_file(Crashed(), size);
    const auto store = OpenSqliteStore(loop_, Crashed());
    if (!store) {
      ++refused;
      EXPECT_TRUE(store.error().message().contains(Crashed())) << store.error().message();
      continue;
    }
    // What is missing was of the past: asked for, it is refused.
    EXPECT_EQ((*store)->Range("/", "", 0, 0)->entries.size(), 20U);
    const auto past = (*store)->Range("/", "", 0, 10);
    EXPECT_FALSE(past && past->entries.size() != 10) << "silently less";
  }
  EXPECT_GT(refused, 10);
}

TEST_F(LostFilesTest, LockOfAnotherProgramIsNamed) {
  Written(5).reset();
  Database other;
  ASSERT_TRUE(other.Open(Path()).ok());
  ASSERT_TRUE(other.Exec("BEGIN IMMEDIATE").ok());
  const std::string text = Refusal(Path(), {.busy_timeout = milliseconds(10)});
  EXPECT_TRUE(text.contains("another program holds a lock")) << text;
  ASSERT_TRUE(other.Exec("ROLLBACK").ok());
  auto backend = *OpenSqliteBackend(Path(), {.busy_timeout = milliseconds(10)});
  const std::unique_ptr<StoreCore> store = *StoreCore::Open(loop_, std::move(backend), {});
  ASSERT_TRUE(other.Exec("BEGIN IMMEDIATE").ok());
  ASSERT_TRUE(store->Write(MakePut("/k", "v"), {}));
  loop_.RunReady();
  EXPECT_TRUE(store->Health().message().contains("another program holds a lock"));
  EXPECT_EQ(store->Range("/", "", 0, 0)->entries.size(), 5U);
}

TEST_F(LostFilesTest, NewerFormatIsNamed) {
  Written(5).reset();
  {
    Database database;
    ASSERT_TRUE(database.Open(Path()).ok());
    ASSERT_TRUE(database.Exec("UPDATE store_info SET format_version = 7").ok());
  }
  const std::string text = Refusal(Path());
  EXPECT_TRUE(text.contains("has format 7, this muster reads 1")) << text;
  EXPECT_TRUE(text.contains("use the muster that wrote it")) << text;
}

// Revisions that clients have seen must not come back with another meaning.
TEST_F(LostFilesTest, RevisionsJumpWithTheBootOfTheMachine) {
  const auto open = [&](const char* boot) {
    return *OpenSqliteStore(loop_, Path(), {}, {.boot_id = boot});
  };
  std::unique_ptr<Store> store = open("one");
  ASSERT_TRUE(store->Write(MakePut("/k", "v"), {}));
  store.reset();
  store = open("one");
  EXPECT_EQ(store->CommittedRevision(), 1);
  store.reset();
  store = open("two");
  const Revision jumped = 1 + static_cast<Revision>(kMaxUnsyncedRevisions);
  EXPECT_EQ(store->CommittedRevision(), jumped);
  EXPECT_EQ(store->Get("/k")->mod_revision, 1);
  EXPECT_EQ(store->Watch("/", 1, {}).error().reason(), Reason::kExpired);
  EXPECT_TRUE(store->Watch("/", jumped, {}).has_value());
}

TEST_F(LostFilesTest, RelaxedWritesAreSyncedOnceAThousandWait) {
  const std::unique_ptr<Store> store = *OpenSqliteStore(loop_, Path());
  for (size_t i = 0; i < 2 * kMaxUnsyncedRevisions; ++i) {
    Put put = MakePut("/k", "v");
    put.durability = Durability::kRelaxed;
    ASSERT_TRUE(store->Write(std::move(put), {}));
  }
  loop_.RunUntil([&] {
    return store->CommittedRevision() == static_cast<Revision>(2 * kMaxUnsyncedRevisions);
  });
  // The lock file says which revision was synced last.
  std::ifstream file(Path() + ".lock");
  size_t synced = 0;
  file >> synced;
  EXPECT_GE(synced, kMaxUnsyncedRevisions);
}

}  // namespace
}  // namespace muster::store
