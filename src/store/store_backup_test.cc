#include "store/store_backup.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "store/sqlite_db.h"
#include "store/sqlite_store.h"
#include "store/store_test_support.h"

namespace muster::store {
namespace {

namespace fs = std::filesystem;

class StoreBackupTest : public ::testing::Test {
 protected:
  StoreBackupTest() : store_(*OpenSqliteStore(loop_, Path())) {
    for (int i = 0; i < 40; ++i) {
      Put put = MakePut(fmt::format("/k/{}", i % 30), std::string(kRevisionSlotBytes, ' ') + "v");
      put.revision_slot = 0;
      EXPECT_TRUE(store_->Write(std::move(put), {}));
    }
    EXPECT_TRUE(store_->Delete("/k/0", std::nullopt, Durability::kDurable, {}));
    loop_.RunUntil([&] { return store_->CommittedRevision() == 41; });
  }
  std::string Path() const { return folder_.File("store/muster.db"); }
  std::string Backup() const { return folder_.File("b.db"); }

  StoreReport Check(const std::string& path) { return *CheckStore(path, {}, {}); }
  // A change that SQLite itself finds nothing wrong with.
  void Tamper(const char* sql) {
    store_.reset();
    Database database;
    ASSERT_TRUE(database.Open(Path()).ok());
    ASSERT_TRUE(database.Exec(sql).ok());
  }
  void ExpectFault(std::string_view text) {
    const StoreReport report = Check(Path());
    EXPECT_GT(report.fault_count, 0);
    for (const std::string& fault : report.faults) {
      if (fault.contains(text)) return;
    }
    ADD_FAILURE() << "no fault says " << text
                  << "; the first: " << (report.faults.empty() ? "none" : report.faults.front());
  }

