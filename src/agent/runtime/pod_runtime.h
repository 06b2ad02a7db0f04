// src/agent/runtime/pod_runtime.h
//
// PodRuntime: what the pod workers need of a runtime. ProcessRuntime does it with the spawner and
// the shims; FakePodRuntime in tests.
//
// Thread:     the loop thread; callbacks run there, never from inside the call.
// Invariants: a pod is named by its uid; requests of one pod are answered in order.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/runtime/unique_fd.h"
#include "agent/shim/container_spec.h"
#include "agent/spawner/sandbox.h"
#include "base/status.h"
#include "base/task.h"
#include "json/value.h"

namespace muster::agent {

// What the pod's folder and its shim say of one container, after the agent was away.
struct RecoveredContainer {
  std::string name;
  int attempt = 0;  // the latest
  bool running = false;
  std::string started_at;
  std::string image_name;                  // ContainerSpec's
  std::optional<ContainerExit> exit;       // of the latest attempt, unless it runs
  std::optional<ContainerExit> last_exit;  // of the one before
};

struct RecoveredPod {
  std::string uid;
  json::Value record;  // as given to SaveRecord: namespace, name, podIP, startTime
  bool sandbox_alive = false;
  bool prepared = false;  // the shim has made layer, /dev/shm and volumes
  std::vector<RecoveredContainer> containers;
};

struct ExecStreams {
  UniqueFd in, out, err;  // with a terminal only `in`, for both directions
};

class PodRuntime {
 public:
  using Done = Function<void(Status)>;

  struct Events {
    std::function<void(const std::string& uid, const std::string& container, int attempt,
                       const ContainerExit&)>
        on_exit;
    // The shim died without being asked: everything in the pod is gone.
    std::function<void(const std::string& uid)> on_sandbox_gone;
  };

  virtual ~PodRuntime() = default;
  virtual void SetEvents(Events events) = 0;

  virtual void CreateSandbox(const SandboxRequest& request, Done done) = 0;
  // The shim's "prepare" and "volumes" requests (shim/shim.h).
  virtual void Prepare(const std::string& uid, json::Value request, Done done) = 0;
  virtual void UpdateVolumes(const std::string& uid, json::Value volumes, Done done) = 0;
  // The time of the start, or why it failed: Invalid/NotFound when the program could not be
  // executed.
  virtual void StartContainer(const std::string& uid, const ContainerSpec& spec,
                              Function<void(Result<std::string>)> done) = 0;
  virtual void SignalContainer(const std::string& uid, const std::string& container,
                               int signal_number) = 0;
  // `on_exit` gets the exit code once, or -1 if the sandbox is gone. Gives the command's name for
  // KillExec().
  virtual std::string Exec(const std::string& uid, const std::string& container,
                           const std::vector<std::string>& arguments, bool tty, bool stdin_open,
                           Function<void(Result<ExecStreams>)> done,
                           Function<void(int)> on_exit) = 0;
  // SIGKILL to the command and its process group, unless it has ended.
  virtual void KillExec(const std::string& uid, const std::string& exec) = 0;
  // SIGKILL to the sandbox and all that is in it, past a shim that does not react; on_sandbox_gone
  // follows.
  virtual void KillSandbox(const std::string& uid) = 0;
  // Ends what still runs and removes namespaces, cgroup and the pod's folder. Ok if there is
  // nothing.
  virtual void RemoveSandbox(const std::string& uid, Done done) = 0;

  // All pods that have a folder; connects to their shims. Once, at start.
  virtual void Recover(Function<void(std::vector<RecoveredPod>)> done) = 0;
};

}  // namespace muster::agent
