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

Lack::Lack(const Unit& unit) : unit_(unit), others_(unit.Needed()) {
  for (const TaskCount& task : unit.tasks) {
    of_task_.push_back(task.Needed());
    tasks_ += task.Needed();
  }
  others_ -= tasks_;
}

bool Lack::Fill(size_t position) {
  const size_t task = unit_.pods[position].task;
  if (task != kNoTask && of_task_[task] > 0) {
    --of_task_[task];
    --tasks_;
    return true;
  }
  return others_-- > 0;
}

bool GoesBefore(const Unit& a, const Unit& b) {
  const bool a_completes = a.IsCompleting();
  return a_completes != b.IsCompleting() ? a_completes : RanksBefore(a, b);
}

bool RanksBefore(const Unit& a, const Unit& b) {
  return std::tie(b.priority, a.created, a.ns, a.name, a.is_gang) <
         std::tie(a.priority, b.created, b.ns, b.name, b.is_gang);
}

}  // namespace muster::scheduler
