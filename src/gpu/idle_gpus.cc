#include "gpu/idle_gpus.h"

#include <algorithm>

namespace muster::gpu {

std::vector<IdleGpus::Notice> IdleGpus::Observe(const std::vector<Held>& gpus, Time now) {
  std::vector<Notice> notices;
  if (threshold_ <= Duration(0)) return notices;
  ++looks_;
  for (const Held& each : gpus) {
    for (const std::string& holder : each.holders) {
      const auto [entry, is_new] = held_.try_emplace({each.gpu, holder});
      State& state = entry->second;
      state.look = looks_;
      if (is_new) state = {now, threshold_, false, looks_};
      state.since = std::min(state.since, now);  // the clock was set back
      if (each.utilization_percent < 0) continue;
      const Duration idle = now - state.since;
      if (each.utilization_percent > kIdlePercent) {
        if (state.told) notices.push_back({each.gpu, holder, idle, true});
        state = {now, threshold_, false, looks_};
      } else if (idle >= state.tell_at) {
        notices.push_back({each.gpu, holder, idle, false});
        state.told = true;
        while (state.tell_at <= idle) state.tell_at *= 2;
      }
    }
  }
  std::erase_if(held_, [this](const auto& entry) { return entry.second.look != looks_; });
  return notices;
}

}  // namespace muster::gpu
