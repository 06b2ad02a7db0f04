// src/base/time.h
//
// Instants and durations. Nothing outside `base` and `loop` reads a clock: time comes from a Loop
// (or is passed in), so that simulation can own it.

#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

using Duration = std::chrono::nanoseconds;
// An instant in UTC, nanoseconds since the Unix epoch.
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// metav1.Time: "2026-01-02T03:04:05Z", whole seconds (fractions are dropped, not rounded).
std::string FormatTime(Time time);
// metav1.MicroTime: "2026-01-02T03:04:05.123456Z".
std::string FormatMicroTime(Time time);
// "2026-01-02T03:04:05.123456789Z": CRI log lines, container times.
std::string FormatNanoTime(Time time);
// RFC 3339 with optional fraction and any offset; nullopt if it is not one.
std::optional<Time> ParseTime(std::string_view text);

// "3d4h", "5m3s", "42s": what kubectl prints in AGE columns (k8s.io/apimachinery
// duration.HumanDuration).
std::string HumanDuration(Duration duration);

// Where real time enters. Only AsioLoop, the logger and main programs hold one.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Wall() const = 0;
  virtual Duration Monotonic() const = 0;
};
const Clock& RealClock();

}  // namespace muster
