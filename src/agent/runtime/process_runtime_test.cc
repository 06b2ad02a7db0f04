#include "agent/runtime/process_runtime.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/runtime/mounts_test_support.h"

namespace muster::agent {
namespace {

int Hang(const char*, int) { return pause(); }

class PodFolder : public MountTest {
 protected:
  const UnmountOptions hangs_ = {
      .time_limit = milliseconds(1), .forced_time_limit = milliseconds(1), .unmount = Hang};
};

TEST_F(PodFolder, IsRemovedWithoutWhatIsMountedInIt) {
  Bind(Users(), "pods/u/volumes/kubernetes.io~nfs/v");
  ASSERT_TRUE(MakeDirs(dir_ + "/pods/u/volumes/empty-dir").ok());
  const Status status = RemovePodFolder(dir_, "u");
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(ListDir(dir_ + "/pods").empty());
  EXPECT_TRUE(UsersAreThere());
}

TEST_F(PodFolder, StaysAsItWasWhereAVolumeStaysMounted) {
  Bind(Users(), "pods/u/volumes/kubernetes.io~nfs/v");
  EXPECT_FALSE(RemovePodFolder(dir_, "u", hangs_).ok());
  EXPECT_EQ(PodFolders(dir_), std::vector<std::string>{"u"}) << "the next agent finds it";
  EXPECT_TRUE(UsersAreThere());
}

TEST_F(PodFolder, OfARemovalThatWasBrokenOffToo) {
  Bind(Users(), "pods/.removed-u/volumes/kubernetes.io~nfs/v");
  SweepPodFolders(dir_, hangs_);
  EXPECT_TRUE(PathExists(dir_ + "/pods/.removed-u"));
  EXPECT_TRUE(UsersAreThere());
  ASSERT_TRUE(MakeDirs(dir_ + "/pods/u").ok());
  EXPECT_FALSE(RemovePodFolder(dir_, "u", hangs_).ok());
  EXPECT_TRUE(UsersAreThere());
  SweepPodFolders(dir_);
  EXPECT_EQ(ListDir(dir_ + "/pods"), std::vector<std::string>{"u"});
  EXPECT_TRUE(UsersAreThere());
}

}  // namespace
}  // namespace muster::agent
