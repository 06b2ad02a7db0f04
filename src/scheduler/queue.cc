#include "scheduler/queue.h"

#include <algorithm>
#include <tuple>

namespace muster::scheduler {

int64_t Unit::Needed() const {
  if (!is_gang) return 1;
  // Members of a gang that runs already are placed one by one, as they come.
  return std::max<int64_t>(min_member - occupied, 1);
}

bool GoesBefore(const Unit& a, const Unit& b) {
  const bool a_completes = a.IsCompleting();
  const bool b_completes = b.IsCompleting();
  return std::tie(b_completes, b.priority, a.created, a.ns, a.name, a.is_gang) <
         std::tie(a_completes, a.priority, b.created, b.ns, b.name, b.is_gang);
}

}  // namespace muster::scheduler
