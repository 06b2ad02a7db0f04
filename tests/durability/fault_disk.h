// tests/durability/fault_disk.h
//
// FaultDisk: a disk in memory, as SQLite's default VFS, that forgets what was not synced when its
// power is cut, and that fails when told to. Every choice comes from the seed.
//
// At a cut each file keeps what was synced. Of what was written since, every 512-byte sector keeps
// any of the states that it had meanwhile (so writes are dropped and reordered), or the beginning
// of one and the end of another (torn), or garbage where bytes were on their way. The same holds
// for sizes, and for names that were created or deleted and not synced.
//
// Life cycle: one at a time; PowerOn() and destruction when every connection is closed.
// Thread:     one.
// Invariants: bytes that nobody was writing stay as they are, as SQLite assumes of real disks
//             (SQLITE_IOCAP_POWERSAFE_OVERWRITE); shared memory does not survive a cut.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "simulation/counts.h"

namespace muster::durability {

inline constexpr size_t kSectorBytes = 512;

enum class Failure { kNone, kBroken, kFull };

class FaultDisk {
 public:
  // What a cut does to files; a run that has no such count tested too little.
  static std::vector<std::string_view> ExpectedCounts();

  FaultDisk(uint64_t seed, simulation::Counts& counts);
  ~FaultDisk();
  FaultDisk(const FaultDisk&) = delete;
  FaultDisk& operator=(const FaultDisk&) = delete;

  // The power fails during the `changes`-th change (write, sync, ...) from now: it and everything
  // after it is answered with an error.
  void CutAfter(uint64_t changes);
  void CutNow();
  bool is_cut() const { return cut_; }
  void PowerOn();

  // The calls with first <= number < last fail, counted from now. kBroken: every call; kFull: those
  // that need room.
  void FailCalls(Failure failure, uint64_t first, uint64_t last);
  uint64_t calls() const { return calls_; }  // since FailCalls()
  uint64_t failed() const { return failed_; }

  // What was asked and what survived: the same for the same seed.
  uint64_t trace() const { return trace_; }

  struct Inode;
  struct Open;

 private:
  friend struct Calls;

  enum class Call { kRead, kWrite, kTruncate, kSync, kSize, kOpen, kDelete };

  // SQLITE_OK, or the error to answer with.
  int Enter(Call call, std::string_view file, uint64_t detail);
  void Trace(uint64_t value);
  std::string Survivor(const Inode& inode);
  std::string SectorSurvivor(const Inode& inode);
  void SyncNames() { synced_names_ = names_; }

  struct Vfs;
  simulation::Counts& counts_;
  Rng rng_;
  std::map<std::string, std::shared_ptr<Inode>> names_, synced_names_;
  int open_files_ = 0;
  uint64_t changes_left_ = 0;  // until the cut; 0: none is planned
  bool cut_ = false;
  Failure failure_ = Failure::kNone;
  uint64_t first_failing_ = 0, last_failing_ = 0, calls_ = 0, failed_ = 0;
  int last_errno_ = 0;
  uint64_t trace_ = 14695981039346656037ULL;
  std::unique_ptr<Vfs> vfs_;
};

}  // namespace muster::durability