  TemporaryFolder folder_;
  WaitingLoop loop_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreBackupTest, GoodStoreHasNoFaultsWhileItIsInUse) {
  const StoreReport report = Check(Path());
  EXPECT_EQ(report.fault_count, 0) << report.faults.front();
  EXPECT_EQ(report.revision, 41);
  EXPECT_EQ(report.objects, 29);
  EXPECT_EQ(report.revisions, 41);
  ASSERT_TRUE(store_->Compact(41).ok());
  ASSERT_TRUE(store_->Write(MakePut("/k/new", "v"), {}));
  loop_.RunUntil([&] { return store_->CommittedRevision() == 42; });
  EXPECT_EQ(Check(Path()).fault_count, 0);
}

TEST_F(StoreBackupTest, FindsAGapInTheLog) {
  Tamper("DELETE FROM log WHERE revision = 7");
  ExpectFault("revisions 7 to 7 are missing");
}
TEST_F(StoreBackupTest, FindsARevisionThatIsNotItsOwn) {
  Tamper("UPDATE log SET value = (SELECT value FROM log WHERE revision = 9) WHERE revision = 8");
  ExpectFault("does not carry its own revision");
}
TEST_F(StoreBackupTest, FindsASecondCreation) {
  Tamper("UPDATE log SET create_revision = 33 WHERE revision = 33");
  ExpectFault("was created twice");
}
TEST_F(StoreBackupTest, FindsADeletionOfNothing) {
  Tamper("UPDATE log SET key = '/other' WHERE revision = 41");
  ExpectFault("is a deletion of nothing");
}
TEST_F(StoreBackupTest, FindsAnIndexThatDisagrees) {
  Tamper(
      "PRAGMA writable_schema=ON; "
      "UPDATE sqlite_schema SET sql = 'CREATE INDEX log_by_key ON log(key, revision, slot)' "
      "WHERE name = 'log_by_key'");
  EXPECT_GT(Check(Path()).fault_count, 0);
}
TEST_F(StoreBackupTest, AsksTheOwnerAboutEveryValue) {
  const auto report = *CheckStore(Path(),
                                  [](std::string_view key, std::string_view) -> Status {
                                    if (key != "/k/5") return Status::Ok();
                                    return Error(Reason::kInvalid, "not mine");
                                  },
                                  {});
  EXPECT_EQ(report.fault_count, 2);  // two revisions
  EXPECT_TRUE(report.faults.front().contains("\"/k/5\" at revision 6: not mine"));
}
TEST_F(StoreBackupTest, NamesAFileThatIsNoStore) {
  std::ofstream(folder_.File("text")) << std::string(5000, 'x');
  for (const std::string& path : {folder_.File("text"), folder_.File("absent")}) {
    const auto report = CheckStore(path, {}, {});
    ASSERT_FALSE(report.has_value());
    EXPECT_TRUE(report.error().message().contains(path)) << report.error().message();
  }
  const std::string absent = CheckStore(folder_.File("absent"), {}, {}).error().message();
  EXPECT_TRUE(absent.contains("does not exist")) << absent;
  const std::string text = CheckStore(folder_.File("text"), {}, {}).error().message();
  EXPECT_TRUE(text.contains("is not a muster store")) << text;
}

TEST_F(StoreBackupTest, BackupOfAStoreInUseIsRestoredWhole) {
  int64_t steps = 0;
  const StoreReport saved = *BackUpStore(Path(), Backup(), {{"pki/ca.crt", "certificate"}}, {},
                                         [&](int64_t, int64_t) { ++steps; });
  EXPECT_EQ(saved.revision, 41);
  struct stat info{};
  ASSERT_EQ(stat(Backup().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_FALSE(fs::exists(Backup() + ".partial"));
  ASSERT_TRUE(store_->Write(MakePut("/later", "v"), {}));

  const std::string path = folder_.File("new/muster.db");
  const StoreReport restored = *RestoreStore(Backup(), path, {}, {});
  EXPECT_EQ(restored.revision, 41 + kRestoreJump);
  EXPECT_EQ(Check(path).fault_count, 0);
  const std::unique_ptr<Store> store = *OpenSqliteStore(loop_, path);
  EXPECT_EQ(store->CommittedRevision(), 41 + kRestoreJump);
  EXPECT_EQ(store->Range("/", "", 0, 0)->entries.size(), 29U);
  EXPECT_EQ(store->Get("/later"), nullptr);
  // Who saw what the backup does not have, or the past before it, lists again.
  for (const Revision seen : {Revision{41}, Revision{42}})
    EXPECT_EQ(store->Watch("/", seen, {}).error().reason(), Reason::kExpired);
  ASSERT_TRUE(store->Write(MakePut("/k/1", "v"), {}));
  loop_.RunUntil([&] { return store->CommittedRevision() == 42 + kRestoreJump; });
  const std::vector<ExtraFile> files = *ReadExtraFiles(Backup());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].name, "pki/ca.crt");
  EXPECT_EQ(files[0].content, "certificate");
}

TEST_F(StoreBackupTest, NeverReplacesAFile) {
  std::ofstream(Backup()) << "mine";
  EXPECT_EQ(BackUpStore(Path(), Backup(), {}, {}, {}).error().reason(), Reason::kConflict);
  EXPECT_EQ(fs::file_size(Backup()), 4U);
}

TEST_F(StoreBackupTest, DamagedBackupIsNotRestored) {
  ASSERT_TRUE(BackUpStore(Path(), Backup(), {}, {}, {}).has_value());
  {
    Database database;
    ASSERT_TRUE(database.Open(Backup()).ok());
    ASSERT_TRUE(database.Exec("DELETE FROM log WHERE revision = 7").ok());
  }
  const auto restored = RestoreStore(Backup(), folder_.File("new/muster.db"), {}, {});
  ASSERT_FALSE(restored.has_value());
  EXPECT_TRUE(restored.error().message().contains("revisions 7 to 7 are missing"));
  EXPECT_FALSE(fs::exists(folder_.File("new")));
}

}  // namespace
}  // namespace muster::store
