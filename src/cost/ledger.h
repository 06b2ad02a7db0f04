// src/cost/ledger.h
//
// Ledger: what pods and nodes that are gone held, as rows without prices. The spec of a CostLedger
// object (cost.muster.dev/v1alpha1), or many of them together.
//
// Thread: any (values and pure functions).
// Invariants: amounts and times are not negative, from <= to.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "cost/machine.h"
#include "cost/pod_use.h"
#include "json/value.h"

namespace muster::cost {

// Rows of one object. Beyond them the smallest lose their workloads, then their labels, then their
// namespaces.
inline constexpr size_t kMaxLedgerRows = 1000;
// Likewise of nodes; beyond them the shortest are dropped.
inline constexpr size_t kMaxLedgerNodes = 5000;
// Where a row beyond them goes.
inline constexpr std::string_view kOthers = "(others)";

struct Interval {
  Time from{}, to{};
  auto operator<=>(const Interval&) const = default;
};

struct PodRow {
  Machine machine;
  std::string ns, workload;
  std::map<std::string, std::string> labels;
  Interval time;
  int64_t pods = 0;
  int64_t cpu_milli_seconds = 0;
  int64_t memory_mib_seconds = 0;
  std::map<std::string, int64_t> gpu_milli_seconds;
  bool operator==(const PodRow&) const = default;
};

struct NodeRow {
  Machine machine;
  std::string name, uid;
  Interval time;
  bool operator==(const NodeRow&) const = default;
};

struct Ledger {
  std::vector<PodRow> pods;
  std::vector<NodeRow> nodes;
  std::vector<Interval> gaps;

  bool IsEmpty() const { return pods.empty() && nodes.empty() && gaps.empty(); }
  void Add(Ledger other);
  bool operator==(const Ledger&) const = default;
};

// The rows of one pod: one for each time in which its node was one machine. Before and after these
// times it costs nothing. `until` stands for the end of a pod that goes on.
void AddPod(const PodUse& use, std::span<const NodeRow> node, Time until, Ledger& out);

// Rows that began and ended in the same slot of this length (of UTC) and differ in nothing else
// become one; at most kMaxLedgerRows of pods and kMaxLedgerNodes of nodes stay.
Ledger Compact(Ledger ledger, Duration slot);

json::Value SpecOf(const Ledger& ledger);
// What cannot be read is left out.
Ledger LedgerOf(const json::Value& spec);

}  // namespace muster::cost
