#include "net/io_thread.h"

#include <array>
#include <future>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "net/io_threads.h"

namespace muster::net {
namespace {

// Notes when it became readable, in `order`.
class Reader final : public IoObject, public FdEvents {
 public:
  Reader(IoThread& thread, int fd, std::string& order)
      : order_(order), fd_(thread.Watch(fd, *this)) {
    fd_->WaitReadable();
  }
  void OnReadable() override { order_ += 'e'; }
  void OnWritable() override {}
  void Abort() override { fd_.reset(); }

 private:
  std::string& order_;
  std::unique_ptr<ReadyFd> fd_;
};

TEST(IoThread, EventsComeBetweenTasksThatWereLeftBehind) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
  std::string order;
  std::promise<void> done;
  {
    IoThreads io(1);
    const std::shared_ptr<IoThread> thread = io.At(0);
    thread->Post([&] {
      thread->Keep(std::make_shared<Reader>(*thread, pair[0], order));
      thread->PostBehind([&] {
        order += '1';
        EXPECT_EQ(write(pair[1], "x", 1), 1);
      });
      thread->PostBehind([&] { order += '2'; });
      thread->PostBehind([&] { order += '3'; });
      thread->PostBehind([&] { done.set_value(); });
    });
    done.get_future().wait();
  }
  close(pair[1]);
  // The reactor may have been asked already when the byte came; before the third it is for sure.
  EXPECT_TRUE(order == "1e23" || order == "12e3") << order;
}

TEST(IoThread, TasksLeftBehindByOneOfThemRunInOrder) {
  std::string order;
  std::promise<void> done;
  IoThreads io(1);
  const std::shared_ptr<IoThread> thread = io.At(0);
  thread->Post([&] {
    thread->PostBehind([&] {
      order += '1';
      thread->PostBehind([&] {
        order += '3';
        done.set_value();
      });
    });
    thread->PostBehind([&] { order += '2'; });
  });
  done.get_future().wait();
  EXPECT_EQ(order, "123");
}

}  // namespace
}  // namespace muster::net
