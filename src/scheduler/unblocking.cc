#include "scheduler/unblocking.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "scheduler/gang_planner.h"
#include "scheduler/obstacles.h"
#include "scheduler/rules.h"

namespace muster::scheduler {

using cluster::ClusterSnapshot;
using cluster::HolderIndex;
using cluster::kNoIndex;
using cluster::NodeIndex;
using cluster::Placement;
using cluster::PlacementIndex;
using Holding = std::vector<std::pair<HolderIndex, int64_t>>;

namespace {

// Passing over a placement costs about this much less than placing a pod.
constexpr size_t kSlotsPerPodOfWork = 64;

// Of the unit itself: its own pods do not stand in its way.
std::set<HolderIndex> OwnHolders(const Unit& unit) {
  std::set<HolderIndex> own;
  for (const QueuedPod& pod : unit.pods) own.insert(pod.holder);
  return own;
}

bool Contains(const Unblocking::Holders& holders, HolderIndex holder) {
  return std::find(holders.begin(), holders.end(), holder) != holders.end();
}

std::set<HolderIndex> Running(const ClusterSnapshot& snapshot) {
  std::set<HolderIndex> running;
  for (PlacementIndex index = 0; index < snapshot.placement_slots(); ++index) {
    if (snapshot.At(index).node != kNoIndex) running.insert(snapshot.At(index).holder);
  }
  return running;
}

// A healthy GPU that pods may share: what each has of it, in thousandths.
struct Gpu {
  int64_t left = 0;
  std::vector<std::pair<HolderIndex, int64_t>> users;
  bool is_shared = false;
};

// On one node: by how much it lacks each amount, and who could give it back.
struct NodeNeed {
  NodeIndex node = kNoIndex;
  std::vector<cluster::ResourceAmount> lacking;
  std::vector<PlacementIndex> placed;
  int64_t gpu_milli = 0;  // that the pod wants of one GPU, and no GPU has left
  bool IsNothing() const { return lacking.empty() && gpu_milli == 0; }
};

std::vector<Gpu> GpusOf(const ClusterSnapshot& snapshot, const NodeNeed& need) {
  std::map<size_t, Gpu> gpus;
  for (const auto& left : snapshot.GpusLeft(need.node)) gpus[left.device].left = left.milli;
  for (const PlacementIndex index : need.placed) {
    const Placement& placement = snapshot.At(index);
    const int64_t milli = snapshot.Shape(placement.shape).gpu_milli;
    for (const size_t device : placement.devices.Positions()) {
      const auto gpu = gpus.find(device);
      if (gpu == gpus.end()) continue;
      gpu->second.users.emplace_back(placement.holder, milli == 0 ? cluster::kWholeGpu : milli);
      gpu->second.is_shared |= milli != 0;
    }
  }
  std::vector<Gpu> out;
  for (auto& [device, gpu] : gpus) out.push_back(std::move(gpu));
  return out;
}

// Who of a GPU's users has to end, beside `out`, so that so much of it is left.
std::optional<Unblocking::Holders> ToFree(Gpu gpu, int64_t milli, const Unblocking::Holders& out,
                                          const std::set<HolderIndex>& own) {
  Unblocking::Holders more;
  const auto ends = [&](HolderIndex holder) {
    return Contains(out, holder) || Contains(more, holder);
  };
  std::stable_sort(gpu.users.begin(), gpu.users.end(), [&](const auto& a, const auto& b) {
    const bool a_ends = ends(a.first), b_ends = ends(b.first);
    return a_ends != b_ends ? a_ends : a.second > b.second;
  });
  for (const auto& [holder, has] : gpu.users) {
    if (gpu.left >= milli && !ends(holder)) continue;
    if (own.contains(holder)) continue;
    if (!ends(holder)) more.push_back(holder);
    gpu.left += has;
  }
  if (gpu.left < milli) return std::nullopt;
  return more;
}

// So many shared GPUs become whole ones when all of `out` end, and so much is left of one GPU: with
// the fewest more. False if they cannot.
bool CoverGpus(const ClusterSnapshot& snapshot, const NodeNeed& need, int64_t whole,
               const std::set<HolderIndex>& own, Unblocking::Holders& out) {
  if (whole <= 0 && need.gpu_milli == 0) return true;
  std::vector<Gpu> gpus = GpusOf(snapshot, need);
  if (whole > 0) std::erase_if(gpus, [](const Gpu& gpu) { return !gpu.is_shared; });
  const int64_t milli = whole > 0 ? int64_t{cluster::kWholeGpu} : need.gpu_milli;
  for (int64_t lacking = std::max<int64_t>(whole, 1); lacking > 0; --lacking) {
    auto best = gpus.end();
    Unblocking::Holders fewest;
    for (auto gpu = gpus.begin(); gpu != gpus.end(); ++gpu) {
      std::optional<Unblocking::Holders> more = ToFree(*gpu, milli, out, own);
      if (!more.has_value() || (best != gpus.end() && more->size() >= fewest.size())) continue;
      best = gpu;
      fewest = std::move(*more);
    }
    if (best == gpus.end()) return false;
    gpus.erase(best);
    out.insert(out.end(), fewest.begin(), fewest.end());
  }
  return true;
}

// `out` has to end anyway. With them those who cover most of what the node lacks, until nothing is
// lacking; empty if they cannot.
Unblocking::Holders CoverAmounts(const ClusterSnapshot& snapshot, NodeNeed need,
                                 const std::set<HolderIndex>& own, Unblocking::Holders out) {
  std::map<HolderIndex, std::vector<int64_t>> gives;  // by position in `lacking`
  for (const PlacementIndex index : need.placed) {
    const Placement& placement = snapshot.At(index);
    if (own.contains(placement.holder)) continue;
    std::vector<int64_t>& amounts = gives[placement.holder];
    amounts.resize(need.lacking.size(), 0);
    for (size_t i = 0; i < need.lacking.size(); ++i)
      amounts[i] += snapshot.Shape(placement.shape).AmountOf(need.lacking[i].resource);
  }
  const auto take = [&](std::map<HolderIndex, std::vector<int64_t>>::iterator giver) {
    for (size_t i = 0; i < need.lacking.size(); ++i) need.lacking[i].amount -= giver->second[i];
    gives.erase(giver);
  };
  for (const HolderIndex holder : out) {
    if (const auto found = gives.find(holder); found != gives.end()) take(found);
  }
  while (true) {
    auto best = gives.end();
    double most = 0;
    for (auto giver = gives.begin(); giver != gives.end(); ++giver) {
      double covers = 0;
      for (size_t i = 0; i < need.lacking.size(); ++i) {
        if (need.lacking[i].amount <= 0) continue;
        covers += std::min(1.0, static_cast<double>(giver->second[i]) /
                                    static_cast<double>(need.lacking[i].amount));
      }
      if (covers > most) {
        most = covers;
        best = giver;
      }
    }
    if (best == gives.end()) break;
    out.push_back(best->first);
    take(best);
  }
  int64_t whole_gpus = 0;
  const bool covered = std::all_of(
      need.lacking.begin(), need.lacking.end(), [&](const cluster::ResourceAmount& lack) {
        const bool is_gpu = snapshot.ResourceName(lack.resource) == cluster::resource::kNvidiaGpu;
        if (is_gpu) whole_gpus = lack.amount;
        return is_gpu || lack.amount <= 0;
      });
  return covered && CoverGpus(snapshot, need, whole_gpus, own, out) ? out : Unblocking::Holders{};
}

}  // namespace

class Unblocking::Ended {
 public:
  Ended(NodeFinder& finder, const Holders& holders) : finder_(finder) {
    const ClusterSnapshot& snapshot = finder.snapshot();
    for (PlacementIndex index = 0; index < snapshot.placement_slots(); ++index) {
      const Placement placement = snapshot.At(index);
      if (placement.node == kNoIndex || !Contains(holders, placement.holder)) continue;
      removed_.push_back(placement);
      finder.Remove(index);
    }
  }
  ~Ended() {
    // From the last on, so that each gets the slot that it had: others remember theirs.
    for (auto placement = removed_.rbegin(); placement != removed_.rend(); ++placement) {
      finder_.Place(placement->shape, placement->node, placement->holder, placement->devices,
                    placement->identity);
    }
  }
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;

