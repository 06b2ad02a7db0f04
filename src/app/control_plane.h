// src/app/control_plane.h
//
// ControlPlane: every part of `muster up` in one process, in dependency order: store, API server,
// listener, informers, controllers, scheduler, node agent. This file is the composition root; what
// runs on which thread is said in app/threads.h.
//
// Life cycle: Open() before the loop runs (it may block: files, keys), Start() on the loop thread,
//             Stop() once, destroy after Stop()'s callback.
// Thread:     the loop thread.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/spawner/spawner.h"
#include "agent/user_node/user_node.h"
#include "app/up_options.h"
#include "base/status.h"
#include "base/task.h"
#include "loop/asio_loop.h"

namespace muster::app {

class ControlPlane {
 public:
  // Makes the directories, keys and the kubeconfig, opens the store and listens. Errors name the
  // file or the address.
  static Result<std::unique_ptr<ControlPlane>> Open(const UpOptions& options, AsioLoop& loop,
                                                    agent::SpawnerHandle spawner,
                                                    agent::UserNode user_node);
  ~ControlPlane();

  // `ready` once: Ok when /readyz says ok and this machine's Node is Ready, or why it cannot be.
  void Start(Function<void(Status)> ready);
  // Streams end, writes in flight are answered, the store is closed; pods keep running.
  void Stop(Task done);

  const std::string& address() const;     // "127.0.0.1:6443"
  const std::string& kubeconfig() const;  // path

 private:
  struct Impl;
  explicit ControlPlane(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::app
