#include "app/instance_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace muster::app {
namespace {

class InstanceLocks : public ::testing::Test {
 protected:
  InstanceLocks() {
    char name[] = "/tmp/muster-lock-XXXXXX";
    dir_ = mkdtemp(name);
    std::filesystem::create_directory(dir_ + "/run");
  }
  ~InstanceLocks() override { std::filesystem::remove_all(dir_); }

  // A process that holds the lock until it is killed.
  pid_t HolderProcess() {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      const Result<InstanceLock> lock = InstanceLock::Take(dir_);
      const char ok = lock.has_value() ? '+' : '-';
      if (write(ready[1], &ok, 1) != 1) _exit(1);
      while (true) pause();
    }
    char ok = 0;
    EXPECT_EQ(read(ready[0], &ok, 1), 1);
    EXPECT_EQ(ok, '+');
    close(ready[0]);
    close(ready[1]);
    return pid;
  }

  std::string dir_;
};

TEST_F(InstanceLocks, NamesTheProcessThatHoldsIt) {
  EXPECT_EQ(InstanceLock::Holder(dir_), std::nullopt);
  const pid_t pid = HolderProcess();
  EXPECT_EQ(InstanceLock::LastingHolder(dir_), pid);
  const Result<InstanceLock> second = InstanceLock::Take(dir_);
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message().find(std::to_string(pid)), std::string::npos);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST_F(InstanceLocks, AKilledHolderDoesNotCount) {
  for (int round = 0; round < 20; ++round) {
    const pid_t pid = HolderProcess();
    kill(pid, SIGKILL);  // not waited for: it may still be dying
    EXPECT_EQ(InstanceLock::LastingHolder(dir_), std::nullopt) << round;
    EXPECT_TRUE(InstanceLock::Take(dir_).has_value()) << round;
    waitpid(pid, nullptr, 0);
  }
}

// A disk that is full, in short: it takes no byte.
TEST_F(InstanceLocks, AFileThatCannotBeWrittenIsAnError) {
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit nothing{0, 0};
    if (setrlimit(RLIMIT_FSIZE, &nothing) != 0) _exit(2);
    const Result<InstanceLock> lock = InstanceLock::Take(dir_);
    _exit(!lock.has_value() && lock.error().message().contains("muster.pid") ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(InstanceLock::Holder(dir_), std::nullopt);
}

}  // namespace
}  // namespace muster::app