 private:
  NodeFinder& finder_;
  std::vector<Placement> removed_;
};

bool Unblocking::Spend(size_t pods) {
  const size_t work = finder_.snapshot().placement_slots() / kSlotsPerPodOfWork + pods;
  if (work > work_left_) return false;
  work_left_ -= work;
  return true;
}

bool Unblocking::FitsWithout(const Unit& unit, const Holders& holders) {
  if (!Spend(unit.pods.size())) return false;
  const Ended ended(finder_, holders);
  const GangAttempt attempt = PlaceGang(unit, finder_, search_);
  TakeBack(attempt, finder_);
  return !attempt.placed.empty();
}

Unblocking::Holders Unblocking::Search(const Unit& unit, size_t pod, const Holding& holding,
                                       int64_t missing) {
  const std::set<HolderIndex> own = OwnHolders(unit);
  Holding others = holding;
  std::erase_if(others, [&](const auto& each) { return own.contains(each.first); });
  Holders candidates;  // to be tried alone, from the least on
  for (const auto& [holder, amount] : others) {
    if (candidates.size() == kMaxHoldersTried) break;
    if (amount >= missing) candidates.push_back(holder);
  }
  std::reverse(candidates.begin(), candidates.end());
  if (Spend(1)) {
    const Obstacles obstacles(finder_, unit.pods[pod]);
    for (const HolderIndex holder : obstacles.holders()) {
      if (candidates.size() == 2 * kMaxHoldersTried) break;
      if (!own.contains(holder) && !Contains(candidates, holder)) candidates.push_back(holder);
    }
  }
  // The end of one job may help the pods of a gang in several ways, and give back shares of GPUs
  // that nobody else shares.
  if (unit.Needed() > 1 || finder_.snapshot().HasShares()) {
    for (const HolderIndex holder : Running(finder_.snapshot())) {
      if (candidates.size() >= kMaxHoldersTried) break;
      if (!own.contains(holder) && !Contains(candidates, holder)) candidates.push_back(holder);
    }
  }
  Holders found = SearchOne(unit, candidates);
  if (found.empty() && unit.Needed() > 1) found = SearchLargest(unit, others, missing);
  if (found.empty()) found = SearchByNode(unit);
  return found.size() < 2 ? found : Shrink(unit, std::move(found));
}

Unblocking::Holders Unblocking::SearchOne(const Unit& unit, const Holders& candidates) {
  for (const HolderIndex holder : candidates) {
    if (FitsWithout(unit, {holder})) return {holder};
  }
  return {};
}

Unblocking::Holders Unblocking::SearchLargest(const Unit& unit, const Holding& holding,
                                              int64_t missing) {
  Holders ended;
  int64_t freed = 0;
  for (const auto& [holder, amount] : holding) {
    if (ended.size() == kMaxHoldersTried) break;
    ended.push_back(holder);
    freed += amount;
    if (ended.size() > 1 && freed >= missing && FitsWithout(unit, ended)) return ended;
  }
  return {};
}

Unblocking::Holders Unblocking::SearchByNode(const Unit& unit) {
  Holders ended;
  while (ended.size() <= kMaxHoldersTried && Spend(unit.pods.size())) {
    const Ended gone(finder_, ended);
    const GangAttempt attempt = PlaceWhatFits(unit, finder_);
    const bool fits = static_cast<int64_t>(attempt.placed.size()) >= unit.Needed();
    const Holders more = fits ? Holders{} : FewestFor(unit, attempt.first_unplaced.value_or(0));
    TakeBack(attempt, finder_);
    if (fits) return ended;
    if (more.empty()) return {};
    ended.insert(ended.end(), more.begin(), more.end());
  }
  return {};
}

Unblocking::Holders Unblocking::FewestFor(const Unit& unit, size_t position) {
  const ClusterSnapshot& snapshot = finder_.snapshot();
  const QueuedPod& pod = unit.pods[position];
  const cluster::Shape& shape = snapshot.Shape(pod.shape);
  if (!shape.unknown_resource.empty() || !Spend(1)) return {};
  const std::set<HolderIndex> own = OwnHolders(unit);
  const Obstacles obstacles(finder_, pod);
  NodeFilter filter(snapshot, shape);
  std::map<NodeIndex, NodeNeed> needs;
  for (NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node) || !filter.Passes(node) || !snapshot.OffersAmounts(shape, node))
      continue;
    NodeNeed& need = needs[node];
    need.node = node;
    for (const cluster::ResourceAmount& request : shape.requests) {
      const int64_t lacking = request.amount - snapshot.Free(node, request.resource);
      if (lacking <= 0) continue;
      // In sum it may be there: what counts is what one GPU has.
      if (snapshot.ResourceName(request.resource) == cluster::resource::kGpuMilli) {
        need.gpu_milli = request.amount;
      } else {
        need.lacking.push_back({request.resource, lacking});
      }
    }
  }
  for (PlacementIndex index = 0; index < snapshot.placement_slots(); ++index) {
    const auto need = needs.find(snapshot.At(index).node);
    if (need != needs.end() && !need->second.IsNothing()) need->second.placed.push_back(index);
  }
  std::vector<std::pair<size_t, Holders>> sets;
  for (auto& [node, need] : needs) {
    Holders in_the_way = obstacles.KeepingFrom(node);
    std::erase_if(in_the_way, [&](HolderIndex holder) { return own.contains(holder); });
    Holders set = CoverAmounts(snapshot, std::move(need), own, std::move(in_the_way));
    if (!set.empty() && set.size() <= kMaxHoldersTried)
      sets.emplace_back(set.size(), std::move(set));
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Holders last;
  size_t tried = 0;
  for (auto& [size, set] : sets) {
    if (set == last) continue;
    if (++tried > kMaxNodesTried || !Spend(1)) return {};
    const Ended ended(finder_, set);
    if (finder_.Best(pod.shape, pod.identity) != kNoIndex) return set;
    last = std::move(set);
  }
  return {};
}

// Leaves out, from the last found on, whoever need not end.
Unblocking::Holders Unblocking::Shrink(const Unit& unit, Holders holders) {
  for (size_t i = 0; i < holders.size() && holders.size() > 1;) {
    Holders fewer = holders;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    if (FitsWithout(unit, fewer)) {
      holders = std::move(fewer);
    } else {
      ++i;
    }
  }
  return holders;
}

}  // namespace muster::scheduler
