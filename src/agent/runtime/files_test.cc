#include "agent/runtime/files.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/runtime/mounts_test_support.h"
#include "agent/runtime/unique_fd.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

class Files : public ::testing::Test {
 protected:
  Files() {
    char path[] = "/tmp/files-test-XXXXXX";
    dir_ = mkdtemp(path);
  }
  ~Files() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  std::string dir_;
};

TEST_F(Files, FoldersAreSpreadWhereTheFileSystemKnowsHow) {
  SpreadFolders(dir_ + "/absent");
  SpreadFolders(dir_);
  struct statfs info = {};
  ASSERT_EQ(statfs(dir_.c_str(), &info), 0);
  if (info.f_type != EXT4_SUPER_MAGIC) GTEST_SKIP() << "/tmp is not on ext4";
  UniqueFd dir(open(dir_.c_str(), O_RDONLY | O_DIRECTORY));
  int flags = 0;
  ASSERT_EQ(ioctl(dir.get(), FS_IOC_GETFLAGS, &flags), 0);
  EXPECT_NE(flags & FS_TOPDIR_FL, 0);
}

// `depth` folders, each in the one before, with a file in each.
void MakeDeep(const std::string& dir, int depth) {
  UniqueFd at(open(dir.c_str(), O_PATH | O_DIRECTORY));
  for (int i = 0; i < depth; ++i) {
    ASSERT_EQ(mkdirat(at.get(), "d", 0755), 0);
    UniqueFd next(openat(at.get(), "d", O_PATH | O_DIRECTORY));
    ASSERT_TRUE(next.valid());
    UniqueFd file(openat(next.get(), "file", O_CREAT | O_WRONLY, 0644));
    ASSERT_TRUE(file.valid());
    at = std::move(next);
  }
}

// A pod can make a path that no path name can hold; its removal must not cost a descriptor or a
// stack frame per level.
TEST_F(Files, RemoveTreeOfAnyDepthWithFewDescriptors) {
  MakeDeep(dir_, 5000);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {32, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const Status status = RemoveTree(dir_ + "/d");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(ListDir(dir_).empty());
}

TEST_F(Files, RemoveTreeThatIsWideAndDeep) {
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(mkdir(fmt::format("{}/{}", dir_, i).c_str(), 0755), 0);
  for (int i = 0; i < 20; ++i) MakeDeep(fmt::format("{}/{}", dir_, i), 10);
  ASSERT_TRUE(MakeDirs(dir_ + "/a/..moved-0").ok());
  ASSERT_TRUE(MakeDirs(dir_ + "/..moved-0/x/y").ok());
  EXPECT_TRUE(RemoveTree(dir_).ok());
  EXPECT_FALSE(PathExists(dir_));
}

TEST_F(Files, RemoveTreeDoesNotFollowLinks) {
  ASSERT_TRUE(MakeDirs(dir_ + "/kept").ok());
  ASSERT_TRUE(WriteFile(dir_ + "/kept/file", "x").ok());
  ASSERT_TRUE(MakeDirs(dir_ + "/gone/below").ok());
  ASSERT_EQ(symlink("../../kept", (dir_ + "/gone/below/link").c_str()), 0);
  ASSERT_EQ(symlink("loop", (dir_ + "/gone/loop").c_str()), 0);
  ASSERT_EQ(symlink(".", (dir_ + "/gone/self").c_str()), 0);
  EXPECT_TRUE(RemoveTree(dir_ + "/gone").ok());
  EXPECT_EQ(ListDir(dir_), std::vector<std::string>{"kept"});
  EXPECT_TRUE(PathExists(dir_ + "/kept/file"));
}

using RemoveTreeBesideMounts = MountTest;

// Of users, say: an export of a server, or a folder of this very disk.
TEST_F(RemoveTreeBesideMounts, TouchesNothingThatIsMounted) {
  const std::string users = Users();
  for (const char* place : {"tree", "tree/a", "tree/a/b", "tree/a/b/c/d"}) {
    ASSERT_TRUE(MakeDirs(dir_ + "/tree/other").ok());
    const std::string other = Tmpfs(place);
    const Status of_other = RemoveTree(dir_ + "/tree");
    EXPECT_FALSE(of_other.ok()) << place;
    EXPECT_EQ(Mounts(), 1u) << place;
    EXPECT_EQ(ReadSmallFile(MountsBelow(dir_)->at(0).point + "/file").value_or(""), "of users");
    ASSERT_EQ(umount(MountsBelow(dir_)->at(0).point.c_str()), 0);
    Bind(users, place);
    const Status of_same = RemoveTree(dir_ + "/tree");
    EXPECT_FALSE(of_same.ok()) << place;
    EXPECT_TRUE(UsersAreThere()) << place;
    ASSERT_EQ(umount(MountsBelow(dir_)->at(0).point.c_str()), 0);
    EXPECT_TRUE(RemoveTree(dir_ + "/tree").ok()) << place;
  }
  Bind(users, "tree");
  EXPECT_EQ(RemoveTree(dir_ + "/tree").message(),
            dir_ + "/tree is a mount point; what is mounted is left alone");
}

TEST_F(Files, ReadTailGivesTheLastBytes) {
  const std::string path = dir_ + "/file";
  ASSERT_TRUE(WriteFile(path, "0123456789").ok());
  EXPECT_EQ(ReadTail(path, 4).value_or("?"), "6789");
  EXPECT_EQ(ReadTail(path, 40).value_or("?"), "0123456789");
  EXPECT_FALSE(ReadTail(dir_ + "/absent", 4).has_value());
}

}  // namespace
}  // namespace muster::agent
