#include "app/threads.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace muster::app {

bool PreferThisThread() {
  // Threads and processes that this thread starts from here on begin at niceness 0 again.
  const sched_param parameter{};
  if (sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &parameter) != 0) return false;
  const auto thread = static_cast<id_t>(gettid());
  errno = 0;
  const int now = getpriority(PRIO_PROCESS, thread);
  if (now == -1 && errno != 0) return false;
  return setpriority(PRIO_PROCESS, thread, now + kLoopNiceness) == 0;
}

}  // namespace muster::app
