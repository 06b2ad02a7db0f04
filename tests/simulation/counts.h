// tests/simulation/counts.h
//
// How often every fault and every rare branch happened over all seeds. A zero means that the
// simulation no longer tests what it claims to, and is a failure.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::simulation {

class Counts {
 public:
  // Every name that must have been counted in the end.
  explicit Counts(const std::vector<std::string_view>& expected) {
    for (const std::string_view name : expected) counts_.emplace(name, 0);
  }
  void Add(std::string_view name, int64_t times = 1) { counts_[std::string(name)] += times; }
  const std::map<std::string, int64_t>& all() const { return counts_; }

 private:
  std::map<std::string, int64_t> counts_;
};

}  // namespace muster::simulation
