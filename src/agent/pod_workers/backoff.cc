#include "agent/pod_workers/backoff.h"

#include <algorithm>

namespace muster::agent {

Time CrashBackoff::OnExit(Time started, Time finished) {
  if (finished - started > 2 * kMaxBackoff) {
    ended_before_ = false;
    current_ = Duration();
  }
  if (!ended_before_) {
    ended_before_ = true;
    return finished;
  }
  current_ =
      current_ == Duration() ? kInitialBackoff : std::min<Duration>(current_ * 2, kMaxBackoff);
  return finished + current_;
}

}  // namespace muster::agent
