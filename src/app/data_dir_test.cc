#include "app/data_dir.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

class DataDir : public ::testing::Test {
 protected:
  DataDir() {
    char name[] = "/tmp/muster-data-dir-XXXXXX";
    root_ = mkdtemp(name);
  }
  ~DataDir() override { fs::remove_all(root_); }
  static void Touch(const std::string& path) { std::ofstream(path) << "x"; }

  std::string root_;
};

TEST_F(DataDir, IsMadeUsedAgainAndPurged) {
  const std::string dir = root_ + "/new";
  ASSERT_TRUE(MakeDataDir(dir).ok());
  ASSERT_TRUE(MakeDataDir(dir).ok());
  EXPECT_TRUE(IsDataDir(dir));
  struct stat info = {};
  ASSERT_EQ(stat(dir.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  Touch(dir + "/store/muster.db");
  Touch(dir + "/kubeconfig");
  EXPECT_TRUE(PurgeDataDir(dir).ok());
  EXPECT_FALSE(fs::exists(dir));
}

// A user who may not look into root's directory is told so, not that it is nobody's.
// A volume that could not be unmounted, say.
TEST_F(DataDir, PurgeStopsAtWhatIsMounted) {
  if (unshare(CLONE_NEWNS) != 0) GTEST_SKIP() << "this user may not mount";
  ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  const std::string dir = root_ + "/new", users = root_ + "/users";
  const std::string volume = dir + "/pods/u/volumes/v";
  ASSERT_TRUE(MakeDataDir(dir).ok());
  fs::create_directories(users);
  fs::create_directories(volume);
  Touch(users + "/file");
  ASSERT_EQ(mount(users.c_str(), volume.c_str(), nullptr, MS_BIND, nullptr), 0);
  EXPECT_FALSE(PurgeDataDir(dir).ok());
  EXPECT_TRUE(fs::exists(users + "/file"));
  EXPECT_TRUE(IsDataDir(dir)) << "so that it can be tried again";
  // What is deep in a tree may have been moved up in it.
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(dir))
    (void)umount(entry.path().c_str());
  ASSERT_TRUE(PurgeDataDir(dir).ok());
  EXPECT_FALSE(fs::exists(dir));
  EXPECT_TRUE(fs::exists(users + "/file"));
}

TEST_F(DataDir, OfAnotherUserIsSaidToBe) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const std::string dir = root_ + "/roots";
  ASSERT_TRUE(MakeDataDir(dir).ok());
  EXPECT_TRUE(CheckOwner(dir).ok());
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  ASSERT_EQ(seteuid(65534), 0);
  const Status hidden = CheckOwner(dir);
  const Status none = CheckOwner(root_ + "/none");
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(hidden.reason(), Reason::kForbidden);
  EXPECT_NE(hidden.message().find("of user 0"), std::string::npos) << hidden.message();
  EXPECT_TRUE(none.ok());
  ASSERT_EQ(chown((dir + "/muster-data-directory").c_str(), 65534, 65534), 0);
  EXPECT_EQ(CheckOwner(dir).reason(), Reason::kForbidden);
}

TEST_F(DataDir, KeepsTheNameOfItsNode) {
  const std::string dir = root_ + "/new";
  ASSERT_TRUE(MakeDataDir(dir).ok());
  std::string name = "first";
  ASSERT_TRUE(KeepNodeName(dir, /*given=*/false, name).ok());
  EXPECT_EQ(name, "first");
  name = "the-machine-has-another-name-now";
  ASSERT_TRUE(KeepNodeName(dir, /*given=*/false, name).ok());
  EXPECT_EQ(name, "first");
  EXPECT_TRUE(KeepNodeName(dir, /*given=*/true, name).ok());
  name = "second";
  const Status refused = KeepNodeName(dir, /*given=*/true, name);
  EXPECT_EQ(refused.reason(), Reason::kConflict);
  for (const char* word : {"second", "first", "down --purge"})
    EXPECT_NE(refused.message().find(word), std::string::npos) << refused.message();
}

// As a mount point: whoever put it there keeps it.
TEST_F(DataDir, BehindALinkIsEmptiedAndStays) {
  const std::string link = root_ + "/link";
  fs::create_directory(root_ + "/disk");
  fs::create_directory_symlink(root_ + "/disk", link);
  ASSERT_TRUE(MakeDataDir(link).ok());
  Touch(link + "/store/muster.db");
  const Status purged = PurgeDataDir(link);
  EXPECT_TRUE(purged.ok()) << purged.message();
  EXPECT_TRUE(fs::is_empty(root_ + "/disk"));
  EXPECT_TRUE(MakeDataDir(link).ok());
  Touch(link + "/notes.txt");
  EXPECT_FALSE(PurgeDataDir(link).ok());
  EXPECT_TRUE(fs::exists(root_ + "/disk/notes.txt"));
}

TEST_F(DataDir, ForeignFilesAreNeverTouched) {
  Touch(root_ + "/theirs");
  fs::permissions(root_, fs::perms(0755));
  const Status made = MakeDataDir(root_);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.message().find("not muster's"), std::string::npos) << made.message();
  EXPECT_EQ(fs::status(root_).permissions(), fs::perms(0755));
  EXPECT_FALSE(PurgeDataDir(root_).ok());
  EXPECT_TRUE(fs::exists(root_ + "/theirs"));
}

TEST_F(DataDir, AFileInItsPlaceIsNamed) {
  const std::string file = root_ + "/file", link = root_ + "/link";
  Touch(file);
  fs::create_symlink(root_ + "/nowhere", link);
  for (const std::string& dir : {file, file + "/data", file + "/data/below"}) {
    EXPECT_NE(CheckPlace(dir).message().find(file + " is a file, not a directory"),
              std::string::npos)
        << CheckPlace(dir).message();
    EXPECT_NE(MakeDataDir(dir).message().find("is a file"), std::string::npos);
  }
  EXPECT_NE(CheckPlace(link).message().find("link to what does not exist"), std::string::npos);
  EXPECT_TRUE(CheckPlace(root_ + "/new/deep").ok());
  EXPECT_FALSE(fs::exists(root_ + "/new"));
}

TEST_F(DataDir, BelongsToTheUserWhoMadeIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const std::string dir = root_ + "/theirs";
  EXPECT_TRUE(CheckOwner(dir).ok());  // nothing there
  ASSERT_TRUE(MakeDataDir(dir).ok());
  EXPECT_TRUE(CheckOwner(dir).ok());
  ASSERT_EQ(chown((dir + "/muster-data-directory").c_str(), 65534, 65534), 0);
  const Status status = CheckOwner(dir);
  EXPECT_EQ(status.reason(), Reason::kForbidden);
  EXPECT_NE(status.message().find("of user 65534"), std::string::npos) << status.message();
}

TEST_F(DataDir, FilesAddedLaterSurviveAPurge) {
  const std::string dir = root_ + "/mixed";
  ASSERT_TRUE(MakeDataDir(dir).ok());
  Touch(dir + "/notes.txt");
  const Status purged = PurgeDataDir(dir);
  EXPECT_FALSE(purged.ok());
  EXPECT_TRUE(fs::exists(dir + "/notes.txt"));
  EXPECT_FALSE(fs::exists(dir + "/store"));
}

}  // namespace
}  // namespace muster::app
