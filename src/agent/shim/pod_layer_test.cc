#include "agent/shim/pod_layer.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/runtime/files.h"

namespace muster::agent {
namespace {

// A node with a few files, and a layer beside it.
class PodLayer : public testing::Test {
 protected:
  PodLayer() {
    char path[] = "/tmp/agent-layer-XXXXXX";
    dir_ = mkdtemp(path);
    for (const char* dir : {"/etc", "/root", "/data/home", "/var/log", "/opt/tool", "/usr/bin"})
      EXPECT_TRUE(MakeDirs(Node(dir)).ok());
    for (const char* file : {"/etc/shadow", "/etc/gshadow", "/etc/key", "/usr/bin/python3"})
      EXPECT_TRUE(WriteFile(Node(file), "node").ok());
  }
  ~PodLayer() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  void SetUp() override {
    if (setxattr(dir_.c_str(), "trusted.muster.test", "y", 1, 0) != 0)
      GTEST_SKIP() << "this user or file system has no trusted attributes";
  }

  std::string Node(const std::string& path) const { return dir_ + "/node" + path; }
  std::string Layer(const std::string& path) const { return dir_ + "/layer" + path; }
  Status Build(const PodLayerContents& contents) const {
    return BuildPodLayer(dir_ + "/layer", contents, dir_ + "/node");
  }
  struct stat Info(const std::string& path) const {
    struct stat info = {};
    EXPECT_EQ(lstat(Layer(path).c_str(), &info), 0) << path;
    return info;
  }
  bool IsOpaque(const std::string& path) const {
    char value = 0;
    return getxattr(Layer(path).c_str(), "trusted.overlay.opaque", &value, 1) == 1 && value == 'y';
  }
  bool IsWhiteout(const std::string& path) const {
    const struct stat info = Info(path);
    return S_ISCHR(info.st_mode) && info.st_rdev == makedev(0, 0);
  }

  std::string dir_;
};

TEST_F(PodLayer, HidesFoldersAndWhatOnlyRootMayRead) {
  ASSERT_TRUE(Build({.hidden = {"/opt/tool"}, .secrets = {"/etc/key", "/etc/gone"}}).ok());
  EXPECT_TRUE(IsOpaque("/root"));
  EXPECT_EQ(Info("/root").st_mode & 07777, 0700u);
  EXPECT_TRUE(IsOpaque("/var/log"));
  EXPECT_TRUE(IsOpaque("/opt/tool"));
  EXPECT_FALSE(IsOpaque("/opt"));
  EXPECT_TRUE(IsWhiteout("/etc/key"));
  EXPECT_TRUE(IsWhiteout("/etc/gshadow"));
  EXPECT_FALSE(PathExists(Layer("/etc/gone")));
  EXPECT_FALSE(PathExists(Layer("/var/lib/kubelet")));  // the node has none
  EXPECT_EQ(ReadSmallFile(Layer("/etc/shadow")).value_or("").substr(0, 7), "root:*:");
  EXPECT_EQ(Info("/etc/shadow").st_mode & 07777, 0600u);
}

TEST_F(PodLayer, HidesWhatALinkLeadsTo) {
  ASSERT_EQ(symlink("data/home", Node("/home").c_str()), 0);
  ASSERT_TRUE(Build({}).ok());
  EXPECT_TRUE(IsOpaque("/data/home"));
  EXPECT_FALSE(PathExists(Layer("/home")));
  // A link on the way counts as much as one at the end.
  ASSERT_EQ(symlink("data", Node("/link").c_str()), 0);
  ASSERT_TRUE(MakeDirs(Node("/data/pods")).ok());
  ASSERT_TRUE(Build({.hidden = {"/link/pods"}}).ok());
  EXPECT_TRUE(IsOpaque("/data/pods"));
}

TEST_F(PodLayer, RefusesToHideTheRootFolder) {
  ASSERT_EQ(symlink(".", Node("/all").c_str()), 0);
  const Status status = Build({.hidden = {"/all"}});
  EXPECT_EQ(status.message(), "/all is the root folder; it cannot be hidden");
}

TEST_F(PodLayer, KeepsModesAndOwners) {
  ASSERT_TRUE(MakeDirs(Node("/srv/shared/secret")).ok());
  ASSERT_EQ(chown(Node("/srv/shared").c_str(), 12, 34), 0);
  ASSERT_EQ(chmod(Node("/srv/shared").c_str(), 02775), 0);
  ASSERT_EQ(chown(Node("/srv/shared/secret").c_str(), 5, 6), 0);
  ASSERT_EQ(chmod(Node("/srv/shared/secret").c_str(), 03770), 0);
  ASSERT_TRUE(MakeDirs(Node("/tmp")).ok());
  const mode_t before = umask(077);
  // Twice: a pod's preparation may be repeated.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Build({.secrets = {"/srv/shared/secret"}}).ok());
  EXPECT_EQ(umask(before), 077u);
  const struct stat shared = Info("/srv/shared");
  EXPECT_EQ(shared.st_mode & 07777, 02775u);
  EXPECT_EQ(shared.st_uid, 12u);
  EXPECT_EQ(shared.st_gid, 34u);
  EXPECT_FALSE(IsOpaque("/srv/shared"));
  const struct stat secret = Info("/srv/shared/secret");
  EXPECT_EQ(secret.st_mode & 07777, 03770u);
  EXPECT_EQ(secret.st_uid, 5u);
  EXPECT_TRUE(IsOpaque("/srv/shared/secret"));
  EXPECT_EQ(Info("/tmp").st_mode & 07777, 01777u);
}

TEST_F(PodLayer, PutsThePodsFilesInPlaceOfTheNodes) {
  const PodLayerContents contents = {.secrets = {"/etc/key"}, .files = {{"/etc/key", "mine"}}};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Build(contents).ok());
  EXPECT_EQ(ReadSmallFile(Layer("/etc/key")).value_or(""), "mine");
  EXPECT_EQ(Info("/etc/key").st_mode & 07777, 0644u);
}

TEST_F(PodLayer, OffersPythonWhereThereIsOnlyPython3) {
  ASSERT_TRUE(Build({}).ok());
  char target[64] = {};
  EXPECT_GT(readlink(Layer("/usr/local/bin/python").c_str(), target, sizeof target - 1), 0);
  EXPECT_STREQ(target, "/usr/bin/python3");
  ASSERT_TRUE(RemoveTree(dir_ + "/layer").ok());
  ASSERT_TRUE(WriteFile(Node("/usr/bin/python"), "").ok());
  ASSERT_TRUE(Build({}).ok());
  EXPECT_FALSE(PathExists(Layer("/usr/local/bin/python")));
}

}  // namespace
}  // namespace muster::agent
