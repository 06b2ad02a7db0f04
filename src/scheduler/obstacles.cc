#include "scheduler/obstacles.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace muster::scheduler {

using cluster::ClusterSnapshot;
using cluster::HolderIndex;
using cluster::kNoIndex;

Obstacles::Obstacles(NodeFinder& finder, const QueuedPod& pod)
    : rules_(finder.pod_rules()), look_(finder.pod_rules().LookOf(pod.shape, pod.identity)) {
  if (look_ == kNoIndex) return;
  const ClusterSnapshot& snapshot = finder.snapshot();
  in_domain_.resize(rules_.TermCount(look_));
  std::set<std::pair<size_t, uint32_t>> excluded;  // term, domain
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node)) continue;
    for (size_t term = 0; term < in_domain_.size(); ++term) {
      const uint32_t domain = rules_.ExcludedDomain(look_, term, node);
      if (domain != kNoIndex) excluded.emplace(term, domain);
    }
  }
  if (excluded.empty()) return;
  std::map<HolderIndex, size_t> pods;
  for (cluster::PlacementIndex index = 0; index < snapshot.placement_slots(); ++index) {
    const cluster::Placement& placement = snapshot.At(index);
    if (placement.node == kNoIndex) continue;
    for (size_t term = 0; term < in_domain_.size(); ++term) {
      const uint32_t domain = finder.pod_rules().CountsIn(look_, term, placement);
      if (domain == kNoIndex || !excluded.contains({term, domain})) continue;
      ++pods[placement.holder];
      std::vector<HolderIndex>& there = in_domain_[term][domain];
      const auto at = std::lower_bound(there.begin(), there.end(), placement.holder);
      const bool known = at != there.end() && *at == placement.holder;
      if (!known && there.size() < kMaxHoldersInTheWay) there.insert(at, placement.holder);
    }
  }
  for (const auto& [holder, count] : pods) holders_.push_back(holder);
  std::stable_sort(holders_.begin(), holders_.end(), [&](HolderIndex a, HolderIndex b) {
    return std::tuple(pods[a], a) < std::tuple(pods[b], b);
  });
}

std::vector<HolderIndex> Obstacles::KeepingFrom(cluster::NodeIndex node) const {
  std::set<HolderIndex> out;
  for (size_t term = 0; term < in_domain_.size(); ++term) {
    const auto found = in_domain_[term].find(rules_.ExcludedDomain(look_, term, node));
    if (found != in_domain_[term].end()) out.insert(found->second.begin(), found->second.end());
  }
  return {out.begin(), out.end()};
}

}  // namespace muster::scheduler
