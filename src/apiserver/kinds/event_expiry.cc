#include "apiserver/kinds/event_expiry.h"

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
  // The period that runs has begun already.
  due_.push_back({period_ + 1 + kEventLifetime / kEventExpiryPeriod, std::move(key), revision});
  if (timer_ == 0) Arm(kEventExpiryPeriod);
}

void EventExpiry::Arm(Duration delay) {
  timer_ = loop_.After(delay, [this] {
    timer_ = 0;
    if (!behind_) ++period_;
    Expire();
  });
}

void EventExpiry::Expire() {
  const auto front_is_due = [this] { return !due_.empty() && due_.front().period <= period_; };
  for (size_t i = 0; i < kEventsExpiredPerTask && front_is_due(); ++i) {
    const Due due = std::move(due_.front());
    due_.pop_front();
    const store::EntryPtr entry = store_.GetLatest(due.key);
    if (entry == nullptr || entry->mod_revision != due.revision) continue;
    // A failure means that the store is read-only: nothing is left to be done about it here.
    (void)store_.Delete(due.key, due.revision, store::Durability::kRelaxed, {});
  }
  behind_ = front_is_due();
  if (!due_.empty()) Arm(behind_ ? Duration(0) : kEventExpiryPeriod);
}

}  // namespace muster::apiserver
