#include "apiserver/kinds/event_expiry.h"

#include <algorithm>

#include "apiserver/stored_object.h"
#include "schema/registry.h"

namespace muster::apiserver {

EventExpiry::~EventExpiry() {
  loop_.Cancel(timer_);
  store_.CancelWatch(watch_);
}

void EventExpiry::Start() {
  const std::string prefix = KeyPrefix(*schema::Registry::BuiltIn().Find("", "v1", "events"));
  const Result<store::RangeResult> range = store_.Range(prefix, "", 0, 0);
  if (!range) return;
  for (const store::EntryPtr& entry : range->entries) Add(entry->key, entry->mod_revision);
  const auto watch =
      store_.Watch(prefix, range->revision, [this](const std::vector<store::WatchEvent>& events) {
        for (const store::WatchEvent& event : events) {
          if (event.type == store::WatchEvent::Type::kPut) Add(event.entry->key, event.revision);
        }
      });
  if (watch) watch_ = *watch;
}

void EventExpiry::Add(std::string key, store::Revision revision) {
  due_.push_back({loop_.Now() + kEventLifetime, std::move(key), revision});
  if (timer_ == 0) Arm(kEventLifetime);
}

void EventExpiry::Arm(Duration delay) {
  timer_ = loop_.After(delay, [this] {
    timer_ = 0;
    Expire();
  });
}

void EventExpiry::Expire() {
  const Time now = loop_.Now();
  for (size_t i = 0; i < kEventsExpiredPerTask && !due_.empty() && due_.front().at <= now; ++i) {
    const Due due = std::move(due_.front());
    due_.pop_front();
    const store::EntryPtr entry = store_.GetLatest(due.key);
    if (entry == nullptr || entry->mod_revision != due.revision) continue;
    // A failure means that the store is read-only: nothing is left to be done about it here.
    (void)store_.Delete(due.key, due.revision, store::Durability::kRelaxed, {});
  }
  if (due_.empty()) return;
  const bool more = due_.front().at <= now;
  Arm(more ? Duration(0) : std::max<Duration>(due_.front().at - now, kEventExpiryPeriod));
}

}  // namespace muster::apiserver
