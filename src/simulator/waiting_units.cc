#include "simulator/waiting_units.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"

namespace muster::simulator {

using cluster::ClusterSnapshot;
using scheduler::Queue;
using scheduler::Unit;

namespace {

std::vector<int64_t> FreeInSum(const ClusterSnapshot& snapshot) {
  std::vector<int64_t> free(snapshot.resource_count(), 0);
  for (cluster::NodeIndex node = 0; node < snapshot.node_slots(); ++node) {
    if (!snapshot.HasNode(node)) continue;
    const auto row = snapshot.FreeRow(node);
    for (size_t resource = 0; resource < row.size(); ++resource)
      free[resource] += std::max<int64_t>(row[resource], 0);
  }
  return free;
}

// At most so many units like this one fit.
int64_t FitInSum(const Unit& unit, const ClusterSnapshot& snapshot,
                 const std::vector<int64_t>& free) {
  std::vector<int64_t> wanted(free.size(), 0);
  for (const scheduler::QueuedPod& pod : unit.pods) {
    for (const cluster::ResourceAmount& request : snapshot.Shape(pod.shape).requests)
      wanted[request.resource] += request.amount;
  }
  int64_t most = INT64_MAX;
  for (size_t resource = 0; resource < free.size(); ++resource) {
    if (wanted[resource] > 0) most = std::min(most, free[resource] / wanted[resource]);
  }
  return most;
}

}  // namespace

WaitingUnits::Key WaitingUnits::KeyOf(const Unit& unit) {
  Key key;
  for (const scheduler::QueuedPod& pod : unit.pods) {
    if (key.empty() || std::get<0>(key.back()) != pod.shape ||
        std::get<1>(key.back()) != pod.identity)
      key.emplace_back(pod.shape, pod.identity, 0);
    ++std::get<2>(key.back());
  }
  return key;
}

Unit WaitingUnits::Add(Unit unit, const ClusterSnapshot& snapshot) {
  Class& of = classes_[KeyOf(unit)];
  of.looks_at_pods = std::any_of(unit.pods.begin(), unit.pods.end(), [&](const auto& pod) {
    return snapshot.Shape(pod.shape).constraints.relations.LooksAtPods();
  });
  const auto [at, added] = of.units.insert(std::move(unit));
  CHECK(added);
  ++size_;
  return *at;
}

void WaitingUnits::Remove(const Unit& unit) {
  const auto found = classes_.find(KeyOf(unit));
  CHECK(found != classes_.end() && found->second.units.erase(unit) == 1);
  if (found->second.units.empty()) classes_.erase(found);
  --size_;
}

const Unit& WaitingUnits::First() const {
  CHECK(size_ > 0);
  const Unit* first = nullptr;
  for (const auto& [key, of] : classes_) {
    const Unit& head = *of.units.begin();
    if (first == nullptr || scheduler::GoesBefore(head, *first)) first = &head;
  }
  return *first;
}

Queue WaitingUnits::All() const {
  Queue queue;
  queue.reserve(size_);
  for (const auto& [key, of] : classes_)
    queue.insert(queue.end(), of.units.begin(), of.units.end());
  return queue;
}

Queue WaitingUnits::WorthATry(const ClusterSnapshot& snapshot) const {
  Queue queue;
  if (size_ == 0) return queue;
  const std::vector<int64_t> free = FreeInSum(snapshot);
  for (const auto& [key, of] : classes_) {
    const int64_t most = of.looks_at_pods ? INT64_MAX : FitInSum(*of.units.begin(), snapshot, free);
    int64_t taken = 0;
    for (auto unit = of.units.begin(); unit != of.units.end() && taken < most; ++unit, ++taken)
      queue.push_back(*unit);
  }
  return queue;
}

Queue WaitingUnits::LookingAtPods(Queue queue) const {
  std::set<std::string> there;
  for (const Unit& unit : queue) there.insert(unit.KeyText());
  for (const auto& [key, of] : classes_) {
    if (!of.looks_at_pods) continue;
    for (const Unit& unit : of.units) {
      if (!there.contains(unit.KeyText())) queue.push_back(unit);
    }
  }
  return queue;
}

}  // namespace muster::simulator
