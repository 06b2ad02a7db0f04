// src/store/sqlite_backend.h
//
// The log in one SQLite file, two connections: the writer's, and one for reads of the past on the
// loop thread.
//
//   store_info  one row: format_version, compact_revision log         revision (primary key), key,
//   create_revision, deleted, slot, value; deletions have no value log_by_key  the single secondary
//   index: (key, revision, deleted), enough to find the present state and what is
//               superseded without reading values
//
// Invariants: nothing but Append and CompactStep writes. What may be forgotten is kept as a list in
//             memory, so that compaction never searches (kine#51, kine#613).

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "store/backend.h"

namespace muster::store {

inline constexpr int kStoreFormatVersion = 1;
// One compaction step ends after this many revisions or this long.
inline constexpr int kMaxCompactionRevisionsPerStep = 1000;
inline constexpr Duration kMaxCompactionStepTime = milliseconds(50);
// The writer checkpoints when idle with this many pages in the WAL, and in any case at the second
// number.
inline constexpr int kCheckpointPagesIdle = 1000;
inline constexpr int kCheckpointPagesBusy = 8000;

// `max_pages` bounds the file (0: no bound); for tests of a full disk.
Result<std::unique_ptr<Backend>> OpenSqliteBackend(const std::string& path, int64_t max_pages = 0);

}  // namespace muster::store
