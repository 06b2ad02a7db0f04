#include "agent/pod_workers/backoff.h"

#include <algorithm>

namespace muster::agent {

Time EndedAt(std::string_view stamp, Time now, bool just_now) {
  return just_now ? now : std::min(ParseTime(stamp).value_or(now), now);
}

Time CrashBackoff::OnExit(Duration ran, Time ended) {
  if (ran > 2 * kMaxBackoff) {
    ended_before_ = false;
    current_ = Duration();
  }
  if (!ended_before_) {
    ended_before_ = true;
    return ended;
  }
  current_ =
      current_ == Duration() ? kInitialBackoff : std::min<Duration>(current_ * 2, kMaxBackoff);
  return ended + current_;
}

}  // namespace muster::agent
