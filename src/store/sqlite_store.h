// src/store/sqlite_store.h
//
// A Store in one SQLite file. Acknowledged durable writes survive a power cut: WAL,
// synchronous=FULL, one writer thread with group commit.
//
// Life cycle: OpenSqliteStore() makes the folder (mode 0700) and the file (0600) if need be, takes
//             the lock file PATH.lock, and loads the state; destruction commits what is pending.
// Thread:     as Store; the writer thread is inside.

#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "loop/loop.h"
#include "store/sqlite_backend.h"
#include "store/store.h"

namespace muster::store {

// Conflict if another process has the file open; Invalid if it is not ours or of a newer format;
// InternalError, which says what helps, if it is lost, cut or damaged.
// REQUIRES: the loop outlives the store.
Result<std::unique_ptr<Store>> OpenSqliteStore(Loop& loop, const std::string& path,
                                               Store::Decorator decorator = {},
                                               SqliteOptions options = {});

// The same without a thread: commits in loop tasks. For simulation over a real file.
Result<std::unique_ptr<Store>> OpenSqliteStoreOnLoop(Loop& loop, const std::string& path,
                                                     Store::Decorator decorator = {});

}  // namespace muster::store
