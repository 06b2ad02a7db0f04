#include "agent/node/node_secrets.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

class NodeSecretsTest : public ::testing::Test {
 protected:
  NodeSecretsTest() {
    char path[] = "/tmp/node-secrets-XXXXXX";
    root_ = mkdtemp(path);
  }
  ~NodeSecretsTest() override { EXPECT_TRUE(RemoveTree(root_).ok()); }

  void File(const std::string& path, mode_t mode) {
    const std::string full = root_ + path;
    ASSERT_TRUE(MakeDirs(full.substr(0, full.find_last_of('/'))).ok());
    ASSERT_TRUE(WriteFile(full, "x").ok());
    ASSERT_EQ(chmod(full.c_str(), mode), 0);
  }
  std::string root_;
};

TEST_F(NodeSecretsTest, FindsWhatOnlyRootMayRead) {
  File("/swapfile", 0600);
  File("/readme", 0644);
  File("/etc/passwd", 0644);
  File("/etc/shadow", 0640);
  File("/etc/a/b/c/key.pem", 0400);
  File("/var/backups/shadow.bak", 0600);
  File("/etc/private/readable", 0644);
  ASSERT_EQ(chmod((root_ + "/etc/private").c_str(), 0700), 0);
  ASSERT_EQ(symlink("/etc/shadow", (root_ + "/etc/link").c_str()), 0);
  EXPECT_EQ(FindNodeSecrets(root_),
            (std::vector<std::string>{"/swapfile", "/etc/a/b/c/key.pem", "/etc/private",
                                      "/etc/shadow", "/var/backups/shadow.bak"}));
}

TEST_F(NodeSecretsTest, KeepsAtMostSoMany) {
  for (size_t i = 0; i < kMaxNodeSecrets + 10; ++i) File(fmt::format("/etc/d/{}", i), 0600);
  EXPECT_EQ(FindNodeSecrets(root_).size(), kMaxNodeSecrets);
}

TEST_F(NodeSecretsTest, LooksAtThisMachine) {
  NodeSecrets secrets;
  const std::vector<std::string> paths = secrets.Paths();
  for (const std::string& path : paths) {
    struct stat info = {};
    if (lstat(path.c_str(), &info) != 0) continue;
    EXPECT_EQ(info.st_mode & S_IROTH, 0U) << path;
  }
  EXPECT_EQ(secrets.Paths(), paths);
}

}  // namespace
}  // namespace muster::agent
