#include "scheduler/packing.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "scheduler/packing_terms.h"
#include "scheduler/rules.h"

namespace muster::scheduler {

using cluster::GpuAsk;
using cluster::GpuState;
using cluster::kNoIndex;
using cluster::NodeIndex;
using cluster::ResourceIndex;
using cluster::ShapeIndex;

namespace {

// Prices are learned anew when a pod in so many came, went or changed.
constexpr int64_t kChangedShare = 8;

bool MayBePacked(const GpuAsk& ask) { return ask.gpus <= cluster::kMaxGpusPerNode; }

std::vector<int64_t> PodsOfShapes(const cluster::ClusterSnapshot& snapshot, const Queue& queue) {
  std::vector<int64_t> pods(snapshot.shape_slots(), 0);
  for (cluster::PlacementIndex i = 0; i < snapshot.placement_slots(); ++i)
    if (snapshot.At(i).node != kNoIndex) ++pods[snapshot.At(i).shape];
  for (const Unit& unit : queue)
    for (const QueuedPod& pod : unit.pods) ++pods[pod.shape];
  return pods;
}

size_t CountGpuPods(const cluster::ClusterSnapshot& snapshot, const std::vector<int64_t>& pods) {
  int64_t count = 0;
  for (ShapeIndex shape = 0; shape < pods.size(); ++shape) {
    if (pods[shape] > 0 && AskOf(snapshot, snapshot.Shape(shape)).gpus > 0) count += pods[shape];
  }
  return static_cast<size_t>(count);
}

bool IsDue(const Packing& before, const std::vector<int64_t>& pods, size_t nodes) {
  if (before.nodes != nodes) return true;
  int64_t changed = 0, total = 0;
  for (size_t shape = 0; shape < std::max(pods.size(), before.pods_of_shape.size()); ++shape) {
    const int64_t now = shape < pods.size() ? pods[shape] : 0;
    const int64_t then = shape < before.pods_of_shape.size() ? before.pods_of_shape[shape] : 0;
    changed += std::abs(now - then);
    total += now;
  }
  return changed * kChangedShare > total;
}

// What there is to learn from, in terms of packing.
class Lesson {
 public:
  explicit Lesson(const cluster::ClusterSnapshot& snapshot)
      : snapshot_(snapshot), gpus_(GpuResources(snapshot)) {
    for (NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
      if (!snapshot.HasNode(node)) continue;
      const ResourceIndex gpu = GpuOf(snapshot, node, gpus_);
      if (gpu == kNoIndex) continue;
      const uint8_t model = ModelIndex(ModelName(snapshot, node, gpu));
      nodes_.push_back(StateOf(snapshot, node, gpu, model, Room::kOffered));
      ++states_[StateOf(snapshot, node, gpu, model, Room::kFree)];
      models_of_class_[snapshot.ClassOf(node)] |= uint32_t{1} << model;
    }
  }

  bool HasGpus() const {
    return std::any_of(nodes_.begin(), nodes_.end(), [](const GpuState& node) {
      return node.gpus > 0 && node.cpu_milli > 0 && node.memory_mib > 0;
    });
  }

  cluster::PodMix Mix(const std::vector<int64_t>& pods_of_shape) {
    cluster::PodMix mix;
    for (ShapeIndex shape = 0; shape < pods_of_shape.size(); ++shape) {
      if (pods_of_shape[shape] == 0) continue;
      GpuAsk ask = AskOf(snapshot_, snapshot_.Shape(shape));
      if (!MayBePacked(ask)) continue;
      if (ask.gpus > 0 && !NameModels(snapshot_.Shape(shape), ask)) continue;
      mix.Add(ask, static_cast<double>(pods_of_shape[shape]));
    }
    return mix;
  }

  std::shared_ptr<const Packing> Solve(const Packing* before, const cluster::PodMix& mix,
                                       std::vector<int64_t> pods_of_shape) {
    const bool goes_on =
        before != nullptr && before->models == models_ && before->nodes == snapshot_.node_count();
    auto packing = std::make_shared<Packing>(
        Packing{models_, goes_on ? before->prices : cluster::PackingPrices(nodes_),
                std::move(pods_of_shape), snapshot_.node_count()});
    packing->prices.Solve({states_.begin(), states_.end()}, mix);
    return packing;
  }

 private:
  uint8_t ModelIndex(const std::string& name) {
    const auto found = std::find(models_.begin(), models_.end(), name);
    const auto index = static_cast<size_t>(found - models_.begin());
    if (found == models_.end() && models_.size() < cluster::kMaxGpuModels) models_.push_back(name);
    return static_cast<uint8_t>(std::min<size_t>(index, cluster::kMaxGpuModels - 1));
  }

  // Sets ask.models. False if no node may ever take the pod.
  bool NameModels(const cluster::Shape& shape, GpuAsk& ask) {
    uint32_t all = 0, named = 0;
    for (const auto& [index, models] : models_of_class_) {
      all |= models;
      // A pod that names nodes names no model by that.
      if (shape.names_nodes ||
          CheckRules(shape, snapshot_.Class(index),
                     cluster::NodeLabels{snapshot_.Class(index).labels, "", false, ""})
                  .rule == Rule::kPasses)
        named |= models;
    }
    ask.models = named == all ? 0 : named;
    return named != 0;
  }

  const cluster::ClusterSnapshot& snapshot_;
  const std::vector<ResourceIndex> gpus_;
  std::vector<std::string> models_;
  std::vector<GpuState> nodes_;        // empty
  std::map<GpuState, double> states_;  // as they are: how many nodes
  std::map<cluster::ClassIndex, uint32_t> models_of_class_;
};

}  // namespace

std::shared_ptr<const Packing> Learn(const cluster::ClusterSnapshot& snapshot, const Queue& queue,
                                     std::shared_ptr<const Packing> before) {
  if (GpuResources(snapshot).empty()) return nullptr;
  std::vector<int64_t> pods = PodsOfShapes(snapshot, queue);
  if (before != nullptr && !IsDue(*before, pods, snapshot.node_count())) return before;
  // Looking at all nodes is for those that have pods to learn from.
  if (CountGpuPods(snapshot, pods) < kLeastGpuPods) return nullptr;
  Lesson lesson(snapshot);
  if (!lesson.HasGpus()) return nullptr;
  const cluster::PodMix mix = lesson.Mix(pods);
  double with_gpus = 0;
  for (const cluster::AskKind& kind : mix.kinds()) with_gpus += kind.count;
  if (with_gpus < kLeastGpuPods) return nullptr;
  return lesson.Solve(before.get(), mix, std::move(pods));
}

}  // namespace muster::scheduler
