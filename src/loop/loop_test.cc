#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "loop/asio_loop.h"
#include "loop/loop_thread.h"
#include "loop/sim_loop.h"
#include "loop/thread_pool.h"

namespace muster {
namespace {

TEST(SimLoop, RunsByTimeThenByOrder) {
  SimLoop loop;
  std::vector<int> order;
  const Time start = loop.Now();
  loop.After(seconds(2), [&] { order.push_back(3); });
  loop.After(seconds(1), [&] { order.push_back(1); });
  loop.After(seconds(1), [&] { order.push_back(2); });
  loop.Post([&] { order.push_back(0); });
  EXPECT_EQ(loop.RunReady(), 1u);
  loop.RunFor(seconds(5));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(loop.Now() - start, seconds(5));
}

TEST(SimLoop, CancelledTimersNeverRun) {
  SimLoop loop;
  bool ran = false;
  const TimerId timer = loop.After(seconds(1), [&] { ran = true; });
  loop.Cancel(timer);
  loop.Cancel(timer);
  EXPECT_FALSE(loop.Step());
  EXPECT_FALSE(ran);
}

TEST(SimLoop, RunUntilStopsAtTheDeadline) {
  SimLoop loop;
  int count = 0;
  Function<void()> again = [&] {
    ++count;
    loop.After(seconds(1), [&] { again(); });
  };
  again();
  EXPECT_FALSE(loop.RunUntil([] { return false; }, seconds(10)));
  EXPECT_EQ(count, 11);
}

TEST(AsioLoop, RunsTasksTimersAndWatches) {
  AsioLoop loop;
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
  std::vector<std::string> log;
  std::unique_ptr<FdWatch> watch;
  loop.Post([&] {
    EXPECT_TRUE(loop.InThread());
    log.push_back("posted");
    watch = loop.WatchReadable(fds[0], [&] {
      char buffer[8];
      while (read(fds[0], buffer, sizeof(buffer)) > 0) {
      }
      log.push_back("readable");
      watch.reset();
      loop.Stop();
    });
    const TimerId cancelled = loop.After(milliseconds(1), [&] { log.push_back("cancelled"); });
    loop.Cancel(cancelled);
    loop.After(milliseconds(2), [&] {
      log.push_back("timer");
      ASSERT_EQ(write(fds[1], "x", 1), 1);
    });
  });
  loop.Run();
  EXPECT_EQ(log, (std::vector<std::string>{"posted", "timer", "readable"}));
  close(fds[0]);
  close(fds[1]);
}

TEST(ThreadPool, ReportsOnTheLoop) {
  AsioLoop loop;
  ThreadPool pool("test", 2);
  int done = 0;
  std::atomic<int> worked = 0;
  for (int i = 0; i < 100; ++i) {
    pool.Run([&] { ++worked; }, loop,
             [&] {
               EXPECT_TRUE(loop.InThread());
               if (++done == 100) loop.Stop();
             });
  }
  loop.Run();
  EXPECT_EQ(worked, 100);
}

TEST(LoopThread, RunsItsLoopUntilItIsDestroyed) {
  LoopThread thread("test");
  EXPECT_FALSE(thread.loop().InThread());
  bool inside = false;
  thread.RunAndWait([&] { inside = thread.loop().InThread(); });
  EXPECT_TRUE(inside);
  std::atomic<bool> late = false;
  thread.loop().Post([&] { late = true; });
  thread.RunAndWait([] {});
  EXPECT_TRUE(late);
}

}  // namespace
}  // namespace muster
