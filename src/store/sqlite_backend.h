// src/store/sqlite_backend.h
//
// The log in one SQLite file, three connections: the writer's, one for watches of the past on the
// loop thread, one for Exact reads on the pool.
//
//   store_info  one row: format_version, compact_revision
//   log         revision (primary key), key, create_revision, deleted, slot, value; deletions have
//               no value
//   log_by_key  the single secondary index: (key, revision, deleted), enough to find the present
//               state and what is superseded without reading values
//
// Invariants: nothing but Append and CompactStep writes. What may be forgotten is kept as a list in
//             memory, so that compaction never searches (kine#51, kine#613).

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "loop/task_times.h"
#include "store/backend.h"
#include "store/sqlite_db.h"

namespace muster::store {

// A power cut loses at most this many revisions that were acknowledged as kRelaxed.
inline constexpr size_t kMaxUnsyncedRevisions = 1000;
// One compaction step ends after this many revisions or this long.
inline constexpr int kMaxCompactionRevisionsPerStep = 1000;
inline constexpr Duration kMaxCompactionStepTime = milliseconds(50);
// The writer checkpoints when idle with this many pages in the WAL, and in any case at the second
// number.
inline constexpr int kCheckpointPagesIdle = 1000;
inline constexpr int kCheckpointPagesBusy = 8000;

struct SqliteOptions {
  // The database was made long ago: a missing or empty file is an error, not a start anew.
  bool must_exist = false;
  // Where durable commits are to be counted, which is mostly how long the disk takes; may be null.
  std::shared_ptr<TaskTimes> commit_times;

  // For tests.
  int64_t max_pages = 0;             // of the file; 0: no bound
  std::string boot_id;               // which boot of the machine this is; "" asks the kernel
  const char* synchronous = "FULL";  // how durable commits are made: anything else loses writes
  int checkpoint_pages_idle = kCheckpointPagesIdle;
  int checkpoint_pages_busy = kCheckpointPagesBusy;
  Duration busy_timeout = kBusyTimeout;  // how long to wait for another program's lock
  const Clock* clock = &RealClock();
};

Result<std::unique_ptr<Backend>> OpenSqliteBackend(const std::string& path,
                                                   SqliteOptions options = {});

}  // namespace muster::store
