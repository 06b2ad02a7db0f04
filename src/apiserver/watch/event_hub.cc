#include "apiserver/watch/event_hub.h"

#include <algorithm>
#include <iterator>

#include "apiserver/errors.h"
#include "apiserver/stored_object.h"

namespace muster::apiserver {

EventHub::EventHub(Loop& loop, store::Store& store, RecentTrees& trees, std::string prefix)
    : loop_(loop),
      store_(store),
      trees_(trees),
      prefix_(std::move(prefix)),
      ring_start_(store.CommittedRevision()) {
  // The present is never compacted, so this cannot fail.
  const Result<store::Store::WatchId> watch =
      store_.Watch(prefix_, ring_start_,
                   [this](const std::vector<store::WatchEvent>& events) { OnEvents(events); });
  if (watch) watch_ = *watch;
}

EventHub::~EventHub() {
  loop_.Cancel(bookmark_timer_);
  loop_.Cancel(flush_timer_);
  store_.CancelWatch(watch_);
  for (const Replay& replay : replays_) store_.CancelWatch(replay.watch);
}

Status EventHub::Add(const WatcherPtr& watcher) {
  const store::Revision committed = store_.CommittedRevision();
  if (watcher->spec().after > committed) {
    // Only a client of an earlier life of this store can ask for it; it has to list again.
    return Error(Reason::kExpired, "too old resource version: {} ({})", watcher->spec().after,
                 committed);
  }
  followed_here_ = followed_here_ || watcher->SendsValues();
  if (watcher->spec().bookmarks) ArmBookmarks();
  if (watcher->spec().after < ring_start_) return AddReplay(watcher);
  Flush();  // the ring has what is pending
  for (const auto& [event, bytes] : ring_) watcher->Offer(*event);
  ListFor(*watcher).push_back(watcher);
  ++count_;
  return Status::Ok();
}

Status EventHub::AddReplay(const WatcherPtr& watcher) {
  ASSIGN_OR_RETURN(const store::Store::WatchId watch,
                   store_.Watch(
                       prefix_, watcher->spec().after,
                       [this, watcher](const std::vector<store::WatchEvent>& events) {
                         for (const store::WatchEvent& event : events) {
                           SharedEvent shared(event, loop_.Now(), trees_);
                           watcher->Offer(shared);
                         }
                       },
                       [watcher](const Status& why) {
                         // Either way the client lists again and goes on from there.
                         watcher->Close(Status(Reason::kExpired, why.message()));
                       }));
  replays_.push_back({watcher, watch});
  ++count_;
  return Status::Ok();
}

void EventHub::OnEvents(const std::vector<store::WatchEvent>& events) {
  for (const store::WatchEvent& event : events) {
    auto shared = std::make_shared<SharedEvent>(event, loop_.Now(), trees_);
    pending_.emplace_back(shared, event);
    Remember(std::move(shared), event.entry->value->size());
  }
  if (flush_timer_ != 0) return;
  const Duration wait = next_flush_ - loop_.Now();
  if (wait <= Duration(0)) return Flush();
  // A clock that is set back must not hold the events.
  flush_timer_ = loop_.After(std::min(wait, kMaxBatchDelay), [this] { Flush(); });
}

Duration EventHub::BatchDelay() const {
  const Duration delay = static_cast<int64_t>(count_) * kBatchDelayPerWatcher;
  return delay < kMinBatchDelay ? Duration(0) : std::min(delay, kMaxBatchDelay);
}

void EventHub::Flush() {
  loop_.Cancel(std::exchange(flush_timer_, 0));
  if (pending_.empty()) return;
  next_flush_ = loop_.Now() + BatchDelay();
  const Pending pending = std::exchange(pending_, {});
  if (!others_.empty()) {
    std::vector<SharedEventPtr> events;
    for (const auto& [event, raw] : pending) events.push_back(event);
    EventBatch batch(std::move(events));
    for (const WatcherPtr& watcher : others_) watcher->Offer(batch);
  }
  for (const auto& [event, raw] : pending) OfferRouted(*event, raw);
}

EventHub::Watchers& EventHub::ListFor(const Watcher& watcher) {
  const std::optional<Selection::Route>& route = watcher.spec().selection->route();
  return route ? routed_[route->field][route->value] : others_;
}

template <class Visit>
void EventHub::ForEachLive(Visit visit) const {
  for (const WatcherPtr& watcher : others_) visit(watcher);
  for (const auto& [field, by_value] : routed_) {
    for (const auto& [value, watchers] : by_value) {
      for (const WatcherPtr& watcher : watchers) visit(watcher);
    }
  }
}

void EventHub::OfferRouted(SharedEvent& event, const store::WatchEvent& raw) {
  for (const auto& [field, by_value] : routed_) {
    const auto offer = [&](const std::string& value) {
      const auto found = by_value.find(value);
      if (found == by_value.end()) return;
      for (const WatcherPtr& watcher : found->second) watcher->Offer(event);
    };
    const std::string now(MetaOf(*raw.entry).fields[field]);
    offer(now);
    // Whose selection the object leaves with this change has to hear of it too.
    if (raw.previous == nullptr) continue;
    const std::string before(MetaOf(*raw.previous).fields[field]);
    if (before != now) offer(before);
  }
}

void EventHub::Remember(SharedEventPtr event, size_t bytes) {
  ring_bytes_ += bytes;
  ring_.emplace_back(std::move(event), bytes);
  while (ring_.size() > kHubRingEvents || ring_bytes_ > kHubRingBytes) {
    ring_start_ = ring_.front().first->revision();
    ring_bytes_ -= ring_.front().second;
    ring_.pop_front();
  }
}

void EventHub::SweepLater() {
  if (std::exchange(sweep_pending_, true)) return;
  loop_.Post([this, weak = std::weak_ptr<int>(alive_)] {
    if (weak.lock()) Sweep();
  });
}

// In a task of its own: closing a watcher only marks it, since somebody may be walking the lists.
void EventHub::Sweep() {
  sweep_pending_ = false;
  const auto closed = [](const WatcherPtr& watcher) { return watcher->closed(); };
  count_ -= std::erase_if(others_, closed);
  for (auto& [field, by_value] : routed_) {
    for (auto& [value, watchers] : by_value) count_ -= std::erase_if(watchers, closed);
    std::erase_if(by_value, [](const auto& one) { return one.second.empty(); });
  }
  count_ -= std::erase_if(replays_, [this](const Replay& replay) {
    if (!replay.watcher->closed()) return false;
    store_.CancelWatch(replay.watch);
    return true;
  });
}

void EventHub::ArmBookmarks() {
  if (bookmark_timer_ != 0) return;
  bookmark_timer_ = loop_.After(kBookmarkPeriod, [this] {
    bookmark_timer_ = 0;
    // The store tells all watchers of a commit before it ends the commit's task, so the present has
    // been offered. A replay may still be behind: its client gets its revision with the next event.
    Flush();
    const store::Revision revision = store_.CommittedRevision();
    bool wanted = !replays_.empty();
    ForEachLive([&](const WatcherPtr& watcher) {
      watcher->Bookmark(revision);
      wanted = wanted || watcher->spec().bookmarks;
    });
    if (wanted) ArmBookmarks();
  });
}

void EventHub::CloseAll(const Status& status) {
  Flush();
  ForEachLive([&](const WatcherPtr& watcher) { watcher->Close(status); });
  for (const Replay& replay : replays_) replay.watcher->Close(status);
}

EventHub& EventHubs::For(const std::string& prefix) {
  std::unique_ptr<EventHub>& hub = hubs_[prefix];
  if (hub == nullptr) hub = std::make_unique<EventHub>(loop_, store_, trees_, prefix);
  return *hub;
}

void EventHubs::Close(const std::string& prefix, const Status& status) {
  for (const auto& [key, hub] : hubs_) {
    if (prefix.empty() || key == prefix) hub->CloseAll(status);
  }
}

bool EventHubs::FollowedHere(std::string_view key) const {
  const auto after = hubs_.upper_bound(key);
  if (after == hubs_.begin()) return false;
  const EventHub& hub = *std::prev(after)->second;
  return hub.followed_here() && key.starts_with(hub.prefix());
}

size_t EventHubs::watchers() const {
  size_t count = 0;
  for (const auto& [prefix, hub] : hubs_) count += hub->watchers();
  return count;
}

}  // namespace muster::apiserver
