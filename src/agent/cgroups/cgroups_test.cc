#include "agent/cgroups/cgroups.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "agent/runtime/files.h"

namespace muster::agent {
namespace {

// A folder that looks like cgroup mounts; kernel files are plain files here.
class FakeRoot : public testing::Test {
 protected:
  FakeRoot() {
    char path[] = "/tmp/agent-cgroups-XXXXXX";
    root_ = mkdtemp(path);
    for (const char* dir : {"/cg/memory", "/cg/cpu", "/cg/pids", "/cg/unified"}) {
      EXPECT_TRUE(MakeDirs(root_ + dir).ok());
    }
  }
  ~FakeRoot() override { EXPECT_TRUE(RemoveTree(root_).ok()); }

  std::string Read(const std::string& path) {
    return ReadSmallFile(root_ + path).value_or("(absent)");
  }

  std::string root_;
};

constexpr const char* kV1 =
    "31 23 0:28 / /cg rw - tmpfs tmpfs rw\n"
    "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /cg/pids rw - cgroup cgroup rw,pids\n"
    "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";
constexpr const char* kV2 = "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";

TEST_F(FakeRoot, V1IsChosenWhereItHasTheControllers) {
  EXPECT_EQ(Cgroups::Detect(kV1, root_).mode(), Cgroups::Mode::kV1);
  EXPECT_EQ(Cgroups::Detect(kV2, root_).mode(), Cgroups::Mode::kV2);
  EXPECT_EQ(Cgroups::Detect("", root_).mode(), Cgroups::Mode::kNone);
  EXPECT_EQ(Cgroups::Detect("nonsense - \n - cgroup\n", root_).mode(), Cgroups::Mode::kNone);
}

TEST_F(FakeRoot, V1WritesLimitsIntoEachHierarchy) {
  const Cgroups cgroups = Cgroups::Detect(kV1, root_);
  const CgroupLimits limits = {
      .memory_bytes = 64 << 20, .cpu_limit_milli = 500, .cpu_request_milli = 250, .pids = 100};
  ASSERT_TRUE(cgroups.Create("muster/podu/main", limits).ok());
  EXPECT_EQ(Read("/cg/memory/muster/podu/main/memory.limit_in_bytes"), "67108864");
  EXPECT_EQ(Read("/cg/memory/muster/podu/main/memory.memsw.limit_in_bytes"), "67108864");
  EXPECT_EQ(Read("/cg/cpu/muster/podu/main/cpu.shares"), "256");
  EXPECT_EQ(Read("/cg/cpu/muster/podu/main/cpu.cfs_quota_us"), "50000");
  EXPECT_EQ(Read("/cg/pids/muster/podu/main/pids.max"), "100");
}

TEST_F(FakeRoot, V2WritesLimitsAndDelegatesControllers) {
  const Cgroups cgroups = Cgroups::Detect(kV2, root_);
  const CgroupLimits limits = {
      .memory_bytes = 1000, .cpu_limit_milli = 1500, .cpu_request_milli = 1000, .pids = 5};
  ASSERT_TRUE(cgroups.Create("muster/podu/main", limits).ok());
  const std::string dir = "/cg/unified/muster/podu/main";
  EXPECT_EQ(Read(dir + "/memory.max"), "1000");
  EXPECT_EQ(Read(dir + "/memory.swap.max"), "0");
  EXPECT_EQ(Read(dir + "/cpu.weight"), "39");
  EXPECT_EQ(Read(dir + "/cpu.max"), "150000 100000");
  EXPECT_EQ(Read(dir + "/pids.max"), "5");
  EXPECT_EQ(Read("/cg/unified/muster/podu/cgroup.subtree_control"), "+pids");
  EXPECT_EQ(Read(dir + "/cgroup.subtree_control"), "(absent)");
}

TEST_F(FakeRoot, CountsOomKillsInBothVersions) {
  const Cgroups v1 = Cgroups::Detect(kV1, root_);
  ASSERT_TRUE(v1.Create("muster/a", {}).ok());
  EXPECT_EQ(v1.OomKills("muster/a"), 0);
  ASSERT_TRUE(WriteFile(root_ + "/cg/memory/muster/a/memory.oom_control",
                        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
                  .ok());
  EXPECT_EQ(v1.OomKills("muster/a"), 2);
  const Cgroups v2 = Cgroups::Detect(kV2, root_);
  ASSERT_TRUE(v2.Create("muster/a", {}).ok());
  ASSERT_TRUE(
      WriteFile(root_ + "/cg/unified/muster/a/memory.events", "low 0\noom 3\noom_kill 1\n").ok());
  EXPECT_EQ(v2.OomKills("muster/a"), 1);
}

TEST_F(FakeRoot, TheWorkingSetLeavesOutWhatTheKernelCanDrop) {
  const Cgroups v1 = Cgroups::Detect(kV1, root_);
  ASSERT_TRUE(v1.Create("muster/a", {}).ok());
  const std::string dir = root_ + "/cg/memory/muster/a";
  ASSERT_TRUE(WriteFile(dir + "/memory.usage_in_bytes", "1000\n").ok());
  EXPECT_EQ(v1.WorkingSetBytes("muster/a"), 1000);
  ASSERT_TRUE(WriteFile(dir + "/memory.stat", "inactive_file 1\ntotal_inactive_file 300\n").ok());
  EXPECT_EQ(v1.WorkingSetBytes("muster/a"), 700);
  const Cgroups v2 = Cgroups::Detect(kV2, root_);
  ASSERT_TRUE(v2.Create("muster/a", {}).ok());
  const std::string unified = root_ + "/cg/unified/muster/a";
  ASSERT_TRUE(WriteFile(unified + "/memory.current", "1000\n").ok());
  ASSERT_TRUE(WriteFile(unified + "/memory.stat", "inactive_file 1200\n").ok());
  EXPECT_EQ(v2.WorkingSetBytes("muster/a"), 0);
  EXPECT_EQ(Cgroups::Detect("", root_).WorkingSetBytes("muster/a"), 0);
}

TEST_F(FakeRoot, WithoutCgroupsNothingFails) {
  const Cgroups none = Cgroups::Detect("", root_);
  EXPECT_TRUE(none.Create("muster/a", {.memory_bytes = 1}).ok());
  EXPECT_TRUE(none.Join("muster/a").ok());
  EXPECT_TRUE(none.Remove("muster/a").ok());
  EXPECT_FALSE(none.CanLimitMemory());
}

TEST(Cgroups, ConvertsCpuAsUpstream) {
  EXPECT_EQ(CpuSharesFromMilli(1000), 1024);
  EXPECT_EQ(CpuSharesFromMilli(0), 2);
  EXPECT_EQ(CpuSharesFromMilli(1'000'000'000), 262144);
  EXPECT_EQ(CpuWeightFromShares(1024), 39);
  EXPECT_EQ(CpuWeightFromShares(2), 1);
  EXPECT_EQ(CpuWeightFromShares(262144), 10000);
  EXPECT_EQ(CpuQuotaUsFromMilli(500), 50000);
  EXPECT_EQ(CpuQuotaUsFromMilli(1), 1000);
}

}  // namespace
}  // namespace muster::agent
