#include "agent/cgroups/delegated_group.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/runtime/files.h"

namespace muster::agent {
namespace {

constexpr std::string_view kOwn = "0::/user.slice/user@1.service/app.slice/muster.scope\n";

// A tree of cgroup v2 of plain files. A folder in place of a file is one that cannot be written, as
// the kernel refuses to divide a group with processes in it.
class Delegated : public testing::Test {
 protected:
  Delegated() {
    char path[] = "/tmp/agent-delegated-XXXXXX";
    root_ = mkdtemp(path);
    for (const char* group : {"/user.slice", kManager, kApp, kScope}) {
      EXPECT_TRUE(MakeDirs(root_ + group).ok());
      Write(std::string(group) + "/cgroup.controllers", "cpuset cpu memory pids\n");
      Write(std::string(group) + "/cgroup.procs", "");
    }
  }
  ~Delegated() override { EXPECT_TRUE(RemoveTree(root_).ok()); }
  void Write(const std::string& file, std::string_view text) {
    EXPECT_TRUE(WriteFile(root_ + file, text).ok());
  }
  void Refuse(const std::string& group) {
    EXPECT_TRUE(MakeDirs(root_ + group + "/cgroup.subtree_control").ok());
  }

  static constexpr const char* kManager = "/user.slice/user@1.service";
  static constexpr const char* kApp = "/user.slice/user@1.service/app.slice";
  static constexpr const char* kScope = "/user.slice/user@1.service/app.slice/muster.scope";
  std::string root_;
};

TEST_F(Delegated, IsTheNearestGroupAboveThatCanBeDivided) {
  DelegatedGroup group = FindDelegatedGroup(root_, kOwn);
  EXPECT_EQ(group.path, root_ + kApp);
  EXPECT_TRUE(group.memory && group.cpu && group.pids);
  EXPECT_EQ(ReadSmallFile(root_ + kApp + "/cgroup.subtree_control").value_or(""),
            "+memory +cpu +pids");
  EXPECT_TRUE(unlink((root_ + kApp + "/cgroup.subtree_control").c_str()) == 0);
  Refuse(kApp);
  EXPECT_EQ(FindDelegatedGroup(root_, kOwn).path, root_ + kManager);
}

TEST_F(Delegated, IsTheOwnGroupWhenWeCanLeaveIt) {
  for (const char* group : {kApp, kManager, "/user.slice"}) Refuse(group);
  // The leaf is a folder of plain files here: the kernel makes them with it.
  const std::string leaf = root_ + kScope + "/" + std::string(kControlGroup);
  EXPECT_EQ(FindDelegatedGroup(root_, kOwn).path, root_ + kScope);
  EXPECT_EQ(ReadSmallFile(leaf + "/cgroup.procs").value_or(""), "0");
}

TEST_F(Delegated, SaysWhichControllersAreThere) {
  Write(std::string(kApp) + "/cgroup.controllers", "memory pids\n");
  const DelegatedGroup group = FindDelegatedGroup(root_, kOwn);
  EXPECT_EQ(group.path, root_ + kApp);
  EXPECT_TRUE(group.memory && group.pids);
  EXPECT_FALSE(group.cpu);
}

TEST_F(Delegated, IsNowhereWithoutControllersOrAnOwnGroup) {
  for (const char* group : {kApp, kManager, kScope, "/user.slice"})
    Write(std::string(group) + "/cgroup.controllers", "hugetlb\n");
  EXPECT_EQ(FindDelegatedGroup(root_, kOwn).path, "");
  EXPECT_EQ(FindDelegatedGroup(root_, "0::/\n").path, "");
  EXPECT_EQ(FindDelegatedGroup(root_, "5:memory:/x\n").path, "");
  EXPECT_EQ(FindDelegatedGroup(root_, "0::/nowhere\n").path, "");
}

}  // namespace
}  // namespace muster::agent
