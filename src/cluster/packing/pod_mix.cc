#include "cluster/packing/pod_mix.h"

#include <algorithm>
#include <utility>

namespace muster::cluster {

void PodMix::Add(const GpuAsk& ask) {
  ++arrivals_;
  if (++weight_ > kFadeAfter) Fade();
  if (ask.gpus == 0) return;
  const auto [at, is_new] = index_.try_emplace(ask, kinds_.size());
  if (is_new) kinds_.push_back({ask, 0});
  ++kinds_[at->second].count;
  if (kinds_.size() > kMaxAskKinds) DropRarest();
}

void PodMix::Fade() {
  weight_ /= 2;
  for (AskKind& kind : kinds_) kind.count /= 2;
}

// The newest kind, which is the last, stays: it has had no time yet.
void PodMix::DropRarest() {
  const auto rarest =
      std::min_element(kinds_.begin(), kinds_.end() - 1, [](const AskKind& a, const AskKind& b) {
        return std::pair(a.count, a.ask) < std::pair(b.count, b.ask);
      });
  index_.erase(rarest->ask);
  *rarest = kinds_.back();
  kinds_.pop_back();
  index_[rarest->ask] = static_cast<size_t>(rarest - kinds_.begin());
}

}  // namespace muster::cluster
