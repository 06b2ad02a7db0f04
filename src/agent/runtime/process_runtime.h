// src/agent/runtime/process_runtime.h
//
// ProcessRuntime: pods as processes of this machine in namespaces of their own, through the spawner
// and the shims.
//
// Life cycle: one per agent; destroying it leaves the pods running.
// Thread:     the loop thread; file work on the pool.
// Invariants: DIR/pods/<uid>/pod.json exists before the sandbox does, and the folder goes as a
//             whole (it is renamed first): what is there of a pod is never half of it.

#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/runtime/pod_runtime.h"
#include "agent/runtime/shim_client.h"
#include "agent/runtime/unmount.h"
#include "agent/spawner/spawner_client.h"
#include "loop/asio_loop.h"
#include "loop/loop.h"

namespace muster::agent {

// Killed processes leave their cgroup when they get the processor: on a busy machine that takes.
inline constexpr int kMaxCgroupRemovalTries = 1500;
inline constexpr Duration kCgroupRemovalRetry = milliseconds(20);
inline constexpr Duration kShutdownTimeout = seconds(5);
// What is killed and does not end for so long may wait for a server of a network volume: from then
// on that is broken off, again and again.
inline constexpr Duration kBreakOffAfter = seconds(2);
// Threads that wait for servers of network volumes, so that the pool never does.
inline constexpr int kUnmountThreads = 4;

std::string PodsDir(const std::string& data_dir);
std::string PodDir(const std::string& data_dir, const std::string& uid);
std::string PodCgroup(const std::string& uid);

// What the pod's folder says; blocking. Fills all but sandbox_alive, `prepared` and `running`.
RecoveredPod ReadPodFolder(const std::string& data_dir, const std::string& uid);
// The pods that have a folder.
std::vector<std::string> PodFolders(const std::string& data_dir);
// The folder is gone, or as it was. What is mounted in it is unmounted first: that is users' data,
// and where it cannot be, nothing is removed.
Status RemovePodFolder(const std::string& data_dir, const std::string& uid,
                       const UnmountOptions& unmount = {});
// Folders whose removal was broken off.
void SweepPodFolders(const std::string& data_dir, const UnmountOptions& unmount = {});

class ProcessRuntime final : public PodRuntime {
 public:
  ProcessRuntime(std::string data_dir, AsioLoop& loop, Pool& pool, SpawnerClient& spawner);
  ~ProcessRuntime() override;

  void SetEvents(Events events) override { events_ = std::move(events); }
  void CreateSandbox(const SandboxRequest& request, Done done) override;
  void Prepare(const std::string& uid, json::Value request, Done done) override;
  void UpdateVolumes(const std::string& uid, json::Value volumes, Done done) override;
  void StartContainer(const std::string& uid, const ContainerSpec& spec,
                      Function<void(Result<std::string>)> done) override;
  void SignalContainer(const std::string& uid, const std::string& container,
                       int signal_number) override;
  std::string Exec(const std::string& uid, const std::string& container,
                   const std::vector<std::string>& arguments, bool tty, bool stdin_open,
                   Function<void(Result<ExecStreams>)> done, Function<void(int)> on_exit) override;
  void KillExec(const std::string& uid, const std::string& exec) override;
  void KillSandbox(const std::string& uid) override;
  void RemoveSandbox(const std::string& uid, Done done) override;
  void Recover(Function<void(std::vector<RecoveredPod>)> done) override;

 private:
  struct Removal;
  Status ConnectShim(const std::string& uid);
  void Call(const std::string& uid, const std::string& op, json::Value request,
            ShimClient::Done done);
  void OnEvent(const std::string& uid, const json::Value& event);
  void OnGone(const std::string& uid);
  void EndSandbox(const std::string& uid, Function<void(Result<json::Value>)> done);
  void RemoveCgroup(std::shared_ptr<Removal> removal);
  void BreakOffRequests(const std::shared_ptr<Removal>& removal);
  void RemoveFolder(std::shared_ptr<Removal> removal);
  void Removed(Removal& removal, const Status& status);
  Pool& Unmounters();
  void ConnectRecovered(std::shared_ptr<std::vector<RecoveredPod>> pods,
                        Function<void(std::vector<RecoveredPod>)> done);

  const std::string data_dir_;
  AsioLoop& loop_;
  Pool& pool_;
  SpawnerClient& spawner_;
  Events events_;
  std::map<std::string, std::unique_ptr<ShimClient>> shims_;  // by pod uid
  std::map<std::string, std::shared_ptr<Removal>> removals_;  // asked to end, by pod uid
  std::map<std::string, std::map<std::string, Function<void(int)>>> execs_;  // pod uid -> exec id
  uint64_t next_exec_ = 1;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  // For unmounts, which may outlive this.
  std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<Pool> unmounters_;  // goes first: it waits for its threads
};

}  // namespace muster::agent
