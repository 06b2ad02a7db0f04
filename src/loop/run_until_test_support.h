// src/loop/run_until_test_support.h
//
// Lets an AsioLoop run until something holds, for tests on real sockets and processes.

#pragma once

#include <functional>

#include "base/time.h"
#include "loop/asio_loop.h"

namespace muster {

// Asks `done` in the loop, again and again; false if it does not hold within `limit`. A busy
// machine takes its time: the limit is only there to end a test that fails.
inline bool RunUntil(AsioLoop& loop, const std::function<bool()>& done,
                     Duration limit = seconds(30)) {
  bool result = false;
  const Duration end = RealClock().Monotonic() + limit;
  std::function<void()> look = [&] {
    result = done();
    if (result || RealClock().Monotonic() > end) return loop.Stop();
    loop.After(milliseconds(1), [&look] { look(); });
  };
  loop.Restart();
  loop.Post([&look] { look(); });
  loop.Run();
  return result;
}

}  // namespace muster
