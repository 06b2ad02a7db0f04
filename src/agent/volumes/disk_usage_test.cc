#include "agent/volumes/disk_usage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/files.h"
#include "agent/runtime/unique_fd.h"
#include "json/parse.h"

namespace muster::agent {
namespace {

constexpr int64_t kMiB = 1 << 20;

class DiskUsageTest : public ::testing::Test {
 protected:
  DiskUsageTest() {
    char path[] = "/tmp/disk-usage-XXXXXX";
    dir_ = mkdtemp(path);
  }
  ~DiskUsageTest() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  std::string dir_;
};

json::Value Pod(const std::string& volumes, const std::string& limits) {
  return *json::Parse(R"({"metadata":{"uid":"u"},"spec":{"volumes":[)" + volumes +
                      R"(],"containers":[{"name":"c","resources":{"limits":{)" + limits + "}}}]}}");
}

TEST_F(DiskUsageTest, CountsBlocksOnceAndNoLinks) {
  ASSERT_TRUE(WriteFile(dir_ + "/a", std::string(kMiB, 'x')).ok());
  ASSERT_EQ(link((dir_ + "/a").c_str(), (dir_ + "/same").c_str()), 0);
  ASSERT_EQ(symlink("/", (dir_ + "/root").c_str()), 0);
  ASSERT_TRUE(MakeDirs(dir_ + "/sub").ok());
  ASSERT_TRUE(WriteFile(dir_ + "/sub/b", std::string(kMiB, 'x')).ok());
  // A file with a hole takes little.
  ASSERT_TRUE(WriteFile(dir_ + "/hole", "").ok());
  ASSERT_EQ(truncate((dir_ + "/hole").c_str(), 100 * kMiB), 0);
  const int64_t bytes = DiskUsage(dir_);
  EXPECT_GE(bytes, 2 * kMiB);
  EXPECT_LT(bytes, 3 * kMiB);
  EXPECT_EQ(DiskUsage(dir_ + "/absent"), 0);
}

TEST_F(DiskUsageTest, CannotBeDeceivedByDepth) {
  UniqueFd at(open(dir_.c_str(), O_PATH | O_DIRECTORY));
  for (int i = 0; i < kMaxUsageDepth; ++i) {
    ASSERT_EQ(mkdirat(at.get(), "d", 0755), 0);
    at = UniqueFd(openat(at.get(), "d", O_PATH | O_DIRECTORY));
  }
  EXPECT_EQ(DiskUsage(dir_), kUnmeasurable);
  EXPECT_LT(DiskUsage(dir_ + "/d"), kUnmeasurable);
}

TEST(DiskFault, SaysWhichLimitIsExceeded) {
  const json::Value none = Pod(R"({"name":"v","emptyDir":{}})", "");
  EXPECT_FALSE(LimitsDisk(none));
  EXPECT_EQ(DiskFault(none, {{{"v", kUnmeasurable}}, {{"c", kUnmeasurable}}}), "");

  const json::Value volume = Pod(R"({"name":"v","emptyDir":{"sizeLimit":"1Mi"}})", "");
  EXPECT_TRUE(LimitsDisk(volume));
  EXPECT_EQ(DiskFault(volume, {{{"v", kMiB}}, {{"c", 5 * kMiB}}}), "");
  EXPECT_EQ(DiskFault(volume, {{{"v", kMiB + 1}}, {}}),
            "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");
  EXPECT_NE(DiskFault(volume, {{{"v", kUnmeasurable}}, {}}), "");

  const json::Value memory =
      Pod(R"({"name":"v","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}})", "");
  EXPECT_FALSE(LimitsDisk(memory));

  const json::Value container =
      Pod(R"({"name":"v","emptyDir":{}})", R"("ephemeral-storage":"2Mi")");
  EXPECT_TRUE(LimitsDisk(container));
  EXPECT_EQ(DiskFault(container, {{{"v", kMiB}}, {{"c", kMiB}}}), "");
  EXPECT_EQ(DiskFault(container, {{{"v", 2 * kMiB}}, {{"c", kMiB}}}),
            "Pod ephemeral local storage usage exceeds the total limit of containers 2048Ki. ");
}

TEST(DiskFault, SaysWhatAPodHadOnAFullDisk) {
  EXPECT_EQ(LowDiskMessage(Pod("", ""), {{}, {{"c", kMiB}}}, 4 * kMiB, kMiB),
            "The node was low on resource: ephemeral-storage. Threshold quantity: 4096Ki, "
            "available: 1024Ki. Container c was using 1024Ki, request is 0, has larger consumption "
            "of ephemeral-storage. ");
}

}  // namespace
}  // namespace muster::agent
