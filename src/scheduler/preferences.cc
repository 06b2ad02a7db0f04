#include "scheduler/preferences.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace muster::scheduler {

using cluster::kNoIndex;
using cluster::NodeIndex;

namespace {

// Upstream's default weights of the plugins.
constexpr int64_t kTaintWeight = 3;
constexpr int64_t kNodeAffinityWeight = 2;
constexpr int64_t kPodAffinityWeight = 2;
constexpr int64_t kSpreadWeight = 2;
constexpr int64_t kImageWeight = 1;
constexpr int64_t kBest = 100;

constexpr int64_t kSmallImage = int64_t{23} << 20;  // bytes: not worth a thought
constexpr int64_t kLargeImage = int64_t{1000} << 20;
constexpr int64_t kLogUnit = 1'000'000;  // logarithms are kept in millionths

uint16_t Lost(int64_t weight, int64_t score) {
  return static_cast<uint16_t>(weight * (kBest - score));
}

struct Range {
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = std::numeric_limits<int64_t>::min();
  void Add(int64_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

}  // namespace

// -- Images.

const ImageNodes::Sizes& ImageNodes::NodesWith(cluster::ImageHash image) {
  const auto [at, added] = known_.try_emplace(image);
  if (!added) return at->second;
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
    if (!snapshot_.HasNode(node)) continue;
    const int64_t bytes = cluster::BytesOf(snapshot_.Node(node).images, image);
    if (bytes > 0) at->second.emplace_back(node, bytes);
  }
  return at->second;
}

std::vector<uint8_t> ImageNodes::Scores(const std::vector<cluster::ImageHash>& images) {
  std::map<NodeIndex, int64_t> saved;
  const auto nodes = static_cast<int64_t>(snapshot_.node_count());
  for (const cluster::ImageHash image : images) {
    const Sizes& with = NodesWith(image);
    for (const auto& [node, bytes] : with)
      saved[node] += bytes * static_cast<int64_t>(with.size()) / nodes;
  }
  const int64_t most = kLargeImage * static_cast<int64_t>(images.size());
  std::vector<uint8_t> out;
  for (const auto& [node, bytes] : saved) {
    const int64_t score =
        kBest * (std::clamp(bytes, kSmallImage, most) - kSmallImage) / (most - kSmallImage);
    if (score == 0) continue;
    out.resize(snapshot_.node_slots(), 0);
    out[node] = static_cast<uint8_t>(score);
  }
  return out;
}

// -- What does not change while pods are placed.

Preferences::Preferences(const cluster::ClusterSnapshot& snapshot, const cluster::Shape& shape,
                         PodRules::Preferred relations, const std::vector<uint8_t>& image_scores,
                         const std::vector<uint8_t>& admitted)
    : snapshot_(snapshot),
      relations_(std::move(relations)),
      by_class_(!shape.names_nodes && image_scores.empty()) {
  RateNodes(shape, image_scores, admitted);
  if (relations_.empty()) return;
  MakeCells(admitted);
  WeighConstraints(admitted);
  CountCells();
  for (Cell& cell : cells_) cell.before = cell.reluctance;
}

void Preferences::RateNodes(const cluster::Shape& shape, const std::vector<uint8_t>& image_scores,
                            const std::vector<uint8_t>& admitted) {
  struct Raw {
    bool known = false;
    int64_t taints = 0;
    int64_t affinity = 0;
  };
  const cluster::PodConstraints& pod = shape.constraints;
  std::vector<Raw> raw(by_class_ ? snapshot_.class_slots() : snapshot_.node_slots());
  int64_t most_taints = 0;
  int64_t most_affinity = 0;
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
    if (!snapshot_.HasNode(node) || admitted[node] == 0) continue;
    Raw& here = raw[by_class_ ? snapshot_.ClassOf(node) : node];
    if (here.known) continue;
    here.known = true;
    here.taints =
        cluster::CountUnwelcome(snapshot_.Class(snapshot_.ClassOf(node)).taints, pod.tolerations);
    here.affinity = cluster::PreferredWeight(pod.affinity, snapshot_.Node(node).labels_view());
    most_taints = std::max(most_taints, here.taints);
    most_affinity = std::max(most_affinity, here.affinity);
  }
  fixed_.resize(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    const int64_t taints = most_taints == 0 ? 0 : kBest * raw[i].taints / most_taints;
    const int64_t affinity = most_affinity == 0 ? 0 : kBest * raw[i].affinity / most_affinity;
    fixed_[i].stated = Lost(kTaintWeight, kBest - taints) + Lost(kNodeAffinityWeight, affinity);
    if (!image_scores.empty()) fixed_[i].implied = Lost(kImageWeight, image_scores[i]);
  }
}

