// src/agent/pod_workers/pod_status.h
//
// Builds v1 PodStatus from what the node knows, as the kubelet writes it: phase, conditions,
// container states.
//
// Thread:     any (pure).
// Invariants: conditions of others (PodScheduled, DisruptionTarget, ...) are kept; a transition
// time changes only with
//             its status; once Succeeded or Failed, a phase never changes.
// Source:     the kubelet's getPhase, convertToAPIContainerStatuses and status/generate.go.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/shim/container_spec.h"
#include "base/time.h"
#include "json/value.h"

namespace muster::agent {

inline constexpr std::string_view kEvicted = "Evicted";  // a failed_reason

// A device that a container was given, as status.containerStatuses[].allocatedResourcesStatus has
// it.
struct AllocatedDevice {
  std::string resource, id;
  std::string health;   // Healthy, Unhealthy, Unknown
  std::string message;  // why not Healthy
  bool operator==(const AllocatedDevice&) const = default;
};

struct ContainerRuntimeState {
  enum class Is : uint8_t { kWaiting, kRunning, kTerminated };

  std::string name;
  bool init = false;
  bool sidecar = false;  // an init container with restartPolicy Always
  Is is = Is::kWaiting;
  std::string waiting_reason = "ContainerCreating";
  std::string waiting_message;
  // While it starts from an image and afterwards: the name of the image's folder, by which the
  // image cache knows it, and what the status says.
  std::string image_name, image, image_id;
  std::string image_stop_signal;  // as the image writes it; "": it does not say
  int attempt = -1;               // of the latest start, also the restart count
  std::string started_at;         // while running
  // Its postStart hook runs, or failed: it is not shown as running.
  bool post_start_runs = false;
  // While it runs: what its startup and its readiness probe say.
  bool started = true, ready = true;
  std::optional<ContainerExit> exit;       // while terminated
  std::optional<ContainerExit> last_exit;  // the end before the present state
  int exit_attempt = -1, last_exit_attempt = -1;
  std::vector<AllocatedDevice> devices;  // those of one resource side by side

  Is Shown() const { return is == Is::kRunning && post_start_runs ? Is::kWaiting : is; }
  bool Started() const { return Shown() == Is::kRunning && started; }
  bool Ready() const { return init && !sidecar ? Succeeded() : Started() && ready; }
  bool Succeeded() const { return is == Is::kTerminated && exit && exit->exit_code == 0; }
};

struct PodRuntimeState {
  std::vector<ContainerRuntimeState> containers;  // init containers first, in the order of the spec
  std::string pod_ip, host_ip;
  std::string start_time;  // when the node accepted the pod, FormatTime
  bool sandbox_ready = false;
  bool terminal = false;  // it is being ended: once nothing runs the phase is Succeeded or Failed
  // Set when the node itself ends the pod (DeadlineExceeded, an unsupported field, ...): phase
  // Failed.
  std::string failed_reason, failed_message;
  bool rejected = false;  // nothing of it ever began, and its containers are not shown
};

std::string PodPhase(const json::Value& pod, const PodRuntimeState& state);
// `written` are the conditions of the last call (null at first): the object may not show them yet.
json::Value BuildPodStatus(const json::Value& pod, const PodRuntimeState& state,
                           const json::Value& written, Time now);

// status.qosClass, or what it will be.
std::string QosClass(const json::Value& pod);
// The signal that asks the container to end, by name: the pod's wish, else the image's. "": nobody
// says, which is SIGTERM. `spec`: of the container.
std::string StopSignalOf(const json::Value& spec, const ContainerRuntimeState& container);
// "muster://<64 hexadecimal digits>".
std::string ContainerId(std::string_view pod_uid, std::string_view container, int attempt);

}  // namespace muster::agent
