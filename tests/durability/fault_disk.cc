#include "durability/fault_disk.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"

namespace muster::durability {

namespace {

constexpr std::string_view kWritesDropped = "cut: writes dropped";
constexpr std::string_view kWritesKept = "cut: un-synced writes kept";
constexpr std::string_view kWritesReordered = "cut: writes reordered";
constexpr std::string_view kSectorsTorn = "cut: sectors torn";
constexpr std::string_view kSectorsGarbled = "cut: sectors garbled";
constexpr std::string_view kSizeLost = "cut: growth of a file lost";
constexpr std::string_view kTruncationUndone = "cut: truncation undone";
constexpr std::string_view kCreationLost = "cut: new file lost";
constexpr std::string_view kDeletionUndone = "cut: deleted file back";

}  // namespace

struct FaultDisk::Inode {
  struct Change {
    bool truncate = false;
    size_t offset = 0;  // truncate: the new size
    std::string data;
    void Apply(std::string& content) const {
      if (truncate) {
        content.resize(std::min(content.size(), offset));
        return;
      }
      if (content.size() < offset + data.size()) content.resize(offset + data.size());
      content.replace(offset, data.size(), data);
    }
  };

  std::string content;
  std::string synced;
  std::vector<Change> changes;  // since `synced`

  std::vector<Open*> opens;
  std::vector<std::unique_ptr<std::string>> shared_memory;
  std::array<int, SQLITE_SHM_NLOCK> shared_locks{};  // -1: held exclusively

  void Do(Change change) {
    change.Apply(content);
    changes.push_back(std::move(change));
  }
  void Sync() {
    for (const Change& change : changes) change.Apply(synced);
    changes.clear();
  }
  // As Linux does: what could not be written is forgotten, and the next sync reports success.
  void FailSync() { changes.clear(); }
  std::string WithAllChanges() const {
    std::string all = synced;
    for (const Change& change : changes) change.Apply(all);
    return all;
  }
};

struct FaultDisk::Open {
  FaultDisk* disk;
  std::shared_ptr<Inode> inode;
  std::string label;  // "db", "wal", ...
  bool syncs_name;    // its first sync is also one of the folder, as in SQLite's unix VFS
  int lock = SQLITE_LOCK_NONE;
  unsigned shared_held = 0, exclusive_held = 0;  // bits: locks of the shared memory
};

struct FaultDisk::Vfs {
  sqlite3_vfs base{};
};

// --- SQLite's side

struct Calls {
  struct File {
    sqlite3_file base;
    FaultDisk::Open* open;
  };
  using Call = FaultDisk::Call;

