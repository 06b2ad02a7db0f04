// src/agent/volumes/volume_remover.h
//
// VolumeRemover: removes the folders of this node's local volumes whose PersistentVolume goes, then
// takes our finalizer off. A folder whose PersistentVolume is gone without that (an older backup
// was restored, or somebody took the finalizer off) is kept, and the log names it, once the server
// has said that there is none: only who knows why can say that nobody needs it. Folders of
// PersistentVolumes with the reclaim policy Retain are never removed, nor told of.
//
// Life cycle: construct before the informers start; Start() when the pods of an earlier run are
//             known to `users`; destroy to stop (a removal on the pool goes on).
// Thread:     the loop thread; file work on the pool.
// Invariants: nothing is removed that a pod has, or that a claim holds (kVolumeProtection); the
//             finalizer goes after the folder, so a crash in between repeats the removal.

#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/volumes/local_volumes.h"
#include "agent/volumes/volume_users.h"
#include "base/time.h"
#include "client/informer.h"
#include "client/lifetime.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr Duration kVolumeRemovalRetry = seconds(5);
// From the moment at which a PersistentVolume is gone until what is left of it is looked for.
inline constexpr Duration kVolumeSweepDelay = seconds(60);

struct VolumeRemoverOptions {
  std::string node_name;
  std::string root;  // LocalVolumesDir()
};

class VolumeRemover {
 public:
  // REQUIRES: all references outlive it.
  VolumeRemover(VolumeRemoverOptions options, Loop& loop, Pool& pool, client::ApiClient& client,
                client::InformerSet& informers, VolumeUsers& users);
  ~VolumeRemover();
  void Start();

 private:
  void OnChange(const json::Value& before, const json::Value& after);
  void NoteRetention(const json::Value& before, const json::Value& after);
  bool IsOurs(const json::Value& volume) const;
  void Consider(const std::string& name);
  void OnRead(const std::string& name, const Result<json::Value>& volume);
  void Remove(const json::Value& volume);
  void TakeFinalizer(const json::Value& volume);
  void Done(const std::string& name);
  void Retry(const std::string& name, const Status& why);
  void SweepLater(Duration delay);
  void Sweep();
  void LookForOwner(const std::string& folder);

  const VolumeRemoverOptions options_;
  Loop& loop_;
  Pool& pool_;
  client::ApiClient& client_;
  client::Informer& volumes_;
  VolumeUsers& users_;
  std::set<std::string> busy_;     // PersistentVolumes that are being looked at
  std::set<std::string> waiting_;  // those that pods still have
  std::set<std::string> told_;     // folders without one, told of
  TimerId sweep_timer_ = 0;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
