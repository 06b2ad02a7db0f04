// src/store/store_lock.h
//
// StoreLock: the file PATH.lock beside a database. While the store is open it is locked (flock), so
// that a second muster is refused. It also remembers the last revision that was synced: a database
// that ends before it was lost, cut, or replaced by an older copy, which SQLite alone cannot tell.
//
// Life cycle: taken before the database is opened, held until it is closed.
// Thread:     Record() on the writer.
// Invariants: what it says is never ahead of the database on stable storage, since it is written
//             after the sync; it may be behind after a power cut, since it is not synced itself.

#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "store/store.h"

namespace muster::store {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

class StoreLock {
 public:
  StoreLock() = default;
  // Conflict if another process holds it.
  static Result<StoreLock> Take(const std::string& database);

  // What recorded() of its holder says, for others; nullopt also if there is no such file.
  static std::optional<Revision> RecordedOf(const std::string& database);

  // The last synced revision that an earlier life recorded; nullopt if there was none.
  std::optional<Revision> recorded() const { return recorded_; }
  void Record(Revision revision) const;

 private:
  Descriptor file_;
  std::optional<Revision> recorded_;
};

// That a database which ends at `last` is all that was `recorded`.
Status CheckNothingLost(const std::string& database, Revision last,
                        std::optional<Revision> recorded);

// The folder of `database` with mode 0700.
Status MakeStoreFolder(const std::string& database);
// An empty file of mode 0600 unless it exists; its name is on stable storage afterwards.
Status MakeStoreFile(const std::string& database);
Status SyncFile(const std::string& path);
// Makes names that were created, renamed or deleted in the folder of `path` last.
void SyncFolderOf(const std::string& path);

// "store: DOING PATH: why", and what helps where we know. Reads errno.
Status FileError(std::string_view doing, const std::string& path);

}  // namespace muster::store
