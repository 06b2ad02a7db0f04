// src/agent/devices/grpc_test_support.h
//
// A loop that runs until a test has seen what it waits for.
//
// Thread: the test's.

#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "loop/asio_loop.h"

namespace muster::agent {

class GrpcTest : public testing::Test {
 protected:
  void RunUntil(const std::function<bool()>& done) {
    const Duration start = RealClock().Monotonic();
    std::function<void()> look = [&] {
      if (done() || RealClock().Monotonic() - start > seconds(20)) return loop.Stop();
      loop.After(milliseconds(1), look);
    };
    look();
    loop.Run();
    loop.Restart();
    EXPECT_TRUE(done()) << "not in time";
  }

  AsioLoop loop;
};

}  // namespace muster::agent
