#include "apiserver/mlflow/scan_turns.h"

#include <utility>

namespace muster::apiserver {

bool ScanTurns::Wait(const std::string& user, Begin begin) {
  if (taken_ == kMaxScans || !queue_.empty()) return queue_.Push(user, std::move(begin));
  begin(Take());
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
  if (queue_.empty()) return;
  loop_.Post([weak = weak_from_this()] {
    if (const std::shared_ptr<ScanTurns> self = weak.lock()) self->RunNext();
  });
}

void ScanTurns::RunNext() {
  while (taken_ < kMaxScans && !queue_.empty()) {
    Begin begin = queue_.Pop();
    begin(Take());
  }
}

}  // namespace muster::apiserver
