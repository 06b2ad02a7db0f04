#include "agent/runtime/process_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "agent/network/netns_test_support.h"
#include "agent/runtime/files.h"

namespace muster::agent {
namespace {

// Of this process: others may run the same tests.
const std::string kPath = fmt::format("/tmp/process-lock-test-{}", getpid());
const char* const kFile = kPath.c_str();

// A child that holds the lock until it is killed.
pid_t ForkHolder() {
  int ready[2];
  CHECK(pipe(ready) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    CHECK(TakeProcessLock(kFile).ok());
    CHECK(write(ready[1], "x", 1) == 1);
    while (true) pause();
  }
  char byte = 0;
  CHECK(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  return pid;
}

TEST(ProcessLock, NamesAndEndsItsHolder) {
  InNetworkNamespace([] {
    EXPECT_FALSE(ProcessLockHolder(kFile).has_value());
    EXPECT_TRUE(EndProcess(kFile, seconds(5)).ok());
    const pid_t holder = ForkHolder();
    EXPECT_EQ(ProcessLockHolder(kFile), holder);
    EXPECT_EQ(TakeProcessLock(kFile).reason(), Reason::kConflict);
    EXPECT_TRUE(EndProcess(kFile, seconds(5)).ok());
    int state = 0;
    ASSERT_EQ(waitpid(holder, &state, 0), holder);
    EXPECT_EQ(WTERMSIG(state), SIGKILL);
    EXPECT_FALSE(ProcessLockHolder(kFile).has_value());
    unlink(kFile);
  });
}

TEST(ProcessLock, IsTakenOverFromAPredecessorThatDoesNotEnd) {
  InNetworkNamespace([] {
    const pid_t holder = ForkHolder();
    EXPECT_TRUE(TakeOverProcessLock(kFile, milliseconds(1)).ok());
    int state = 0;
    ASSERT_EQ(waitpid(holder, &state, 0), holder);
    EXPECT_EQ(WTERMSIG(state), SIGKILL);
    // It is ours: a child sees us as the holder.
    const pid_t self = getpid();
    const pid_t child = fork();
    if (child == 0) _exit(ProcessLockHolder(kFile) == self ? 0 : 1);
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0);
    unlink(kFile);
  });
}

}  // namespace
}  // namespace muster::agent
