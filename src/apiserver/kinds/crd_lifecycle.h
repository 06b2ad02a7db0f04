// src/apiserver/kinds/crd_lifecycle.h
//
// CrdLifecycle: serves custom kinds as their definitions come, change and go, and removes the
// objects of a definition that is being deleted before the definition itself.
//
// Life cycle: a member of Core; Load() once, before the first request.
// Thread:     the loop thread.
// Invariants: what is served equals the established definitions in the store, from the task of
//             their commit on.

#pragma once

#include <map>
#include <set>
#include <string>

#include "apiserver/core.h"
#include "json/value.h"

namespace muster::apiserver {

class CrdLifecycle {
 public:
  explicit CrdLifecycle(Core& core) : core_(core) {}
  ~CrdLifecycle();

  void Load();
  // A definition was written or removed.
  void OnCommit(const json::Value* before, const json::Value* after);

 private:
  struct Cleanup {
    std::string prefix;  // of the objects
    store::Store::WatchId watch = 0;
    std::string after;  // key of the last object that was deleted
  };

  void Serve(const json::Value& crd);
  void BeginCleanup(const std::string& crd);
  void ContinueCleanup(const std::string& crd);
  void FinishIfEmpty(const std::string& crd);

  Core& core_;
  std::map<std::string, Cleanup> cleanups_;  // by name of the definition
};

}  // namespace muster::apiserver