// -- What other pods change.

void Preferences::Split(const PodRules::Topology& topology) {
  std::unordered_map<uint64_t, uint32_t> cells;
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
    const uint64_t parts = uint64_t{cell_of_[node]} << 32 | topology.domain_of[node];
    cell_of_[node] = cells.try_emplace(parts, static_cast<uint32_t>(cells.size())).first->second;
  }
}

void Preferences::MakeCells(const std::vector<uint8_t>& admitted) {
  std::vector<const PodRules::Topology*> topologies;
  for (const PodRules::Pull& pull : relations_.pulls) topologies.push_back(pull.topology);
  for (const PodRules::Spread& spread : relations_.spread) topologies.push_back(spread.topology);
  std::sort(topologies.begin(), topologies.end());
  topologies.erase(std::unique(topologies.begin(), topologies.end()), topologies.end());
  cell_of_.assign(snapshot_.node_slots(), 0);
  for (const PodRules::Topology* topology : topologies) Split(*topology);

  cells_.resize(*std::max_element(cell_of_.begin(), cell_of_.end()) + 1);
  for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
    if (!snapshot_.HasNode(node)) continue;
    Cell& cell = cells_[cell_of_[node]];
    cell.node = node;
    ++cell.nodes;
    cell.admitted |= admitted[node] != 0;
  }
  for (Cell& cell : cells_) {
    for (const PodRules::Spread& spread : relations_.spread) {
      cell.lacks_label |= cell.node != kNoIndex && !spread.constraint->is_default &&
                          spread.topology->domain_of[cell.node] == kNoIndex;
    }
  }
}

void Preferences::WeighConstraints(const std::vector<uint8_t>& admitted) {
  for (const PodRules::Spread& spread : relations_.spread) {
    std::vector<uint8_t> has_nodes(spread.count->size(), 0);
    for (NodeIndex node = 0; node < snapshot_.node_slots(); ++node) {
      const uint32_t domain = spread.topology->domain_of[node];
      if (domain == kNoIndex || admitted[node] == 0 || cells_[cell_of_[node]].lacks_label) continue;
      has_nodes[domain] = 1;
    }
    const auto domains = static_cast<double>(std::count(has_nodes.begin(), has_nodes.end(), 1));
    log_weights_.push_back(std::llround(std::log(domains + 2) * kLogUnit));
  }
}

int64_t Preferences::PullOn(NodeIndex node) const {
  int64_t sum = 0;
  for (const PodRules::Pull& pull : relations_.pulls) {
    const uint32_t domain = pull.topology->domain_of[node];
    if (domain != kNoIndex) sum += pull.weight * (*pull.count)[domain];
  }
  return sum;
}

int64_t Preferences::SpreadOn(NodeIndex node) const {
  int64_t sum = 0;
  for (size_t i = 0; i < relations_.spread.size(); ++i) {
    const PodRules::Spread& spread = relations_.spread[i];
    const uint32_t domain = spread.topology->domain_of[node];
    if (domain == kNoIndex) continue;
    sum += (*spread.count)[domain] * log_weights_[i] + (spread.constraint->max_skew - 1) * kLogUnit;
  }
  return (sum + kLogUnit / 2) / kLogUnit;
}

void Preferences::CountCells() {
  Range pulls;
  Range spreads;
  for (Cell& cell : cells_) {
    if (cell.node == kNoIndex || !cell.admitted) continue;
    cell.pull = PullOn(cell.node);
    pulls.Add(cell.pull);
    if (cell.lacks_label) continue;
    cell.spread = SpreadOn(cell.node);
    spreads.Add(cell.spread);
  }
  const bool is_default = !relations_.spread.empty() && relations_.spread[0].constraint->is_default;
  for (Cell& cell : cells_) {
    if (cell.node == kNoIndex || !cell.admitted) continue;
    cell.reluctance = {};
    if (pulls.most > pulls.least) {
      cell.reluctance.stated +=
          Lost(kPodAffinityWeight, kBest * (cell.pull - pulls.least) / (pulls.most - pulls.least));
    }
    if (relations_.spread.empty()) continue;
    int64_t score = kBest;
    if (cell.lacks_label) {
      score = 0;
    } else if (spreads.most > 0) {
      score = kBest * (spreads.most + spreads.least - cell.spread) / spreads.most;
    }
    const uint16_t lost = Lost(kSpreadWeight, score);
    (is_default ? cell.reluctance.implied : cell.reluctance.stated) += lost;
  }
}

}  // namespace muster::scheduler
