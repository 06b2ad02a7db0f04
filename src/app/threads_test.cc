#include "app/threads.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

namespace muster::app {
namespace {

int Niceness() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

// In a thread of its own: a preference cannot always be given back.
TEST(Threads, OnlyTheLoopIsPreferredNotWhatItStarts) {
  const int before = Niceness();
  bool preferred = false;
  int own = 0, of_thread = 0, of_process = 0;
  std::thread([&] {
    preferred = PreferThisThread();
    own = Niceness();
    std::thread([&] { of_thread = Niceness(); }).join();
    const pid_t child = fork();
    if (child == 0) _exit(Niceness() + 100);
    int status = 0;
    waitpid(child, &status, 0);
    of_process = WEXITSTATUS(status) - 100;
  }).join();
  if (!preferred) {
    EXPECT_EQ(own, before);
    GTEST_SKIP() << "raising a thread's priority takes CAP_SYS_NICE";
  }
  EXPECT_EQ(own, std::max(before + kLoopNiceness, -20));
  // sched(7): what a thread of negative niceness starts begins at 0. (This one's is not negative if
  // these tests run under nice.)
  EXPECT_EQ(of_thread, std::max(own, 0));
  EXPECT_EQ(of_process, std::max(own, 0));
  EXPECT_EQ(Niceness(), before);
}

}  // namespace
}  // namespace muster::app
