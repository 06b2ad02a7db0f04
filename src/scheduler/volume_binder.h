// src/scheduler/volume_binder.h
//
// VolumeBinder: what comes before the bindings of a unit whose pods name claims that wait for their
// first pod. It writes what was chosen (into the volume, which claim it is for; into the claim, on
// which node its volume is to be made), and waits until all claims of the unit are bound. Units
// without such claims go on at once.
// Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding (PreBind).
//
// A write that is refused, a choice that somebody takes back (a provisioner that cannot make the
// volume there removes the node from the claim; a volume is gone or was given away), and claims
// that are not bound within kVolumeBindTimeout fail the whole unit. What was written stays, as
// upstream: the volume controller goes on with it, and the next plan finds it.
//
// Life cycle: lives with its scheduler; destroying it abandons what is in flight. It keeps nothing
//             across restarts: what was written says what was chosen.
// Thread:     the loop thread. Hooks run there.

#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "client/lifetime.h"
#include "client/storage_resources.h"
#include "cluster/cluster_cache.h"
#include "json/value.h"

namespace muster::scheduler {

// Upstream's bindTimeoutSeconds.
inline constexpr Duration kVolumeBindTimeout = seconds(600);
// Writes of one choice that the server did not decide; then the unit fails.
inline constexpr int kMaxVolumeWrites = 5;

struct VolumeBinderHooks {
  // The pod has to wait, and for what.
  std::function<void(const cluster::PodKey& pod, const std::string& message)> on_waiting;
  // All claims of the unit are bound.
  std::function<void(const std::vector<cluster::PodKey>& pods, bool partly_bound)> on_ready;
  // The unit gives its places back.
  std::function<void(const std::vector<cluster::PodKey>& pods, const Status& why)> on_failed;
};

class VolumeBinder {
 public:
  // REQUIRES: everything passed by reference outlives it. `volumes`: of PersistentVolumes, of which
  // identity fields are read.
  VolumeBinder(client::ApiClient& api, client::Informer& volumes,
               const cluster::ClusterCache& cache, VolumeBinderHooks hooks);

  // Calls on_ready at once if no claim has to be waited for. REQUIRES: the pods are assumed in the
  // cache.
  void Bind(const std::vector<cluster::PodKey>& pods, bool partly_bound);
  // The cache changed: claims may be bound, or choices lost.
  void Look();
  // No write is on its way; claims may still be waited for.
  bool Idle() const { return in_flight_ == 0 && !look_posted_; }

 private:
  struct Member {
    cluster::PodKey pod;
    std::string uid;
  };
  // What became of a choice, as far as this process knows.
  struct Writing {
    bool on_the_way = false;
    bool done = false;  // the server took it
    bool seen = false;  // the informer showed it
    int attempts = 0;
  };
  struct Unit {
    std::vector<Member> members;
    bool partly_bound = false;
    Time deadline{};
    std::map<cluster::ClaimKey, Writing> writings;
    Status failed;  // OK: not yet

    bool IsWriting() const;
  };
  using UnitPtr = std::shared_ptr<Unit>;

  void LookAtAll();
  // True if it is over: ready or failed.
  bool LookAt(const UnitPtr& unit);
  // True once the claim is bound; what is wrong goes to unit->failed.
  bool Advance(const UnitPtr& unit, const cluster::VolumeChoice& choice);
  Status CheckVolume(const UnitPtr& unit, const cluster::VolumeChoice& choice,
                     const cluster::ClaimInfo& claim);
  Status CheckSelectedNode(const UnitPtr& unit, const cluster::VolumeChoice& choice,
                           const cluster::ClaimInfo& claim);
  void Write(const UnitPtr& unit, const cluster::VolumeChoice& choice, const client::Target& target,
             json::Value patch);
  void OnAnswer(const UnitPtr& unit, const cluster::VolumeChoice& choice, const Status& status);

  client::ApiClient& api_;
  client::Informer& volumes_;
  const cluster::ClusterCache& cache_;
  VolumeBinderHooks hooks_;
  std::list<UnitPtr> units_;
  size_t in_flight_ = 0;
  bool look_posted_ = false;
  client::Lifetime lifetime_;
};

}  // namespace muster::scheduler
