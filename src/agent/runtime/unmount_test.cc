#include "agent/runtime/unmount.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdio>

#include "agent/runtime/mounts_test_support.h"
#include "agent/runtime/unique_fd.h"

namespace muster::agent {
namespace {

using Unmount = MountTest;

// As a server that is gone: only what is detached comes off.
int HangUnlessDetached(const char* path, int flags) {
  if ((flags & MNT_DETACH) == 0) pause();
  return (flags & MNT_FORCE) == 0 ? -1 : umount2(path, flags);
}
int HangAlways(const char*, int) { return pause(); }

TEST_F(Unmount, EverythingBelowButNothingBeside) {
  Tmpfs("pod/volumes/a");
  Tmpfs("pod/volumes/a");  // on the one before
  Tmpfs("pod/volumes/a/inner");
  Bind(Users(), "pod/volumes/b");
  Tmpfs("pod-2");
  ASSERT_TRUE(UnmountBelow(dir_ + "/pod").ok());
  EXPECT_EQ(Mounts(), 1u);
  EXPECT_TRUE(UsersAreThere());
  EXPECT_TRUE(RemoveTree(dir_ + "/pod").ok());
  EXPECT_TRUE(UnmountBelow(dir_ + "/pod").ok()) << "absent";
}

// A sandbox is made with copies of what other pods have mounted.
TEST_F(Unmount, TakesTheCopiesOfOtherNamespacesAlong) {
  const std::string path = Bind(Users(), "pod/a");
  int begun[2], ended[2];
  ASSERT_EQ(pipe(begun), 0);
  ASSERT_EQ(pipe(ended), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    if (unshare(CLONE_NEWNS) != 0) _exit(3);
    const auto before = MountsBelow(dir_);
    (void)!write(begun[1], "x", 1);
    (void)!read(ended[0], &byte, 1);
    const auto after = MountsBelow(dir_);
    _exit(before && before->size() == 1 && after && after->empty() ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(begun[0], &byte, 1), 1);
  EXPECT_TRUE(UnmountBelow(dir_ + "/pod").ok());
  EXPECT_FALSE(PathExists(path));
  ASSERT_EQ(write(ended[1], "x", 1), 1);
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  for (const int fd : {begun[0], begun[1], ended[0], ended[1]}) close(fd);
  EXPECT_TRUE(UsersAreThere());
}

TEST_F(Unmount, DetachesWhatIsInUse) {
  const std::string path = Tmpfs("pod/a");
  const UniqueFd used(open((path + "/file").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(UnmountBelow(dir_ + "/pod").ok());
  EXPECT_EQ(Mounts(), 0u);
  char text[8] = {};
  EXPECT_EQ(read(used.get(), text, sizeof text), 8) << "who had it open still has it";
}

TEST_F(Unmount, ByForceWhenItTakesTooLong) {
  Tmpfs("pod/a");
  const Duration start = RealClock().Monotonic();
  const Status status =
      UnmountBelow(dir_ + "/pod", {.time_limit = milliseconds(1), .unmount = HangUnlessDetached});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(Mounts(), 0u);
  EXPECT_LT(RealClock().Monotonic() - start, kUnmountTimeLimit);
}

TEST_F(Unmount, SaysWhatStaysMounted) {
  const std::string path = Tmpfs("pod/a");
  const Status status = UnmountBelow(
      dir_ + "/pod",
      {.time_limit = milliseconds(1), .forced_time_limit = milliseconds(1), .unmount = HangAlways});
  EXPECT_EQ(status.message(), "unmount " + path + ": Connection timed out");
  EXPECT_TRUE(PathExists(path + "/file"));
}

// As BreakOffRequestsBelow() asks for it; it leaves a note beside the folder that is mounted on.
int NotesForce(const char* path, int flags) {
  if (flags != (UMOUNT_NOFOLLOW | MNT_FORCE) || umount2(path, flags) != 0) return -1;
  char note[256];
  snprintf(note, sizeof note, "%s.note", path);
  return mkdir(note, 0755);
}

TEST_F(Unmount, BreaksOffAndLeavesAllMounted) {
  const std::string a = Tmpfs("pod/a");
  const std::string b = Tmpfs("pod/b");
  const std::string beside = Tmpfs("pod-2");
  const UniqueFd used(open((a + "/file").c_str(), O_RDONLY | O_CLOEXEC));
  for (int i = 0; i < 2; ++i) {
    BreakOffRequestsBelow(dir_ + "/pod", {.unmount = NotesForce});
    EXPECT_EQ(rmdir((a + ".note").c_str()), 0);
    EXPECT_EQ(rmdir((b + ".note").c_str()), 0);
    EXPECT_EQ(Mounts(), 3u);
    EXPECT_TRUE(PathExists(a + "/file") && PathExists(b + "/file"));
  }
  EXPECT_FALSE(PathExists(beside + ".note"));
}

TEST_F(Unmount, BreakingOffHasItsTime) {
  Tmpfs("pod/a");
  const Duration start = RealClock().Monotonic();
  BreakOffRequestsBelow(dir_ + "/pod",
                        {.forced_time_limit = milliseconds(1), .unmount = HangAlways});
  EXPECT_LT(RealClock().Monotonic() - start, kUnmountTimeLimit);
  EXPECT_EQ(Mounts(), 1u);
}

TEST_F(Unmount, EndsWithTheAgent) {
  Tmpfs("pod/a");
  const std::atomic<bool> cancelled = true;
  const Status status =
      UnmountBelow(dir_ + "/pod", {.unmount = HangAlways, .cancelled = &cancelled});
  EXPECT_EQ(status.reason(), Reason::kServiceUnavailable);
  EXPECT_EQ(Mounts(), 1u);
}

}  // namespace
}  // namespace muster::agent
