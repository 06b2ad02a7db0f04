#include "apiserver/mlflow/scan_turns.h"

#include <utility>

namespace muster::apiserver {

bool ScanTurns::Wait(const std::string& user, Begin begin) {
  if (taken_ < kMaxScans && waiting_ == 0) {
    begin(Take());
    return true;
  }
  if (waiting_ >= kMaxWaitingScans) return false;
  const auto queue = queues_.find(user);
  if (queue == queues_.end()) {
    queues_[user].push_back(std::move(begin));
    order_.push_back(user);
  } else {
    if (queue->second.size() >= kMaxWaitingScansOfUser) return false;
    queue->second.push_back(std::move(begin));
  }
  ++waiting_;
  return true;
}

ScanTurns::Slot ScanTurns::Take() {
  ++taken_;
  return Slot(nullptr, [weak = weak_from_this()](void*) {
    if (const std::shared_ptr<ScanTurns> self = weak.lock()) self->Released();
  });
}

// What held the slot is about to go: the next one begins in a task of its own.
void ScanTurns::Released() {
  --taken_;
  if (waiting_ == 0) return;
  loop_.Post([weak = weak_from_this()] {
    if (const std::shared_ptr<ScanTurns> self = weak.lock()) self->RunNext();
  });
}

void ScanTurns::RunNext() {
  while (taken_ < kMaxScans && !order_.empty()) {
    const std::string user = std::move(order_.front());
    order_.pop_front();
    const auto queue = queues_.find(user);
    Begin begin = std::move(queue->second.front());
    queue->second.pop_front();
    --waiting_;
    if (queue->second.empty()) {
      queues_.erase(queue);
    } else {
      order_.push_back(user);
    }
    begin(Take());
  }
}

}  // namespace muster::apiserver
