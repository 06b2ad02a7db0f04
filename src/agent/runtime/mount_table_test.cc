#include "agent/runtime/mount_table.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/runtime/mounts_test_support.h"

namespace muster::agent {
namespace {

TEST(MountInfo, ReadsWhatTheKernelWrites) {
  const std::vector<MountEntry> mounts = ParseMountInfo(
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "40 22 0:50 / /a\\040b\\134c rw master:1 propagate_from:2 - nfs4 s:/with\\040space "
      "rw,vers=4\n"
      "41 22 0:51 / /plain rw - tmpfs tmpfs rw\n"
      "short line\n");
  ASSERT_EQ(mounts.size(), 3u);
  EXPECT_EQ(mounts[0].point, "/");
  EXPECT_EQ(mounts[1].point, "/a b\\c");
  EXPECT_EQ(mounts[1].type, "nfs4");
  EXPECT_EQ(mounts[1].source, "s:/with space");
  EXPECT_EQ(mounts[2].type, "tmpfs");
}

using MountTable = MountTest;

TEST_F(MountTable, FindsWhatIsMountedHere) {
  Tmpfs("a");
  Tmpfs("a/b");
  Tmpfs("ab");
  ASSERT_EQ(symlink("a", (dir_ + "/link").c_str()), 0);
  EXPECT_EQ(MountsBelow(dir_ + "/a")->size(), 2u) << "and not ab";
  EXPECT_EQ(MountsBelow(dir_)->size(), 3u);
  EXPECT_EQ(MountsBelow(dir_ + "/absent")->size(), 0u);
  EXPECT_TRUE(*IsMountPoint(dir_ + "/a"));
  EXPECT_TRUE(*IsMountPoint(dir_ + "/link/b")) << "by way of a link";
  EXPECT_FALSE(*IsMountPoint(dir_ + "/absent/x"));
  EXPECT_FALSE(*IsMountPoint(dir_));
  EXPECT_TRUE(*IsMountPoint("/proc"));
  EXPECT_FALSE(IsMountPoint("relative").has_value());
}

}  // namespace
}  // namespace muster::agent
