// src/agent/runtime/mounts_test_support.h
//
// A test that mounts: in a mount namespace of the test program's own, below a folder that is gone
// after it. Skipped where this user may not mount.
//
// Thread: the main thread, before it has started others.

#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "agent/runtime/files.h"
#include "agent/runtime/mount_table.h"

namespace muster::agent {

class MountTest : public testing::Test {
 protected:
  MountTest() {
    char path[] = "/tmp/agent-mounts-XXXXXX";
    dir_ = mkdtemp(path);
  }
  ~MountTest() override {
    const auto mounts = MountsBelow(dir_);
    if (mounts) {
      for (size_t i = mounts->size(); i > 0; --i)
        umount2((*mounts)[i - 1].point.c_str(), MNT_DETACH);
    }
    EXPECT_TRUE(RemoveTree(dir_).ok());
  }
  void SetUp() override {
    static const int failure = OwnNamespace();
    if (failure != 0) GTEST_SKIP() << "this user may not mount: " << strerror(failure);
  }

  // A folder below dir_ with a tmpfs on it, and a file of users in there.
  std::string Tmpfs(const std::string& name) {
    const std::string path = dir_ + "/" + name;
    EXPECT_TRUE(MakeDirs(path).ok());
    EXPECT_EQ(mount("users", path.c_str(), "tmpfs", 0, nullptr), 0) << strerror(errno);
    EXPECT_TRUE(WriteFile(path + "/file", "of users").ok());
    return path;
  }
  // The folder `source` once more: the same disk, so only the mount table tells.
  std::string Bind(const std::string& source, const std::string& name) {
    const std::string path = dir_ + "/" + name;
    EXPECT_TRUE(MakeDirs(path).ok());
    EXPECT_EQ(mount(source.c_str(), path.c_str(), nullptr, MS_BIND, nullptr), 0) << strerror(errno);
    return path;
  }
  // A folder of users, which nothing may remove.
  std::string Users() {
    const std::string path = dir_ + "/users/deep";
    EXPECT_TRUE(MakeDirs(path).ok());
    EXPECT_TRUE(WriteFile(path + "/file", "of users").ok());
    return dir_ + "/users";
  }
  bool UsersAreThere() const { return PathExists(dir_ + "/users/deep/file"); }
  size_t Mounts() const {
    const auto mounts = MountsBelow(dir_);
    return mounts ? mounts->size() : 0;
  }

  std::string dir_;

 private:
  static int OwnNamespace() {
    if (unshare(CLONE_NEWNS) != 0) return errno;
    return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? 0 : errno;
  }
};

}  // namespace muster::agent
