// src/cost/report.h
//
// Who cost what in a window of time. Formulas: OpenCost, spec/opencost-specv01.md: what a pod costs
// is, for each resource, amount x hours x price; what a node costs beyond its pods is idle.
//
// Thread: any (pure).
// Invariants: the allocations and idle add up to the total, and the total is what the nodes cost in
//             the window. Where pods hold more than their nodes offer (which takes somebody who
//             binds past the scheduler), they share what the nodes cost.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cost/ledger.h"
#include "cost/price_book.h"

namespace muster::cost {

struct Amounts {
  double cpu_hours = 0, memory_gib_hours = 0, gpu_hours = 0;
  double cpu_cost = 0, memory_cost = 0, gpu_cost = 0;

  double Cost() const { return cpu_cost + memory_cost + gpu_cost; }
  Amounts& operator+=(const Amounts& other);
};

struct Allocation {
  std::string name;
  Amounts amounts;
  int64_t pods = 0;
};

struct Report {
  Interval window;
  Duration not_counted{};               // of the window: nobody kept accounts
  std::vector<Allocation> allocations;  // the dearest first
  Amounts idle, total;
};

// `group_of` names the allocation that a row belongs to.
Report MakeReport(const Ledger& ledger, const PriceBook& prices, const Interval& window,
                  const std::function<std::string(const PodRow&)>& group_of);

}  // namespace muster::cost
