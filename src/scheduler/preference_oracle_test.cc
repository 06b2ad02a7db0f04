// The order of nodes against a plain second implementation of what preferences.h and node_finder.h
// say: on thousands of random small clusters Best() is the first node in that order among all that
// take the pod, while pods are placed and taken away.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/seeds_test_support.h"
#include "scheduler/random_cluster_test_support.h"

namespace muster::scheduler {
namespace {

using json::Value;
using plain::World;

constexpr int64_t kSeeds = SeedsOf(3'000);
constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

// -- Raw values.

long Unwelcome(const Value& pod, const Value& node) {
  long count = 0;
  for (const Value& taint : node["spec"]["taints"].items())
    count += taint["effect"].AsString() == "PreferNoSchedule" && !plain::Tolerated(pod, taint);
  return count;
}

long PreferredTerms(const Value& pod, const Value& node) {
  long sum = 0;
  for (const Value& each : pod["spec"]["affinity"]["nodeAffinity"][kPreferred].items())
    sum += plain::TermHolds(each["preference"], node) ? each["weight"].AsInt() : 0;
  return sum;
}

// What terms of `owner` that mean `other` are worth, if the two are on these nodes.
long Pull(const World& world, const Value& owner, const Value& other, const Value& a,
          const Value& b) {
  long sum = 0;
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const long sign = std::string(kind) == "podAffinity" ? 1 : -1;
    for (const Value& each : owner["spec"]["affinity"][kind][kPreferred].items()) {
      const Value& term = each["podAffinityTerm"];
      if (plain::TermMeans(world, owner, term, other) &&
          plain::InOneDomain(term["topologyKey"].Str(), a, b))
        sum += sign * each["weight"].AsInt();
    }
  }
  return sum;
}

long Pulls(const World& world, const Value& pod, const Value& node) {
  long sum = 0;
  for (const auto& [name, other] : world.pods) {
    for (const Value& place : world.nodes) {
      if (!plain::RunsOn(other, place)) continue;
      sum += Pull(world, pod, other, node, place) + Pull(world, other, pod, node, place);
      for (const Value& term : plain::Required(other, "podAffinity").items()) {
        sum += plain::TermMeans(world, other, term, pod) &&
               plain::InOneDomain(term["topologyKey"].Str(), node, place);
      }
    }
  }
  return sum;
}

bool Spreads(const Value& pod) {
  return pod["spec"]["schedulerName"].AsString() == "muster-spread";
}

bool HasDefaults(const Value& pod) {
  return Spreads(pod) && pod["spec"]["topologySpreadConstraints"].empty();
}

std::vector<Value> Anyway(const Value& pod) {
  if (!HasDefaults(pod)) return plain::Constraints(pod, "ScheduleAnyway");
  std::vector<Value> out;
  for (const char* key : {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}) {
    out.push_back(
        json::Obj({{"topologyKey", key},
                   {"maxSkew", 1},
                   {"labelSelector", json::Obj({{"matchLabels", pod["metadata"]["labels"]}})}}));
  }
  return out;
}

long CountNear(const World& world, const Value& pod, const Value& constraint, const Value& node) {
  long count = 0;
  for (const Value& place : world.nodes) {
    if (!plain::InOneDomain(constraint["topologyKey"].Str(), node, place)) continue;
    if (!HasDefaults(pod) && !plain::HasAllKeys(Anyway(pod), place)) continue;
    if (!plain::CountsForSpread(pod, constraint, place)) continue;
    for (const auto& [name, other] : world.pods) {
      count += plain::RunsOn(other, place) && !other["metadata"].Has("deletionTimestamp") &&
               plain::SpreadMeans(pod, constraint, other);
    }
  }
  return count;
}

long Crowding(const World& world, const Value& pod, const Value& node,
              const std::vector<Value>& admitted) {
  double sum = 0;
  for (const Value& constraint : Anyway(pod)) {
    const std::string key = constraint["topologyKey"].Str();
    if (!plain::Label(node["metadata"]["labels"], key)) continue;
    std::set<std::string> domains;
    for (const Value& each : admitted) {
      if (!HasDefaults(pod) && !plain::HasAllKeys(Anyway(pod), each)) continue;
      if (const auto value = plain::Label(each["metadata"]["labels"], key)) domains.insert(*value);
    }
    sum += static_cast<double>(CountNear(world, pod, constraint, node)) *
               std::log(static_cast<double>(domains.size()) + 2) +
           static_cast<double>(constraint["maxSkew"].AsInt() - 1);
  }
  return std::lround(sum);
}

long ImageScore(const World& world, const Value& pod, const Value& node) {
  const auto bytes_on = [](const Value& place, const std::string& image) {
    for (const Value& each : place["status"]["images"].items()) {
      if (plain::IsOneOf(image, each["names"]) || plain::IsOneOf(image + ":latest", each["names"]))
        return static_cast<long>(each["sizeBytes"].AsInt());
    }
    return 0L;
  };
  long sum = 0;
  long containers = 0;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Value& container : pod["spec"][list].items()) {
      const std::string image = container["image"].Str();
      const long with = std::count_if(world.nodes.begin(), world.nodes.end(),
                                      [&](const Value& each) { return bytes_on(each, image) > 0; });
      ++containers;
      sum += bytes_on(node, image) * with / static_cast<long>(world.nodes.size());
    }
  }
  const long least = 23L << 20;
  const long most = (1000L << 20) * containers;
  return 100 * (std::clamp(sum, least, most) - least) / (most - least);
}

