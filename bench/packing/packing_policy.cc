#include "packing/packing_policy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "packing/fragments.h"
#include "packing/planner_policy.h"

namespace muster::bench {
namespace {

using cluster::GpuAsk;
using cluster::GpuState;

constexpr double kMostCpuMilli = 128'000;  // of one node, and of its GPUs
constexpr double kMostGpuMilli = 8'000;

class Muster final : public PackingPolicy {
 public:
  Muster(const std::vector<GpuState>& nodes, Rng* ties) : packer_(nodes), ties_(ties) {}
  bool Arrive(const GpuAsk& pod) override {
    packer_.Arrived(pod);
    const auto spot = packer_.Choose(pod, ties_);
    if (spot) packer_.Place(pod, *spot);
    return spot.has_value();
  }

 private:
  cluster::GpuPacker packer_;
  Rng* ties_;
};

// Scores every node for itself.
class Scored : public PackingPolicy {
 public:
  Scored(std::vector<GpuState> nodes, Rng* ties) : nodes_(std::move(nodes)), ties_(ties) {}

  bool Arrive(const GpuAsk& pod) override {
    std::optional<cluster::PackingSpot> best;
    double best_score = 0;
    uint64_t equals = 0;
    for (size_t node = 0; node < nodes_.size(); ++node) {
      if (!nodes_[node].Takes(pod)) continue;
      const auto [score, gpu] = Score(nodes_[node], pod);
      if (best && score < best_score) continue;
      equals = best && score == best_score ? equals + 1 : 1;
      if (equals > 1 && (ties_ == nullptr || ties_->Below(equals) != 0)) continue;
      best = cluster::PackingSpot{node, gpu};
      best_score = score;
    }
    if (best) nodes_[best->node].Place(pod, best->gpu);
    return best.has_value();
  }

 protected:
  // The higher the better, and the GPU that a share gets. REQUIRES: node.Takes(pod).
  virtual std::pair<double, int> Score(const GpuState& node, const GpuAsk& pod) = 0;

  static int TightestGpu(const GpuState& node, const GpuAsk& pod) {
    int tightest = 0;
    ForEachChoice(node, pod, [&](int gpu) { tightest = gpu; });
    return tightest;
  }

 private:
  std::vector<GpuState> nodes_;
  Rng* ties_;
};

class Random final : public Scored {
 public:
  Random(std::vector<GpuState> nodes, Rng* ties, Rng& choices)
      : Scored(std::move(nodes), ties), choices_(choices) {}

 private:
  std::pair<double, int> Score(const GpuState& node, const GpuAsk& pod) override {
    int gpu = 0;
    uint64_t seen = 0;
    if (pod.IsShare()) {
      for (int i = 0; i < node.gpus && node.free_milli[i] >= pod.gpu_milli; ++i)
        if (choices_.Below(++seen) == 0) gpu = i;
    }
    return {static_cast<double>(choices_.Next()), gpu};
  }
  Rng& choices_;
};

class BestFit final : public Scored {
 public:
  using Scored::Scored;

 private:
  std::pair<double, int> Score(const GpuState& node, const GpuAsk& pod) override {
    const double cpu = (node.cpu_milli - pod.cpu_milli) / kMostCpuMilli;
    const double gpu = (node.IdleMilli() - pod.TotalMilli()) / kMostGpuMilli;
    return {std::trunc(100 * (1 - (cpu + gpu) / 2)), TightestGpu(node, pod)};
  }
};

class DotProduct final : public Scored {
 public:
  using Scored::Scored;

 private:
  std::pair<double, int> Score(const GpuState& node, const GpuAsk& pod) override {
    const double cpu = pod.cpu_milli / kMostCpuMilli * node.cpu_milli / kMostCpuMilli;
    const double gpu = pod.TotalMilli() / kMostGpuMilli * node.IdleMilli() / kMostGpuMilli;
    return {std::trunc(100 * (1 - (cpu + gpu) / 2)), TightestGpu(node, pod)};
  }
};

class LeastFragments final : public Scored {
 public:
  LeastFragments(std::vector<GpuState> nodes, Rng* ties, const OpenbTrace& trace)
      : Scored(std::move(nodes), ties), fragments_(trace.pods) {}

 private:
  std::pair<double, int> Score(const GpuState& node, const GpuAsk& pod) override {
    const double before = fragments_.Of(node);
    std::pair<double, int> best{-1, 0};
    ForEachChoice(node, pod, [&](int gpu) {
      GpuState after = node;
      after.Place(pod, gpu);
      const double growth = fragments_.Of(after) - before;
      const double score = std::floor(100 / (1 + std::exp(growth / 1000)));
      if (score > best.first) best = {score, gpu};
    });
    return best;
  }
  Fragments fragments_;
};

}  // namespace

std::unique_ptr<PackingPolicy> MakePackingPolicy(const std::string& name, const OpenbTrace& trace,
                                                 std::vector<GpuState> nodes, Rng* ties,
                                                 Rng& choices) {
  if (name == "muster") return std::make_unique<Muster>(nodes, ties);
  if (name == "fgd") return std::make_unique<LeastFragments>(std::move(nodes), ties, trace);
  if (name == "bestfit") return std::make_unique<BestFit>(std::move(nodes), ties);
  if (name == "dotprod") return std::make_unique<DotProduct>(std::move(nodes), ties);
  if (name == "random") return std::make_unique<Random>(std::move(nodes), ties, choices);
  if (name == "planner" && ties == nullptr) return std::make_unique<PlannerPolicy>(nodes);
  return nullptr;
}

}  // namespace muster::bench
