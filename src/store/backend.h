// src/store/backend.h
//
// Backend: where a store keeps its log. The core (store_core.h) has the state, the preconditions
// and the watches; a backend only appends batches, forgets what is compacted, and reads back what
// the core no longer has in memory.
//
// Life cycle: Load() once, then the rest.
// Thread:     Append, CompactStep, Maintain and Recover on the writer (one thread or the loop);
//             Load and ReadLog on the loop thread, ReadAt on any, possibly while the writer writes.
// Invariants: Append is atomic and in order; with `durable` it returns after the bytes are on
//             stable storage. After an error of Append, CompactStep or Maintain nothing more may be
//             written until Recover: what a failed sync has lost, a later one does not bring back.

#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace muster::store {

// One revision of the log.
struct LogRecord {
  Revision revision = 0;
  Revision create_revision = 0;
  Revision previous_revision = 0;  // the revision of the same key that this one replaces; 0 if none
  bool deleted = false;
  bool durable = true;
  uint32_t revision_slot = kNoRevisionSlot;
  std::string key;
  std::shared_ptr<const std::string> value;  // nullptr when deleted
};

// A revision with what it replaced; `previous` is nullptr if it created the key.
struct LogChange {
  LogRecord record;
  std::unique_ptr<LogRecord> previous;
};

struct ReadAtResult {
  std::vector<LogRecord> records;
  int64_t remaining = 0;
};

struct LoadedState {
  Revision revision = 0;
  Revision compacted = 0;
};

inline Status ExpiredError(Revision revision, Revision compacted) {
  return Error(Reason::kExpired,
               "The resourceVersion for the provided list is too old: {}, compacted: {}", revision,
               compacted);
}

// An error that goes away, and after which the log is whole: the disk was full. What a broken disk
// has, only a new start finds out.
Status RecoverableError(std::string message);
bool IsRecoverable(const Status& status);

class Backend {
 public:
  virtual ~Backend() = default;

  // Gives every live entry to `sink`, in key order.
  virtual Result<LoadedState> Load(const std::function<void(LogRecord)>& sink) = 0;

  virtual Status Append(std::span<const LogRecord> batch, bool durable) = 0;
  // One bounded step towards forgetting what was superseded at or before `target`; true if more is
  // left.
  virtual Result<bool> CompactStep(Revision target) = 0;
  // Housekeeping between commits. `idle`: nothing waits for the writer.
  virtual Status Maintain(bool idle) = 0;

  // After a recoverable error: as a new life would begin, with a durable write. Ok only if the log
  // on stable storage then ends at `last`, which is what its users know of it.
  virtual Status Recover(Revision last) = 0;

  // Whether ReadAt and ReadLog reach behind the history in memory.
  virtual bool KeepsLog() const = 0;
  // Expired when `revision` was compacted meanwhile.
  virtual Result<ReadAtResult> ReadAt(std::string_view prefix, std::string_view after, size_t limit,
                                      Revision revision) = 0;
  // The changes with after < revision <= last.
  virtual Result<std::vector<LogChange>> ReadLog(Revision after, Revision last) = 0;
};

}  // namespace muster::store
