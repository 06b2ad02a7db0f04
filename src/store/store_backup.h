// src/store/store_backup.h
//
// A backup is one SQLite file: a whole store as it was at one moment, and beside it the small files
// (keys) that a cluster needs to be itself again. Whoever can read it can read every Secret.
//
// Thread: any; blocking.
// Invariants: a file or folder appears whole, synced and verified, or not at all.

#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "store/store_check.h"

namespace muster::store {

// A restored cluster goes on so many revisions higher, and its past counts as compacted: a client
// that saw revisions after the backup is told to list again. The number is etcd's advice for
// `etcdctl snapshot restore --bump-revision`.
inline constexpr Revision kRestoreJump = 1'000'000'000;

struct ExtraFile {
  std::string name;  // "pki/ca.crt"
  std::string content;
};

// Copies the store at `database`, which may be in use, to the new file `target` (mode 0600).
// Conflict if `target` exists.
Result<StoreReport> BackUpStore(const std::string& database, const std::string& target,
                                const std::vector<ExtraFile>& files, const ValueCheck& check_value,
                                const Progress& progress);

// Makes the store at `database`, in a folder that does not exist yet, from a backup.
Result<StoreReport> RestoreStore(const std::string& backup, const std::string& database,
                                 const ValueCheck& check_value, const Progress& progress);

Result<std::vector<ExtraFile>> ReadExtraFiles(const std::string& backup);

}  // namespace muster::store
