// src/store/sqlite_format.h
//
// What makes a SQLite file one of our stores (sqlite_backend.h says what is in it).
//
// Thread: as the Database.

#pragma once

#include "base/status.h"
#include "store/sqlite_db.h"
#include "store/store.h"

namespace muster::store {

inline constexpr int kStoreFormatVersion = 1;

Status CreateSchema(Database& database);
// Invalid unless it is a store of kStoreFormatVersion.
Status CheckFormat(Database& database);
// The last revision that the log knows of, compacted ones included.
Result<Revision> LastRevision(Database& database);

}  // namespace muster::store
