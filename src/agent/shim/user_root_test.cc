#include "agent/shim/user_root.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/runtime/files.h"
#include "agent/shim/pod_layer.h"

namespace muster::agent {
namespace {

using Paths = std::vector<std::string>;

class UserRoot : public testing::Test {
 protected:
  UserRoot() {
    char path[] = "/tmp/agent-user-root-XXXXXX";
    dir_ = mkdtemp(path);
    for (const char* file : {"/etc/passwd", "/usr/bin/sh", "/home/ann/.ssh/key", "/proc/1/status",
                             "/var/lib/dpkg/status", "/var/lib/lxcfs/cpuinfo", "/var/lib/big",
                             "/var/lib/secret", "/data/set", "/vmlinuz"}) {
      const std::string full = Node(file);
      EXPECT_TRUE(MakeDirs(full.substr(0, full.find_last_of('/'))).ok());
      EXPECT_TRUE(WriteFile(full, file).ok());
    }
    EXPECT_TRUE(MakeDirs(Node("/srv"), 0750).ok());
    EXPECT_EQ(symlink("usr/bin", Node("/bin").c_str()), 0);
    EXPECT_EQ(symlink("dpkg", Node("/var/lib/old").c_str()), 0);
    EXPECT_EQ(chmod(Node("/var/lib/secret").c_str(), 0640), 0);
    EXPECT_EQ(truncate(Node("/var/lib/big").c_str(), kMaxCopiedFileBytes + 1), 0);
  }
  ~UserRoot() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string Node(const std::string& path) const { return dir_ + "/node" + path; }
  std::string Layer(const std::string& path) const { return dir_ + "/layer" + path; }

  std::string dir_;
};

TEST_F(UserRoot, HasAnOverlayForEachFolderWithoutOtherFileSystems) {
  const UserRootPlan plan = PlanUserRoot({}, {"/home"}, dir_ + "/node");
  EXPECT_EQ(plan.overlays, (Paths{"/data", "/etc", "/usr", "/var"}));
  EXPECT_EQ(plan.folders, (Paths{"/home", "/proc", "/srv"}));
  EXPECT_EQ(plan.links, (Paths{"/bin"}));
  EXPECT_EQ(plan.files, Paths{});  // a kernel at the top is not for pods
}

TEST_F(UserRoot, TakesFoldersWithOtherFileSystemsApart) {
  const UserRootPlan plan =
      PlanUserRoot({"/data", "/usr", "/var/lib/lxcfs"}, {"/home"}, dir_ + "/node");
  // /data is another file system; /usr is, too, but the system's.
  EXPECT_EQ(plan.overlays, (Paths{"/etc", "/usr", "/var/lib/dpkg"}));
  EXPECT_EQ(plan.folders,
            (Paths{"/data", "/home", "/proc", "/srv", "/var", "/var/lib", "/var/lib/lxcfs"}));
  EXPECT_EQ(plan.links, (Paths{"/bin", "/var/lib/old"}));
  EXPECT_EQ(plan.files, (Paths{"/var/lib/big", "/var/lib/secret"}));
}

TEST_F(UserRoot, IsBounded) {
  for (size_t i = 0; i < kMaxUserOverlays; ++i) {
    ASSERT_TRUE(MakeDirs(Node(fmt::format("/x{}", i))).ok());
    ASSERT_TRUE(WriteFile(Node(fmt::format("/x{}/file", i)), "").ok());
  }
  const UserRootPlan plan = PlanUserRoot({}, {}, dir_ + "/node");
  EXPECT_EQ(plan.overlays.size(), kMaxUserOverlays);
  EXPECT_FALSE(plan.folders.empty());
}

TEST(MountPoints, AreReadWithoutThoseOfOurOwn) {
  EXPECT_EQ(MountPoints("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                        "23 22 0:5 / /proc rw - proc proc rw\n"
                        "24 22 0:6 / /media/my\\040disk rw - ext4 x rw\n"
                        "25 22 0:7 / /d/pods/1/sandbox rw - tmpfs x rw\n"
                        "broken\n",
                        "/d/pods/1"),
            (std::set<std::string>{"/proc", "/media/my disk"}));
}

TEST_F(UserRoot, IsTheLayerItself) {
  EXPECT_TRUE(MakeDirs(Layer("")).ok());
  if (setxattr(Layer("").c_str(), kUserOpaque, "n", 1, 0) != 0)
    GTEST_SKIP() << "this file system has no user attributes";
  PodLayerContents contents;
  contents.secrets = {"/var/lib/secret"};
  contents.user_root = PlanUserRoot({"/var/lib/lxcfs"}, HiddenFolders(contents), dir_ + "/node");
  ASSERT_TRUE(BuildPodLayer(dir_ + "/layer", contents, dir_ + "/node").ok());
  struct stat info = {};
  ASSERT_EQ(stat(Layer("/srv").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0750u);
  for (const char* dir : {"/etc", "/usr", "/home", "/proc", "/var/lib/dpkg", "/var/lib/lxcfs"})
    EXPECT_TRUE(stat(Layer(dir).c_str(), &info) == 0 && S_ISDIR(info.st_mode)) << dir;
  EXPECT_EQ(ListDir(Layer("/home")), Paths{});
  EXPECT_EQ(ListDir(Layer("/var/lib/lxcfs")), Paths{});
  char target[64] = {};
  EXPECT_GT(readlink(Layer("/bin").c_str(), target, sizeof target - 1), 0);
  EXPECT_STREQ(target, "usr/bin");
  char value = 0;
  EXPECT_EQ(getxattr(Layer("/home").c_str(), kUserOpaque, &value, 1), 1);
  EXPECT_EQ(value, 'y');
  // Too large to be copied; not for others.
  EXPECT_FALSE(PathExists(Layer("/var/lib/big")));
  EXPECT_NE(ReadSmallFile(Layer("/var/lib/secret")).value_or(""), "/var/lib/secret");
}

}  // namespace
}  // namespace muster::agent
