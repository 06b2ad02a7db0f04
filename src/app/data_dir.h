// src/app/data_dir.h
//
// The data directory: made only where nothing else is, and deleted only where we made it. A marker
// file says that it is ours.
//
// Thread: any; blocking file calls of `muster up` and `muster down`.

#pragma once

#include <string>

#include "base/status.h"

namespace muster::app {

// Conflict if there is something at `dir` that is not ours, or `dir` cannot be a directory: with
// what it is. Changes nothing.
Status CheckPlace(const std::string& dir);

// Makes `dir` and its parts with mode 0700. Conflict if `dir` holds something that is not ours: its
// mode and content stay as they are.
Status MakeDataDir(const std::string& dir);

// Whether `dir` was made by MakeDataDir().
bool IsDataDir(const std::string& dir);

// Forbidden if `dir` was made for another user, or he lets nobody look: his node lives in
// namespaces of his own, and files of ours would be in his way. Ok where there is none.
Status CheckOwner(const std::string& dir);

// The Node of `dir` keeps the name of its first start: pods are bound to it. `name` becomes that
// one unless it was asked for (`given`); Conflict if another one was. REQUIRES: the instance lock.
Status KeepNodeName(const std::string& dir, bool given, std::string& name);

// Deletes what we made in `dir`, then `dir` itself unless something else is in it (that stays, and
// is named; a link or a mount point stays, too, empty). Conflict if `dir` is not ours.
Status PurgeDataDir(const std::string& dir);

}  // namespace muster::app
