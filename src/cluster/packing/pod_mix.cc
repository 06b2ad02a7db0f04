#include "cluster/packing/pod_mix.h"

#include <algorithm>
#include <utility>

namespace muster::cluster {

void PodMix::Arrived(const GpuAsk& ask) {
  ++arrivals_;
  if (++weight_ > kFadeAfter) Fade();
  Add(ask);
}

void PodMix::Add(const GpuAsk& ask, double count) {
  (ask.gpus > 0 ? with_gpus_ : without_gpus_).Add(ask, count);
}

void PodMix::Fade() {
  weight_ /= 2;
  for (AskKind& kind : with_gpus_.kinds) kind.count /= 2;
  for (AskKind& kind : without_gpus_.kinds) kind.count /= 2;
}

void PodMix::Counts::Add(const GpuAsk& ask, double count) {
  const auto [at, is_new] = index.try_emplace(ask, kinds.size());
  if (is_new) kinds.push_back({ask, 0});
  kinds[at->second].count += count;
  if (kinds.size() > kMaxAskKinds) DropRarest();
}

// The newest kind, which is the last, stays: it has had no time yet.
void PodMix::Counts::DropRarest() {
  const auto rarest =
      std::min_element(kinds.begin(), kinds.end() - 1, [](const AskKind& a, const AskKind& b) {
        return std::pair(a.count, a.ask) < std::pair(b.count, b.ask);
      });
  index.erase(rarest->ask);
  *rarest = kinds.back();
  kinds.pop_back();
  index[rarest->ask] = static_cast<size_t>(rarest - kinds.begin());
}

}  // namespace muster::cluster