  static FaultDisk::Open& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file)->open; }
  static FaultDisk& Of(sqlite3_vfs* vfs) { return *static_cast<FaultDisk*>(vfs->pAppData); }

  static int Close(sqlite3_file* file) {
    FaultDisk::Open* open = &Of(file);
    std::erase(open->inode->opens, open);
    --open->disk->open_files_;
    delete open;
    return SQLITE_OK;
  }

  static int Read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
    FaultDisk::Open& open = Of(file);
    if (const int code = open.disk->Enter(Call::kRead, open.label, static_cast<uint64_t>(offset));
        code != SQLITE_OK)
      return code;
    const std::string& content = open.inode->content;
    const auto from = static_cast<size_t>(offset);
    const auto wanted = static_cast<size_t>(bytes);
    const size_t there = from >= content.size() ? 0 : std::min(wanted, content.size() - from);
    std::memcpy(to, content.data() + std::min(from, content.size()), there);
    std::memset(static_cast<char*>(to) + there, 0, wanted - there);
    return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }

  // A change that the power cut meets is on its way to the disk: it may survive in part.
  static int Change(FaultDisk::Open& open, Call call, FaultDisk::Inode::Change change) {
    const bool was_cut = open.disk->is_cut();
    const int code = open.disk->Enter(call, open.label, change.offset ^ change.data.size() << 40);
    if (code == SQLITE_OK || (!was_cut && open.disk->is_cut())) open.inode->Do(std::move(change));
    return code;
  }
  static int Write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
    return Change(Of(file), Call::kWrite,
                  {false, static_cast<size_t>(offset),
                   std::string(static_cast<const char*>(from), static_cast<size_t>(bytes))});
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    return Change(Of(file), Call::kTruncate, {true, static_cast<size_t>(size), ""});
  }

  static int Sync(sqlite3_file* file, int) {
    FaultDisk::Open& open = Of(file);
    if (const int code = open.disk->Enter(Call::kSync, open.label, 0); code != SQLITE_OK) {
      if (!open.disk->is_cut()) open.inode->FailSync();
      return code;
    }
    open.inode->Sync();
    if (std::exchange(open.syncs_name, false)) open.disk->SyncNames();
    return SQLITE_OK;
  }

  static int Size(sqlite3_file* file, sqlite3_int64* size) {
    FaultDisk::Open& open = Of(file);
    *size = static_cast<sqlite3_int64>(open.inode->content.size());
    return open.disk->Enter(Call::kSize, open.label, 0);
  }

  static bool OthersHold(const FaultDisk::Open& self, int level) {
    return std::ranges::any_of(self.inode->opens, [&](const FaultDisk::Open* other) {
      return other != &self && other->lock >= level;
    });
  }
  static int Lock(sqlite3_file* file, int level) {
    FaultDisk::Open& open = Of(file);
    if (open.lock >= level) return SQLITE_OK;
    const int conflicting = level == SQLITE_LOCK_SHARED     ? SQLITE_LOCK_PENDING
                            : level == SQLITE_LOCK_RESERVED ? SQLITE_LOCK_RESERVED
                                                            : SQLITE_LOCK_SHARED;
    if (OthersHold(open, conflicting)) return SQLITE_BUSY;
    open.lock = level;
    return SQLITE_OK;
  }
  static int Unlock(sqlite3_file* file, int level) {
    Of(file).lock = std::min(Of(file).lock, level);
    return SQLITE_OK;
  }
  static int CheckReserved(sqlite3_file* file, int* reserved) {
    *reserved = static_cast<int>(Of(file).lock >= SQLITE_LOCK_RESERVED ||
                                 OthersHold(Of(file), SQLITE_LOCK_RESERVED));
    return SQLITE_OK;
  }
  static int Control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
  static int SectorSize(sqlite3_file*) { return 4096; }
  static int Characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

  static int SharedMap(sqlite3_file* file, int region, int bytes, int extend, volatile void** out) {
    auto& regions = Of(file).inode->shared_memory;
    const auto index = static_cast<size_t>(region);
    *out = nullptr;
    if (index >= regions.size() && extend == 0) return SQLITE_OK;
    while (regions.size() <= index)
      regions.push_back(std::make_unique<std::string>(static_cast<size_t>(bytes), '\0'));
    *out = regions[index]->data();
    return SQLITE_OK;
  }

  static int SharedLock(sqlite3_file* file, int first, int count, int flags) {
    FaultDisk::Open& open = Of(file);
    auto& locks = open.inode->shared_locks;
    const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
    unsigned& held = exclusive ? open.exclusive_held : open.shared_held;
    for (int i = first; i < first + count; ++i) {
      const unsigned bit = 1U << i;
      int& lock = locks[static_cast<size_t>(i)];
      if ((flags & SQLITE_SHM_UNLOCK) != 0) {
        if ((held & bit) != 0) lock = exclusive ? 0 : lock - 1;
        held &= ~bit;
        continue;
      }
      if ((held & bit) != 0) continue;
      // SQLite asks for several locks at once only when it can do without all of them.
      if (exclusive ? lock != 0 : lock < 0) return SQLITE_BUSY;
    }
    if ((flags & SQLITE_SHM_LOCK) == 0) return SQLITE_OK;
    for (int i = first; i < first + count; ++i) {
      const unsigned bit = 1U << i;
      if ((held & bit) != 0) continue;
      held |= bit;
      int& lock = locks[static_cast<size_t>(i)];
      lock = exclusive ? -1 : lock + 1;
    }
    return SQLITE_OK;
  }
  static void SharedBarrier(sqlite3_file*) {}
  static int SharedUnmap(sqlite3_file* file, int remove) {
    SharedLock(file, 0, SQLITE_SHM_NLOCK, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
    SharedLock(file, 0, SQLITE_SHM_NLOCK, SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED);
    if (remove != 0) Of(file).inode->shared_memory.clear();
    return SQLITE_OK;
  }

  static std::string Label(const char* name) {
    const std::string_view path = name == nullptr ? "temporary" : name;
    return std::string(path.substr(path.find_last_of("/.") + 1));
  }

  static int OpenFile(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags,
                      int* out_flags) {
    static const sqlite3_io_methods kMethods = {2,
                                                Close,
                                                Read,
                                                Write,
                                                Truncate,
                                                Sync,
                                                Size,
                                                Lock,
                                                Unlock,
                                                CheckReserved,
                                                Control,
                                                SectorSize,
                                                Characteristics,
                                                SharedMap,
                                                SharedLock,
                                                SharedBarrier,
                                                SharedUnmap,
                                                nullptr,
                                                nullptr};
    FaultDisk& disk = Of(vfs);
    file->pMethods = nullptr;
    const std::string path = name == nullptr ? "" : name;
    if (const int code = disk.Enter(Call::kOpen, Label(name), 0); code != SQLITE_OK) return code;
    const auto found = disk.names_.find(path);
    std::shared_ptr<FaultDisk::Inode> inode;
    const bool is_new = found == disk.names_.end();
    if (is_new) {
      inode = std::make_shared<FaultDisk::Inode>();
      if (!path.empty()) disk.names_[path] = inode;
      // The store itself makes the database's name last before it opens it.
      if ((flags & SQLITE_OPEN_MAIN_DB) != 0) disk.synced_names_[path] = inode;
    } else {
      inode = found->second;
    }
    const bool syncs_name = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
    auto* open = new FaultDisk::Open{&disk, inode, Label(name), syncs_name};
    inode->opens.push_back(open);
    ++disk.open_files_;
    reinterpret_cast<File*>(file)->open = open;
    file->pMethods = &kMethods;
    if (out_flags != nullptr) *out_flags = flags;
    return SQLITE_OK;
  }

  static int Delete(sqlite3_vfs* vfs, const char* name, int sync_folder) {
    FaultDisk& disk = Of(vfs);
    if (const int code = disk.Enter(Call::kDelete, Label(name), 0); code != SQLITE_OK) return code;
    if (disk.names_.erase(name) == 0) return SQLITE_IOERR_DELETE_NOENT;
    if (sync_folder != 0) disk.SyncNames();
    return SQLITE_OK;
  }
  // As in the unix VFS, a file without content is not there.
  static int Access(sqlite3_vfs* vfs, const char* name, int, int* result) {
    const auto found = Of(vfs).names_.find(name);
    *result = static_cast<int>(found != Of(vfs).names_.end() && !found->second->content.empty());
    return SQLITE_OK;
  }
  static int FullPath(sqlite3_vfs*, const char* name, int bytes, char* out) {
    sqlite3_snprintf(bytes, out, "%s", name);
    return SQLITE_OK;
  }
  static int Randomness(sqlite3_vfs* vfs, int bytes, char* out) {
    for (int i = 0; i < bytes; ++i) out[i] = static_cast<char>(Of(vfs).rng_.Next());
    return bytes;
  }
  static int Sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
  static int CurrentTime(sqlite3_vfs*, double* days) {
    *days = 2461041.5;
    return SQLITE_OK;
  }
  static int LastError(sqlite3_vfs* vfs, int, char*) { return Of(vfs).last_errno_; }
};

