#include "packing/fragments.h"

#include <algorithm>
#include <limits>
#include <map>

namespace muster::bench {
namespace {
constexpr double kTypicalShare = 0.95;
}  // namespace

Fragments::Fragments(const std::vector<cluster::GpuAsk>& pods) {
  std::map<cluster::GpuAsk, int> counts;
  for (cluster::GpuAsk pod : pods) {
    pod.memory_mib = 0;
    ++counts[pod];
  }
  std::vector<std::pair<int, cluster::GpuAsk>> kinds;
  for (const auto& [ask, count] : counts) kinds.emplace_back(count, ask);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  double total = 0;
  for (const auto& [count, ask] : kinds) {
    if (total >= kTypicalShare * static_cast<double>(pods.size())) break;
    total += count;
    typical_.emplace_back(count, ask);
  }
  for (auto& [share, ask] : typical_) share /= total;
}

double Fragments::Of(const cluster::GpuState& node) {
  cluster::GpuState state = node;
  state.memory_mib = std::numeric_limits<int32_t>::max();  // is not looked at
  const auto [at, is_new] = known_.try_emplace(state, 0);
  if (!is_new) return at->second;
  double sum = 0;
  for (const auto& [share, ask] : typical_) {
    if (ask.gpus == 0 || !state.Takes(ask)) {
      sum += share * state.IdleMilli();
      continue;
    }
    for (int i = 0; i < state.gpus; ++i)
      if (state.free_milli[i] < ask.gpu_milli) sum += share * state.free_milli[i];
  }
  return at->second = sum;
}

}  // namespace muster::bench
