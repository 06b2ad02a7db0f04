#include "agent/shim/plain_processes.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/network/netns_test_support.h"

namespace muster::agent {
namespace {

// Does not end by itself when its child is killed before it.
constexpr const char* kWithChild = "while :; do sleep 1000; done";

// A program with the environment of a container, that has started.
pid_t Start(const std::string& pod_dir, const std::string& container,
            const char* script = kWithChild) {
  std::vector<std::string> environment = PlainEnvironment({"HOME=/root"}, pod_dir, container);
  std::vector<char*> envp;
  for (std::string& variable : environment) envp.push_back(variable.data());
  envp.push_back(nullptr);
  int started[2];
  CHECK(pipe2(started, O_CLOEXEC) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    execle("/bin/sh", "sh", "-c", script, nullptr, envp.data());
    _exit(1);
  }
  close(started[1]);
  char byte = 0;
  CHECK(read(started[0], &byte, 1) == 0);  // closed by the exec
  close(started[0]);
  return pid;
}

bool Lives(pid_t pid) { return waitpid(pid, nullptr, WNOHANG) == 0; }

// Waits: a process that is ending has no environment for a moment before it is dead.
bool WasKilled(pid_t pid) {
  int state = 0;
  return waitpid(pid, &state, 0) == pid && WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL;
}

void EndAll(const std::string& pod_dir, const std::string& container) {
  while (!EndPlainProcesses(pod_dir, container).ok()) {
  }
}

TEST(PlainProcesses, AreEndedByTheirMark) {
  InNetworkNamespace([] {
    const pid_t one = Start("/d/pods/1", "a");
    const pid_t two = Start("/d/pods/1", "ab");
    const pid_t other = Start("/d/pods/12", "a");
    EndAll("/d/pods/1", "a");
    EXPECT_TRUE(WasKilled(one));
    EXPECT_TRUE(Lives(two));
    EndAll("/d/pods/1", "");
    EXPECT_TRUE(WasKilled(two));
    EXPECT_TRUE(Lives(other));
    EndAll("/d/pods/12", "");
    EXPECT_TRUE(WasKilled(other));
    EXPECT_TRUE(EndPlainProcesses("/d/pods/12").ok());
  });
}

// Each execve leaves a process without an environment for a moment.
TEST(PlainProcesses, AreFoundWhileTheyStartOtherPrograms) {
  InNetworkNamespace([] {
    for (int round = 0; round < 40; ++round) {
      const pid_t pid = Start("/d/pods/1", "a",
                              "n=2000; next='n=$((n - 1)); [ $n = 0 ] || exec sh -c \"$next\"'; "
                              "export n next; exec sh -c \"$next\"");
      EndAll("/d/pods/1", "");
      EXPECT_TRUE(WasKilled(pid)) << "it lived on, in round " << round;
    }
  });
}

TEST(PlainProcesses, HaveAHomeInThePodsFolder) {
  EXPECT_EQ(PlainEnvironment({"A=1", "HOME=/root"}, "/d/pods/1", "main"),
            (std::vector<std::string>{"A=1", "HOME=/d/pods/1/home", "TMPDIR=/d/pods/1/home",
                                      "MUSTER_POD=/d/pods/1:main"}));
  EXPECT_EQ(
      PlainEnvironment({"HOME=/data", "TMPDIR=/scratch"}, "/d/pods/1", "main"),
      (std::vector<std::string>{"HOME=/data", "TMPDIR=/scratch", "MUSTER_POD=/d/pods/1:main"}));
}

}  // namespace
}  // namespace muster::agent
