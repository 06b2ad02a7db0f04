// src/store/store.h
//
// Store: one log of revisions, and the key -> value state that it leads to. Knows nothing of
// Kubernetes.
//
// Life cycle: Open() loads the state; Close() (or destruction) commits what is pending and stops
//             the writer.
// Thread:     the loop thread, apart from what the backend does on the writer thread; what Past()
//             returns is safe anywhere.
// Invariants: - the loop checks preconditions against committed + pending state and assigns the
//               revision at once;
//             - revisions are gapless and increase by one per write; watchers see every one of
//               their prefix, in order;
//             - a reader or watcher sees a revision only after its commit (kDurable) and after all
//               before it;
//             - after a failed commit every pending and later write fails with the same reason;
//               reads go on.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/task.h"

namespace muster::store {

using Revision = int64_t;

// What the owner of the values derives from them once (parsed metadata, selectable fields). Opaque
// here.
struct Meta {
  virtual ~Meta() = default;
};

inline constexpr size_t kRevisionSlotBytes = 22;  // 20 digits and two quotes
inline constexpr uint32_t kNoRevisionSlot = UINT32_MAX;

struct Entry {
  std::string key;
  std::shared_ptr<const std::string> value;
  Revision create_revision = 0;
  Revision mod_revision = 0;
  std::shared_ptr<const Meta> meta;
  // Where the value carries mod_revision (Put::revision_slot), or kNoRevisionSlot.
  uint32_t revision_slot = kNoRevisionSlot;
};
using EntryPtr = std::shared_ptr<const Entry>;

struct WatchEvent {
  enum class Type : uint8_t { kPut, kDelete };
  Type type = Type::kPut;
  Revision revision = 0;
  // kPut: the new state; kDelete: the last state, its mod_revision the one of the deletion.
  EntryPtr entry;
  EntryPtr previous;  // nullptr if created by this event
};

enum class Durability : uint8_t {
  kDurable,  // the callback runs after fdatasync
  kRelaxed,  // events and leases: written soon, lost only by a power cut or a kill
};

struct Put {
  std::string key;
  std::string value;
  // Offset in `value` of kRevisionSlotBytes bytes where the store writes the revision as a quoted
  // decimal, padded with spaces after the closing quote ("12"   ,): the stored bytes carry their
  // own resourceVersion.
  std::optional<size_t> revision_slot;
  // 0: must not exist. nullopt: no precondition. Otherwise the latest mod_revision, pending writes
  // included.
  std::optional<Revision> expected;
  std::shared_ptr<const Meta> meta;
  Durability durability = Durability::kDurable;
};

// Limits. A write beyond the first two is refused with RequestEntityTooLarge, beyond the others
// with TooManyRequests.
inline constexpr size_t kMaxKeyBytes = 1024;
inline constexpr size_t kMaxValueBytes = 1536 * 1024;  // what etcd takes by default
inline constexpr size_t kMaxPendingWrites = 65'536;
inline constexpr size_t kMaxPendingBytes = 256 * 1024 * 1024;
// One commit takes at most this much of the queue.
inline constexpr size_t kMaxBatchWrites = 256;
inline constexpr size_t kMaxBatchBytes = 1024 * 1024;
// Superseded values kept in memory for watches and Exact reads; what is older is compacted where
// memory is all there is.
inline constexpr size_t kMaxHistoryBytes = 64 * 1024 * 1024;
// The same where what is older comes from the disk.
inline constexpr size_t kMaxHistoryBytesBesideLog = 8 * 1024 * 1024;
// A store with more past than this forgets half of it without being told.
inline constexpr int64_t kMaxUncompactedRevisions = 1'000'000;
inline constexpr size_t kMaxUncompactedBytes = 512 * 1024 * 1024;  // of keys and values

struct RangeResult {
  std::vector<EntryPtr> entries;  // in key order
  Revision revision = 0;          // that the result is consistent at
  bool more = false;
  int64_t remaining = 0;  // entries of the prefix after the last one returned
};

class Store {
 public:
  using Done = Function<void(Result<EntryPtr>)>;
  using WatchId = uint64_t;

  virtual ~Store() = default;

  // The latest committed revision; what readers see.
  virtual Revision CommittedRevision() const = 0;
  virtual Revision CompactedRevision() const = 0;
  // Ok, or why the store takes no more writes.
  virtual Status Health() const = 0;

  // Conflict at once (not through `done`) when `expected` does not hold; the error's message says
  // what was found. Otherwise returns the assigned revision and calls `done` with the committed
  // entry, or with the failure.
  virtual Result<Revision> Write(Put put, Done done) = 0;
  // Deletes; `done` gets the last entry with mod_revision = the revision of the deletion. NotFound
  // if absent.
  virtual Result<Revision> Delete(std::string_view key, std::optional<Revision> expected,
                                  Durability durability, Done done) = 0;

  virtual EntryPtr Get(std::string_view key) const = 0;  // committed
  virtual EntryPtr GetLatest(
      std::string_view key) const = 0;  // committed + pending: for read-modify-write

  // Entries whose key starts with `prefix` and is > `after` ("" for all), at most `limit` (0 =
  // all). At `revision` (0 = latest); Expired when it is before CompactedRevision(), Timeout when
  // it is in the future.
  virtual Result<RangeResult> Range(std::string_view prefix, std::string_view after, size_t limit,
                                    Revision revision) const = 0;
  // Whether Range() at `revision` needs nothing but memory. Otherwise it reads the disk and may
  // take long: then Past() belongs on a pool.
  virtual bool InMemory(Revision revision) const = 0;
  // Range() at `revision` for any thread; it may outlive the store. Expired if the revision is
  // compacted before it is read.
  using PastReader = std::function<Result<RangeResult>(std::string_view prefix,
                                                       std::string_view after, size_t limit)>;
  virtual PastReader Past(Revision revision) const = 0;

  // Events of `prefix` with revision > `after`, batch by batch, each batch in revision order. The
  // first call comes from a later loop task. Expired if events after `after` were compacted (after
  // < CompactedRevision()). `on_end` comes at most once, when the past cannot be told to its end
  // (Expired: it was compacted meanwhile; InternalError: the disk does not give it); then nothing
  // follows.
  using OnEvents = Function<void(const std::vector<WatchEvent>&)>;
  using OnEnd = Function<void(const Status&)>;
  Result<WatchId> Watch(std::string prefix, Revision after, OnEvents on_events) {
    return Watch(std::move(prefix), after, std::move(on_events), {});
  }
  virtual Result<WatchId> Watch(std::string prefix, Revision after, OnEvents on_events,
                                OnEnd on_end) = 0;
  virtual void CancelWatch(WatchId watch) = 0;

  // Forgets what was superseded or deleted at or before `revision`: Exact reads and watches from
  // before it get Expired. The state at `revision` itself stays readable, as in etcd: otherwise a
  // client that lists and then watches an idle store, compacted at its latest revision, would get
  // Expired for ever.
  virtual Status Compact(Revision revision) = 0;

  // Makes the Meta of entries that are loaded from disk, on any thread. Set before Open().
  using Decorator =
      std::function<std::shared_ptr<const Meta>(std::string_view key, std::string_view value)>;
};

}  // namespace muster::store
