// tests/simulation/node_volumes.h
//
// NodeVolumes: the part of a node's agent that keeps folders of local volumes: one is there once
// its PersistentVolume is, and is removed, then the finalizer taken off, when that goes and no
// claim holds it any more (agent/volumes/volume_remover.h).
//
// Life cycle: made before the informers start; a part of NodeAgent, which may crash at any moment.
// Thread:     the simulation's.

#pragma once

#include <set>
#include <string>

#include "client/api_client.h"
#include "client/informer.h"
#include "client/lifetime.h"
#include "loop/loop.h"

namespace muster::simulation {

class Machine;

class NodeVolumes {
 public:
  // REQUIRES: everything passed outlives it.
  NodeVolumes(Loop& loop, client::ApiClient& client, client::InformerSet& informers,
              Machine& machine);
  bool Idle() const { return busy_.empty(); }

 private:
  void OnChange(const std::string& name, const json::Value& volume);
  void Remove(const std::string& name);

  Loop& loop_;
  client::ApiClient& client_;
  client::Informer& volumes_;
  Machine& machine_;
  std::set<std::string> busy_;  // whose finalizer is being taken off
  client::Lifetime lifetime_;
};

}  // namespace muster::simulation