// --- our side

std::vector<std::string_view> FaultDisk::ExpectedCounts() {
  return {kWritesDropped,         kWritesKept,           kWritesReordered,
          kSectorsTorn,           kSectorsGarbled,       kSizeLost,
          kCreationLost,          kTruncationUndone,     kDeletionUndone,
          "cut in: write db-wal", "cut in: sync db-wal", "cut in: write db",
          "cut in: sync db",      "cut in: truncate db"};
}

FaultDisk::FaultDisk(uint64_t seed, simulation::Counts& counts)
    : counts_(counts), rng_(seed), vfs_(std::make_unique<Vfs>()) {
  sqlite3_vfs& vfs = vfs_->base;
  vfs.iVersion = 1;
  vfs.szOsFile = sizeof(Calls::File);
  vfs.mxPathname = 512;
  vfs.zName = "fault-disk";
  vfs.pAppData = this;
  vfs.xOpen = Calls::OpenFile;
  vfs.xDelete = Calls::Delete;
  vfs.xAccess = Calls::Access;
  vfs.xFullPathname = Calls::FullPath;
  vfs.xRandomness = Calls::Randomness;
  vfs.xSleep = Calls::Sleep;
  vfs.xCurrentTime = Calls::CurrentTime;
  vfs.xGetLastError = Calls::LastError;
  CHECK(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK);
  sqlite3_randomness(0, nullptr);  // SQLite's generator starts anew, from our seed
}

