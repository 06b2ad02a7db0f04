// src/agent/volumes/network_mounter.h
//
// NetworkMounter: mounts the network volumes of pods, on threads of its own: a server that does not
// answer holds up nothing else of the node, and of the mounts of other servers none while there
// are turns left (it takes kMaxMountsPerServer of them).
//
// Life cycle: one per agent. Its threads begin with the first mount. Destroying it ends the mounts
//             that are under way; what is mounted stays, for the next agent.
// Thread:     the loop thread.

#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/volumes/network_volume.h"
#include "base/status.h"
#include "base/task.h"
#include "client/lifetime.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr int kMaxParallelMounts = 8;
inline constexpr int kMaxMountsPerServer = 2;

class NetworkMounter {
 public:
  using Done = Function<void(Status)>;

  NetworkMounter(MountTools tools, Loop& loop, Pool* pool = nullptr);
  ~NetworkMounter();

  // One after another, until one fails. `done` is called later, never from inside.
  // REQUIRES: no call of this pod is under way.
  void Mount(const std::string& uid, std::vector<NetworkVolume> volumes, Done done);
  // The pod's mount ends soon, with an error; nothing if there is none.
  void Cancel(const std::string& uid);

 private:
  struct Job;
  void Next();
  void Begin(std::shared_ptr<Job> job);
  void Finish(const std::shared_ptr<Job>& job, Status status);
  Pool& Threads();

  const MountTools tools_;
  Loop& loop_;
  Pool* pool_;
  std::list<std::shared_ptr<Job>> waiting_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;  // by pod uid; waiting ones, too
  std::map<std::string, int> running_;                // by server
  int all_running_ = 0;
  client::Lifetime lifetime_;
  std::unique_ptr<Pool> own_pool_;  // goes first: it waits for its threads
};

}  // namespace muster::agent
