// tests/durability/churn.h
//
// A long life in a short time: millions of updates of a small working set, as a cluster makes them
// (leases, events that come and go, pods), through a real store on real files, compacted as in
// production on simulated time. The database, its log and the memory must stay small and flat.
//
// Thread: one; commits are tasks of the loop.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::durability {

struct ChurnOptions {
  int64_t updates = 1'000'000;
  // Updates a second of simulated time; 0: time stands still, so nothing compacts but the store's
  // own bounds.
  int64_t rate = 100;
  int samples = 20;
  double max_database_mb = 0;  // every sample; 0: print only
  double max_growth_mb = 0;    // resident memory from the middle to the end; 0: print only
};

// Prints a curve; returns the violations.
std::vector<std::string> RunChurn(const ChurnOptions& options);

}  // namespace muster::durability