FaultDisk::~FaultDisk() {
  CHECK(open_files_ == 0);
  sqlite3_vfs_unregister(&vfs_->base);
}

void FaultDisk::CutAfter(uint64_t changes) { changes_left_ = changes; }

void FaultDisk::CutNow() {
  cut_ = true;
  changes_left_ = 0;
}

void FaultDisk::FailCalls(Failure failure, uint64_t first, uint64_t last) {
  failure_ = failure;
  first_failing_ = first;
  last_failing_ = last;
  calls_ = failed_ = 0;
}

void FaultDisk::Trace(uint64_t value) {
  trace_ ^= value;
  trace_ *= 1099511628211ULL;
}

int FaultDisk::Enter(Call call, std::string_view file, uint64_t detail) {
  Trace(static_cast<uint64_t>(call) << 56 ^ detail);
  for (const char c : file) Trace(static_cast<unsigned char>(c));
  static constexpr int kBroken[] = {SQLITE_IOERR_READ,  SQLITE_IOERR_WRITE, SQLITE_IOERR_TRUNCATE,
                                    SQLITE_IOERR_FSYNC, SQLITE_IOERR_FSTAT, SQLITE_CANTOPEN,
                                    SQLITE_IOERR_DELETE};
  const int broken = kBroken[static_cast<size_t>(call)];
  const bool changes = call != Call::kRead && call != Call::kSize && call != Call::kOpen;
  if (!cut_ && changes && changes_left_ > 0 && --changes_left_ == 0) {
    cut_ = true;
    static constexpr std::string_view kNames[] = {"read", "write", "truncate", "sync",
                                                  "size", "open",  "delete"};
    counts_.Add(fmt::format("cut in: {} {}", kNames[static_cast<size_t>(call)], file));
  }
  last_errno_ = EIO;
  if (cut_) return broken;
  const uint64_t number = calls_++;
  if (failure_ == Failure::kNone || number < first_failing_ || number >= last_failing_)
    return SQLITE_OK;
  const bool needs_room = call == Call::kWrite || call == Call::kSync;
  if (failure_ == Failure::kFull && !needs_room) return SQLITE_OK;
  ++failed_;
  if (failure_ == Failure::kBroken) return broken;
  last_errno_ = ENOSPC;
  return call == Call::kWrite ? SQLITE_FULL : broken;
}

void FaultDisk::PowerOn() {
  CHECK(cut_ && open_files_ == 0);
  cut_ = false;
  changes_left_ = 0;
  std::map<std::string, std::shared_ptr<Inode>> survivors;
  std::map<std::string, std::shared_ptr<Inode>> all = names_;
  all.insert(synced_names_.begin(), synced_names_.end());
  for (const auto& [name, ignored] : all) {
    const auto live = names_.find(name);
    const auto synced = synced_names_.find(name);
    const std::shared_ptr<Inode> now = live == names_.end() ? nullptr : live->second;
    const std::shared_ptr<Inode> before = synced == synced_names_.end() ? nullptr : synced->second;
    std::shared_ptr<Inode> survivor = now;
    if (now != before && rng_.Chance(0.5)) {
      if (before == nullptr) counts_.Add(kCreationLost);
      if (now == nullptr) counts_.Add(kDeletionUndone);
      survivor = before;
    }
    if (survivor != nullptr) survivors[name] = survivor;
  }
  for (const auto& [name, inode] : survivors) {
    inode->content = inode->synced = Survivor(*inode);
    inode->changes.clear();
    inode->shared_memory.clear();
    inode->shared_locks = {};
    Trace(std::hash<std::string>()(inode->content));
  }
  names_ = synced_names_ = std::move(survivors);
}

