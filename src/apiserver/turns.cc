#include "apiserver/turns.h"

#include <utility>

namespace muster::apiserver {

bool Turns::Wait(const std::string& user, Task handle) {
  if (waiting_ >= kMaxWaitingRequests) return false;
  std::deque<Task>& queue = queues_[user];
  if (queue.size() >= kMaxWaitingOfUser) return false;
  if (queue.empty()) order_.push_back(user);
  queue.push_back(std::move(handle));
  ++waiting_;
  RunLater();
  return true;
}

void Turns::RunLater() {
  if (std::exchange(posted_, true)) return;
  loop_.Post([this, weak = std::weak_ptr<int>(alive_)] {
    if (weak.lock()) Run();
  });
}

void Turns::Run() {
  posted_ = false;
  for (int i = 0; i < per_task_ && !order_.empty(); ++i) {
    const std::string user = std::move(order_.front());
    order_.pop_front();
    const auto queue = queues_.find(user);
    Task handle = std::move(queue->second.front());
    queue->second.pop_front();
    --waiting_;
    if (queue->second.empty()) {
      queues_.erase(queue);
    } else {
      order_.push_back(user);
    }
    handle();
  }
  if (!order_.empty()) RunLater();
}

}  // namespace muster::apiserver
