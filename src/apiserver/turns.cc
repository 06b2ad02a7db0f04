#include "apiserver/turns.h"

#include <utility>

namespace muster::apiserver {

bool Turns::Wait(const std::string& user, Task handle) {
  if (!queue_.Push(user, std::move(handle))) return false;
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
  for (int i = 0; i < per_task_ && !queue_.empty(); ++i) {
    Task handle = queue_.Pop();
    handle();
  }
  if (!queue_.empty()) RunLater();
}

}  // namespace muster::apiserver
