// src/client/lifetime.h
//
// Lifetime: callbacks that must not run once their owner is gone. A part may be destroyed at any
// callback boundary (a crash under simulation, a stop in production) while the loop, a timer or a
// transport still holds its callbacks.
//
//   client_.Get(target, lifetime_.Guard([this](Result<json::Value> reply) { ... }));
//
// Life cycle: a member, declared last so that it dies first.
// Thread:     the loop thread.

#pragma once

#include <memory>
#include <utility>

namespace muster::client {

class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  // Expired once this object is gone.
  std::weak_ptr<const bool> Watch() const { return token_; }

  // A callable that does what `callback` does while this object lives, and nothing afterwards.
  template <class Callback>
  auto Guard(Callback callback) const {
    return [alive = std::weak_ptr<const bool>(token_),
            callback = std::move(callback)](auto&&... arguments) mutable {
      // Kept for the length of the call: the callback may destroy its owner.
      if (const std::shared_ptr<const bool> held = alive.lock()) {
        callback(std::forward<decltype(arguments)>(arguments)...);
      }
    };
  }

 private:
  std::shared_ptr<const bool> token_ = std::make_shared<const bool>(true);
};

}  // namespace muster::client
