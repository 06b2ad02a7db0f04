#include "agent/volumes/volume_group.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/runtime/files.h"
#include "json/parse.h"

namespace muster::agent {
namespace {

TEST(VolumeGroup, IsWhatThePodAsksFor) {
  EXPECT_FALSE(VolumeGroupOf(json::Obj()).has_value());
  const auto group = VolumeGroupOf(*json::Parse(
      R"({"spec":{"securityContext":{"fsGroup":2000,"fsGroupChangePolicy":"OnRootMismatch"}}})"));
  EXPECT_EQ(group->gid, 2000u);
  EXPECT_TRUE(group->only_on_mismatch);
  EXPECT_EQ(VolumeGroupOf(*json::Parse(R"({"spec":{"securityContext":{"fsGroup":0}}})"))->gid, 0u);
}

class VolumeGroupTest : public ::testing::Test {
 protected:
  VolumeGroupTest() {
    char path[] = "/tmp/agent-group-XXXXXX";
    dir_ = mkdtemp(path);
  }
  ~VolumeGroupTest() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
    ASSERT_TRUE(MakeDirs(dir_ + "/v/sub").ok());
    ASSERT_TRUE(WriteFile(dir_ + "/v/sub/secret", "x", 0400).ok());
    ASSERT_TRUE(WriteFile(dir_ + "/outside", "x", 0600).ok());
    ASSERT_EQ(symlink("../outside", (dir_ + "/v/link").c_str()), 0);
  }
  // "2000 640"
  std::string Of(const std::string& name) {
    struct stat info = {};
    EXPECT_EQ(lstat((dir_ + "/" + name).c_str(), &info), 0) << name;
    return fmt::format("{} {:o}", info.st_gid, info.st_mode & 07777);
  }

  std::string dir_;
};

TEST_F(VolumeGroupTest, TheGroupMayUseAllOfIt) {
  ASSERT_TRUE(SetVolumeGroup(dir_ + "/v", {2000, false}, false).ok());
  EXPECT_EQ(Of("v"), "2000 2775");
  EXPECT_EQ(Of("v/sub"), "2000 2775");
  EXPECT_EQ(Of("v/sub/secret"), "2000 660");
}

TEST_F(VolumeGroupTest, OrReadIt) {
  ASSERT_TRUE(SetVolumeGroup(dir_ + "/v", {2000, false}, true).ok());
  EXPECT_EQ(Of("v/sub"), "2000 2755");
  EXPECT_EQ(Of("v/sub/secret"), "2000 440");
}

TEST_F(VolumeGroupTest, LinksLeadNowhere) {
  ASSERT_TRUE(SetVolumeGroup(dir_ + "/v", {2000, false}, false).ok());
  EXPECT_EQ(Of("outside"), "0 600");
  EXPECT_TRUE(Of("v/link").starts_with("2000 "));
}

TEST_F(VolumeGroupTest, OnlyWhereTheRootIsNotAsItShouldBe) {
  const VolumeGroup group = {2000, true};
  ASSERT_TRUE(SetVolumeGroup(dir_ + "/v", group, false).ok());
  EXPECT_EQ(Of("v/sub/secret"), "2000 660");
  ASSERT_TRUE(WriteFile(dir_ + "/v/new", "x", 0600).ok());
  ASSERT_EQ(chown((dir_ + "/v/new").c_str(), 0, 0), 0);
  ASSERT_TRUE(SetVolumeGroup(dir_ + "/v", group, false).ok());
  EXPECT_EQ(Of("v/new"), "0 600");
  ASSERT_TRUE(SetVolumeGroup(dir_ + "/v", {2000, false}, false).ok());
  EXPECT_EQ(Of("v/new"), "2000 660");
}

}  // namespace
}  // namespace muster::agent
