// src/store/store_check.h
//
// Reads a whole store file and says what is wrong with it: SQLite's own check, the revisions (no
// gaps after the compacted one, none missing that were acknowledged), each key's life, and every
// value. Works on a read-only medium, too.
//
// Thread: any; blocking. The store may be in use: one read transaction sees one moment of it.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace muster::store {

inline constexpr size_t kMaxReportedFaults = 100;  // further ones are only counted

struct StoreReport {
  Revision revision = 0;
  Revision compacted = 0;
  int64_t revisions = 0;  // in the log
  int64_t objects = 0;    // alive
  int64_t bytes = 0;      // of all values
  int64_t fault_count = 0;
  std::vector<std::string> faults;
};

// Ok, or what is wrong with a value. It has its revision in it already.
using ValueCheck = std::function<Status(std::string_view key, std::string_view value)>;
// How many of how many steps are done; called often.
using Progress = std::function<void(int64_t done, int64_t total)>;

// An error if the file cannot be read as a store at all.
Result<StoreReport> CheckStore(const std::string& path, const ValueCheck& check_value,
                               const Progress& progress);

}  // namespace muster::store