// -- The order.

struct Extremes {
  long least = std::numeric_limits<long>::max();
  long most = std::numeric_limits<long>::min();
};

template <class Raw>
Extremes ExtremesOf(const std::vector<Value>& nodes, Raw raw) {
  Extremes out;
  for (const Value& node : nodes) {
    out.least = std::min(out.least, raw(node));
    out.most = std::max(out.most, raw(node));
  }
  return out;
}

class PlainOrder {
 public:
  PlainOrder(const World& world, const Value& pod) : world_(world), pod_(pod) {
    for (const Value& node : world.nodes) {
      if (plain::OwnReason(pod, node)) continue;
      admitted_.push_back(node);
      if (HasDefaults(pod) || plain::HasAllKeys(Anyway(pod), node)) with_keys_.push_back(node);
    }
    taints_ = ExtremesOf(admitted_, [&](const Value& n) { return Unwelcome(pod, n); });
    terms_ = ExtremesOf(admitted_, [&](const Value& n) { return PreferredTerms(pod, n); });
    pulls_ = ExtremesOf(admitted_, [&](const Value& n) { return Pulls(world, pod, n); });
    crowds_ =
        ExtremesOf(with_keys_, [&](const Value& n) { return Crowding(world, pod, n, admitted_); });
  }

  // Smaller is better. REQUIRES: the node takes the pod.
  std::vector<long> Of(const Value& node, size_t index) const {
    const bool wants = plain::Demand(pod_, "nvidia.com/gpu") > 0;
    const bool has = plain::Amount(node["status"]["allocatable"], "nvidia.com/gpu") > 0;
    long gpus = wants || has ? Free(node, "nvidia.com/gpu") : 0;
    long cpu = Free(node, "cpu");
    if (Spreads(pod_)) {
      gpus = -gpus;
      cpu = -cpu;
    }
    const long spread = 2 * (100 - SpreadScore(node));
    long stated =
        3 * (100 - TaintScore(node)) + 2 * (100 - TermScore(node)) + 2 * (100 - PullScore(node));
    long implied = 100 - ImageScore(world_, pod_, node);
    (HasDefaults(pod_) ? implied : stated) += spread;
    return {stated, !wants && has ? 1 : 0, implied, gpus, cpu, static_cast<long>(index)};
  }

 private:
  long Free(const Value& node, const std::string& name) const {
    long free = plain::Amount(node["status"]["allocatable"], name);
    for (const auto& [key, other] : world_.pods) {
      if (plain::RunsOn(other, node)) free -= plain::Demand(other, name);
    }
    return free;
  }
  long TaintScore(const Value& node) const {
    return taints_.most == 0 ? 100 : 100 - 100 * Unwelcome(pod_, node) / taints_.most;
  }
  long TermScore(const Value& node) const {
    return terms_.most == 0 ? 0 : 100 * PreferredTerms(pod_, node) / terms_.most;
  }
  long PullScore(const Value& node) const {
    if (pulls_.most == pulls_.least) return 0;
    return 100 * (Pulls(world_, pod_, node) - pulls_.least) / (pulls_.most - pulls_.least);
  }
  long SpreadScore(const Value& node) const {
    if (Anyway(pod_).empty()) return 100;
    if (!HasDefaults(pod_) && !plain::HasAllKeys(Anyway(pod_), node)) return 0;
    if (crowds_.most == 0) return 100;
    const long here = Crowding(world_, pod_, node, admitted_);
    return 100 * (crowds_.most + crowds_.least - here) / crowds_.most;
  }

  const World& world_;
  const Value& pod_;
  std::vector<Value> admitted_, with_keys_;
  Extremes taints_, terms_, pulls_, crowds_;
};

TEST(PreferenceOracle, BestIsTheFirstInTheStatedOrderWhilePodsComeAndGo) {
  int64_t choices = 0;
  std::map<std::string, int64_t> decided_by;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomCluster random(seed);
    random.Play(12, [&](NodeFinder& finder, const Value& pod) {
      const PlainOrder order(random.world, pod);
      std::vector<std::vector<long>> ranks;
      for (size_t index = 0; index < random.world.nodes.size(); ++index) {
        const Value& node = random.world.nodes[index];
        if (plain::Reasons(random.world, pod, node).empty()) ranks.push_back(order.Of(node, index));
      }
      std::sort(ranks.begin(), ranks.end());
      const cluster::PodRecord& record = random.Record(pod);
      const cluster::NodeIndex best = finder.Best(record.shape, record.identity);
      EXPECT_EQ(best, ranks.empty() ? cluster::kNoIndex
                                    : static_cast<cluster::NodeIndex>(ranks.front().back()))
          << fmt::format("seed {} pod {}", seed, pod["metadata"]["name"].Str());
      if (ranks.size() < 2) return best;
      ++choices;
      const auto [differs, other] =
          std::mismatch(ranks[0].begin(), ranks[0].end(), ranks[1].begin());
      static const char* const kNames[] = {"stated", "devices", "implied", "gpus", "cpu", "index"};
      ++decided_by[kNames[differs - ranks[0].begin()]];
      return best;
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  fmt::print("result: order of nodes, {} choices\n", choices);
  for (const auto& [what, times] : decided_by) {
    fmt::print("result: order of nodes, {} times by {}\n", times, what);
    EXPECT_GT(times, kSeeds / 100) << what;
  }
  EXPECT_EQ(decided_by.size(), 6u);
}

}  // namespace
}  // namespace muster::scheduler
