#include "store/watch_hub.h"

#include <algorithm>
#include <utility>

namespace muster::store {

WatchHub::WatcherPtr WatchHub::Add(std::string prefix, Revision after, Store::OnEvents on_events,
                                   Store::OnEnd on_end) {
  auto watcher = std::make_shared<Watcher>();
  watcher->id = next_id_++;
  watcher->prefix = std::move(prefix);
  watcher->position = after;
  watcher->on_events = std::move(on_events);
  watcher->on_end = std::move(on_end);
  watchers_.emplace(watcher->id, watcher);
  lagging_.emplace(watcher->id, watcher);
  return watcher;
}

void WatchHub::Cancel(Store::WatchId id) {
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return;
  const WatcherPtr watcher = std::move(found->second);
  watchers_.erase(found);
  watcher->cancelled = true;
  if (lagging_.erase(id) > 0) return;
  const auto group = live_by_prefix_.find(watcher->prefix);
  std::erase(group->second, watcher);
  if (group->second.empty()) live_by_prefix_.erase(group);
}

void WatchHub::End(const WatcherPtr& watcher, const Status& why) {
  Cancel(watcher->id);
  if (watcher->on_end) watcher->on_end(why);
}

void WatchHub::GoLive(const WatcherPtr& watcher) {
  if (watcher->cancelled || watcher->live) return;
  watcher->live = true;
  lagging_.erase(watcher->id);
  live_by_prefix_[watcher->prefix].push_back(watcher);
}

void WatchHub::Publish(const std::vector<WatchEvent>& events) {
  // All batches are made before the first callback: callbacks may change the groups.
  struct Delivery {
    std::vector<WatchEvent> events;
    std::vector<WatcherPtr> watchers;
  };
  std::vector<Delivery> deliveries;
  for (const auto& [prefix, watchers] : live_by_prefix_) {
    Delivery delivery;
    for (const WatchEvent& event : events) {
      if (event.entry->key.starts_with(prefix)) delivery.events.push_back(event);
    }
    if (delivery.events.empty()) continue;
    delivery.watchers = watchers;
    deliveries.push_back(std::move(delivery));
  }
  for (const Delivery& delivery : deliveries) {
    for (const WatcherPtr& watcher : delivery.watchers) Tell(*watcher, delivery.events);
  }
}

void WatchHub::Tell(Watcher& watcher, const std::vector<WatchEvent>& events) {
  if (watcher.cancelled || events.back().revision <= watcher.position) return;
  if (events.front().revision > watcher.position) {
    watcher.on_events(events);
    return;
  }
  // It asked for a start in what was the future then.
  std::vector<WatchEvent> wanted;
  std::ranges::copy_if(events, std::back_inserter(wanted),
                       [&](const WatchEvent& event) { return event.revision > watcher.position; });
  watcher.on_events(wanted);
}

std::vector<WatchHub::WatcherPtr> WatchHub::LaggingBefore(Revision position) const {
  std::vector<WatcherPtr> late;
  for (const auto& [id, watcher] : lagging_) {
    if (watcher->position < position) late.push_back(watcher);
  }
  return late;
}

void WatchHub::EndLaggingBefore(Revision position, const Status& why) {
  for (const WatcherPtr& watcher : LaggingBefore(position)) End(watcher, why);
}

Revision WatchHub::OldestLagging(Revision otherwise) const {
  Revision oldest = otherwise;
  for (const auto& [id, watcher] : lagging_) oldest = std::min(oldest, watcher->position);
  return oldest;
}

}  // namespace muster::store
