// src/store/committer.h
//
// Committer: carries records from the loop to the backend in order, many per commit, and compacts
// in between.
//
// Life cycle: Make*(), Enqueue() and Compact() at will; destruction commits what is queued and
//             stops.
// Thread:     the loop thread. LoopCommitter works in later loop tasks (memory store, simulation);
//             ThreadCommitter has the store's writer thread, so that the loop never waits for a
//             disk.
// Invariants: batches are what was queued when the last commit ended (no added delay), at most
//             kMaxBatchWrites or kMaxBatchBytes; a batch is synced if it holds a durable record;
//             after a failure nothing more is written until Recover() has succeeded. The callback
//             comes on the loop thread, in order, and never after destruction began.

#pragma once

#include <memory>

#include "base/status.h"
#include "loop/loop.h"
#include "store/backend.h"

namespace muster::store {

class Committer {
 public:
  // Everything up to `last` is committed; or the commit failed.
  using OnCommit = Function<void(Result<Revision> last)>;

  virtual ~Committer() = default;
  virtual void Enqueue(LogRecord record) = 0;
  virtual void Compact(Revision target) = 0;
  // After a failure: forgets what is queued and makes the backend, whose log ends at `last`,
  // writable again. The answer is a call of OnCommit with `last`, or with why not.
  virtual void Recover(Revision last) = 0;
};

// REQUIRES: backend and loop outlive the committer.
std::unique_ptr<Committer> MakeLoopCommitter(Loop& loop, Backend& backend,
                                             Committer::OnCommit on_commit);
std::unique_ptr<Committer> MakeThreadCommitter(Loop& loop, Backend& backend,
                                               Committer::OnCommit on_commit);

}  // namespace muster::store