std::string FaultDisk::Survivor(const Inode& inode) {
  if (inode.changes.empty()) return inode.synced;
  const auto count = static_cast<int64_t>(inode.changes.size());
  switch (rng_.Below(4)) {
    case 0:
      counts_.Add(kWritesDropped, count);
      if (inode.synced.size() < inode.WithAllChanges().size()) counts_.Add(kSizeLost);
      if (inode.synced.size() > inode.WithAllChanges().size()) counts_.Add(kTruncationUndone);
      return inode.synced;
    case 1:
      counts_.Add(kWritesKept, count);
      return inode.WithAllChanges();
    default:
      return SectorSurvivor(inode);
  }
}

std::string FaultDisk::SectorSurvivor(const Inode& inode) {
  struct Sector {
    std::vector<std::string> states;  // all that it had since the last sync, that one first
    std::vector<size_t> changes;      // which change led to each
    size_t dirty_from = kSectorBytes, dirty_to = 0;
  };
  std::map<size_t, Sector> sectors;
  std::string content = inode.synced;
  std::vector<size_t> sizes = {content.size()};
  const auto state = [&](size_t sector) {
    const size_t from = sector * kSectorBytes;
    std::string bytes = from < content.size() ? content.substr(from, kSectorBytes) : "";
    bytes.resize(kSectorBytes);
    return bytes;
  };
  for (size_t i = 0; i < inode.changes.size(); ++i) {
    const Inode::Change& change = inode.changes[i];
    const size_t first = change.offset / kSectorBytes;
    const size_t end = change.offset + change.data.size();
    for (size_t s = first; !change.truncate && s * kSectorBytes < end; ++s) {
      if (sectors[s].states.empty()) sectors[s] = {{state(s)}, {0}};
    }
    change.Apply(content);
    sizes.push_back(content.size());
    for (auto sector = sectors.lower_bound(first); sector != sectors.end(); ++sector) {
      const size_t from = sector->first * kSectorBytes;
      if (!change.truncate && from >= end) break;
      sector->second.states.push_back(state(sector->first));
      sector->second.changes.push_back(i + 1);
      if (change.truncate) continue;
      sector->second.dirty_from =
          std::min(sector->second.dirty_from, std::max(change.offset, from) - from);
      sector->second.dirty_to =
          std::max(sector->second.dirty_to, std::min(end - from, kSectorBytes));
    }
  }

  const size_t size = rng_.Chance(0.5) ? sizes.back() : sizes[rng_.Below(sizes.size())];
  if (size < sizes.back()) counts_.Add(kSizeLost);
  if (size > sizes.back()) counts_.Add(kTruncationUndone);
  std::string result = inode.synced;
  result.resize(size);
  size_t first_dropped = SIZE_MAX, last_kept = 0;
  const double keep = rng_.Unit();
  for (auto& [number, sector] : sectors) {
    const size_t last = sector.states.size() - 1;
    const size_t chosen = rng_.Chance(keep) ? last : rng_.Below(last + 1);
    std::string bytes = sector.states[chosen];
    if (chosen < last) first_dropped = std::min(first_dropped, sector.changes[chosen + 1]);
    if (chosen > 0) last_kept = std::max(last_kept, sector.changes[chosen]);
    counts_.Add(chosen == last ? kWritesKept : kWritesDropped);
    const double luck = rng_.Unit();
    if (luck < 0.05 && sector.dirty_to > sector.dirty_from) {
      counts_.Add(kSectorsGarbled);
      for (size_t i = sector.dirty_from; i < sector.dirty_to; ++i)
        bytes[i] = static_cast<char>(rng_.Next());
    } else if (luck < 0.2) {
      counts_.Add(kSectorsTorn);
      const std::string& other = sector.states[rng_.Below(last + 1)];
      const size_t at = rng_.Below(kSectorBytes);
      bytes.replace(at, kSectorBytes - at, other, at, kSectorBytes - at);
    }
    const size_t from = number * kSectorBytes;
    if (from < size)
      result.replace(from, std::min(kSectorBytes, size - from), bytes, 0,
                     std::min(kSectorBytes, size - from));
  }
  if (first_dropped < last_kept) counts_.Add(kWritesReordered);
  return result;
}

}  // namespace muster::durability
