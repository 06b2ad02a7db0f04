// src/schema/index_intervals.h
//
// The indexes of an indexed Job as its status and its successPolicy write them: "1,3-5,7".
//
// Thread:     any (pure functions).
// Invariants: intervals ascend and do not touch each other's numbers.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::schema {

struct IndexInterval {
  int64_t first = 0, last = 0;  // both inclusive
};

// BadRequest in upstream's words: "too large index: \"7\"". Indexes are less than `completions`.
Result<std::vector<IndexInterval>> ParseIndexIntervals(std::string_view text, int64_t completions);
int64_t CountIndexes(const std::vector<IndexInterval>& intervals);

}  // namespace muster::schema
