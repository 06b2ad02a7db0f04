// src/apiserver/deletion.h
//
// Deletion of one object: at once, gracefully, or by marking it until its finalizers are gone.
//
// Thread: the loop thread.

#pragma once

#include "apiserver/core.h"
#include "apiserver/delete_options.h"
#include "apiserver/object_writer.h"
#include "base/status.h"
#include "base/task.h"

namespace muster::apiserver {

struct Deleted {
  store::EntryPtr entry;  // the last or the marked state
  bool removed = false;   // gone from the store
};
using DeleteDone = Function<void(Result<Deleted>)>;

// `done` runs after the commit, or at once when nothing had to be written. NotFound, Conflict
// (preconditions).
void DeleteObject(Core& core, const ResourcePtr& resource, std::string_view ns,
                  std::string_view name, const DeleteOptions& options, DeleteDone done);

}  // namespace muster::apiserver
