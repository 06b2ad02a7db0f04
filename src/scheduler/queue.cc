#include "scheduler/queue.h"

#include <algorithm>
#include <tuple>

namespace muster::scheduler {

int64_t Unit::Needed() const {
  if (!is_gang) return 1;
  int64_t of_tasks = 0;
  for (const TaskCount& task : tasks) of_tasks += task.Needed();
  return std::max<int64_t>({min_member - occupied, of_tasks, 1});
}

bool Unit::Suffices(const std::vector<size_t>& positions) const {
  if (static_cast<int64_t>(positions.size()) < Needed()) return false;
  std::vector<int64_t> of_task(tasks.size(), 0);
  for (const size_t position : positions) {
    if (pods[position].task != kNoTask) ++of_task[pods[position].task];
  }
  for (size_t task = 0; task < tasks.size(); ++task) {
    if (of_task[task] < tasks[task].Needed()) return false;
  }
  return true;
}

bool Unit::IsMet() const {
  return occupied >= min_member && std::all_of(tasks.begin(), tasks.end(),
                                               [](const auto& task) { return task.Needed() == 0; });
}

bool GoesBefore(const Unit& a, const Unit& b) {
  const bool a_completes = a.IsCompleting();
  const bool b_completes = b.IsCompleting();
  return std::tie(b_completes, b.priority, a.created, a.ns, a.name, a.is_gang) <
         std::tie(a_completes, a.priority, b.created, b.ns, b.name, b.is_gang);
}

}  // namespace muster::scheduler
