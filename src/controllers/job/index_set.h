// src/controllers/job/index_set.h
//
// IndexSet: which completion indexes of an Indexed Job, as its status writes them: "1,3-5,7".
//
// Thread: any (a value).

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::controllers {

class IndexSet {
 public:
  // Indexes from `completions` on are left out, and so is what cannot be read.
  static IndexSet Parse(std::string_view text, int64_t completions);

  void Add(int64_t index) { AddRange(index, index); }
  void Add(const IndexSet& other);

  bool Has(int64_t index) const;
  int64_t size() const;
  bool empty() const { return last_of_first_.empty(); }
  // How many of these are in `other` too.
  int64_t CountIn(const IndexSet& other) const;
  // The lowest indexes below `completions` that it lacks, at most `count`.
  std::vector<int64_t> Missing(int64_t completions, size_t count) const;
  // Two neighbours are written apart: "1,2,4-6".
  std::string ToString() const;

  bool operator==(const IndexSet&) const = default;

 private:
  void AddRange(int64_t first, int64_t last);

  std::map<int64_t, int64_t> last_of_first_;  // ranges that neither overlap nor touch
};

}  // namespace muster::controllers
