// src/agent/pod_workers/pod_worker.h
//
// PodWorker: brings one pod of this node from bound to running to gone.
//
//   admit -> inputs (ConfigMaps, Secrets) -> folder, with what servers keep mounted in it
//   -> policies -> sandbox -> prepare -> containers
//   ... -> stop -> removed
//
// It is level-triggered: Sync() looks at what is and takes the next step; every answer, exit, timer
// and change of the object calls it again. One step is under way at a time.
//
// Life cycle: made when the pod is seen (or recovered), destroyed by the PodManager once Done().
// Thread:     the loop thread.
// Invariants: a container starts only in a prepared sandbox, after its init containers succeeded;
// a sandbox is made only when the pod's network policies are in force; the object is deleted
//             from the server only after the sandbox is gone and the final status was acknowledged;
//             what the object says of a finished pod is never undone.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/devices/device_plugins.h"
#include "agent/images/image_cache.h"
#include "agent/network/ip_allocator.h"
#include "agent/node/node_secrets.h"
#include "agent/pod_workers/backoff.h"
#include "agent/pod_workers/container_builder.h"
#include "agent/pod_workers/container_stop.h"
#include "agent/pod_workers/device_allocator.h"
#include "agent/pod_workers/gang_sandboxes.h"
#include "agent/pod_workers/host_ports.h"
#include "agent/pod_workers/pod_status.h"
#include "agent/pod_workers/policy_guard.h"
#include "agent/pod_workers/port_allocator.h"
#include "agent/pod_workers/status_writer.h"
#include "agent/probes/handler_runner.h"
#include "agent/probes/pod_probes.h"
#include "agent/runtime/pod_runtime.h"
#include "agent/volumes/network_mounter.h"
#include "agent/volumes/volume_users.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/lifetime.h"
#include "loop/loop.h"

namespace muster::agent {

inline constexpr Duration kFirstRetryDelay = seconds(1);
inline constexpr Duration kMaxRetryDelay = seconds(30);
// A pod that is not up by then is shown as ContainerCreating; most are up earlier and need one
// status write only.
inline constexpr Duration kFirstStatusDelay = milliseconds(100);
// How long ErrImagePull is shown before it becomes ImagePullBackOff.
inline constexpr Duration kErrImagePullTime = seconds(1);
// A server that has not answered by then is told of, while it is waited for.
inline constexpr Duration kSlowMount = seconds(10);
inline constexpr Duration kVolumeRefreshPeriod = seconds(60);
// While the driver has not answered, or a device is that of a pod that ends.
inline constexpr Duration kDevicesRetry = milliseconds(50);
// While a program of the node has the pod's hostPort.
inline constexpr Duration kHostPortRetry = seconds(2);
inline constexpr int64_t kDefaultGraceSeconds = 30;
inline constexpr Duration kEvictionGrace = seconds(1);  // as upstream

// What all workers of a node share.
struct PodWorkerContext {
  Loop& loop;
  Pool& pool;
  client::ApiClient& client;
  client::EventRecorder& events;
  PodRuntime& runtime;
  const client::Informer& services;
  IpAllocator& addresses;
  DeviceAllocator& devices;
  GangSandboxes& gangs;
  HandlerRunner& handlers;
  ImageCache* images = nullptr;       // nullptr: every image name means the machine itself
  PolicyGuard* policies = nullptr;    // nullptr: there are no network policies
  NetworkMounter* mounter = nullptr;  // nullptr: no volume of a server is mounted
  DevicePlugins* plugins = nullptr;   // nullptr: there are no device plugins

  std::string data_dir, node_name, host_ip, bridge, cluster_domain;
  Ipv4 dns_address;
  std::string host_resolv_conf, host_hosts;
  json::Value node_allocatable;
  int64_t node_memory_bytes = 0;
  bool disk_pressure = false;                  // new pods are refused
  int64_t pod_max_pids = 0;                    // 0: no limit
  std::string limits_not_enforced;             // why, if limits of memory or CPU are not
  std::unique_ptr<PortAllocator> plain_ports;  // where pods are plain processes of the machine
  std::shared_ptr<NodeSecrets> secrets = std::make_shared<NodeSecrets>();
  VolumeUsers volume_users;
  HostPorts host_ports;
  std::string driver_library;  // of the GPUs, a file of the node; "": none is known

  std::function<void()> on_addresses_changed;  // a pod got or lost its address, or all are known
  std::function<void(const std::string& uid)>
      on_done;  // the worker may be destroyed (posted, not from inside it)
};

class PodWorker {
 public:
  PodWorker(PodWorkerContext& context, json::Value pod, const RecoveredPod* recovered);
  ~PodWorker();

  void Start();  // the first Sync()
  void Update(json::Value pod);
  // The object is gone from the server: end at once.
  void ObjectGone();
  void OnContainerExit(const std::string& container, int attempt, const ContainerExit& exit);
  void OnSandboxGone();
  // Devices of the node have come, gone, or changed their health.
  void DevicesChanged();
  // What context.policies says may have changed.
  void PoliciesChanged();
  // The node ends the pod for its own good: phase Failed, reason Evicted.
  void Evict(const std::string& message);

  bool done() const { return done_; }
  const json::Value& pod() const { return pod_; }
  const std::string& uid() const { return uid_; }
  const PodRuntimeState& state() const { return state_; }
  bool sandbox_ready() const { return sandbox_ready_; }
  bool ends() const { return ShouldStop(); }
  bool removed() const { return removed_; }  // nothing of it is left on the node

 private:
  // kLost: the sandbox died; first its folder tells what had ended before.
  enum class Step : uint8_t {
    kLost,
    kAdmit,
    kInputs,
    kFolder,
    kPolicies,
    kSandbox,
    kPrepare,
    kContainers
  };

  // pod_worker.cc: steps up to a prepared sandbox.
  void Sync();
  void Admit();
  void ReleaseHostPorts();
  bool AdmitPlain(bool is_new);  // false: it has failed
  void GetInputs();
  void MakeFolder();
  void FolderMade();
  void AwaitPolicies();
  void MakeSandbox();
  void PrepareSandbox();
  json::Value PrepareRequest() const;
  void Restore(const RecoveredPod& recovered);
  void TakeContainers(const RecoveredPod& recovered);
  void ReadWhatIsLeft();
  void RunInitContainersAgain();
  bool TakeHostPorts();
  void ShowWait(std::string_view event_reason, const std::string& message);
  void RetryLater(std::string_view event_reason, const std::string& message);
  void Fail(std::string reason, std::string message);
  void Reject(std::string reason, const std::string& message);
  void FailAs(std::string reason, std::string message);
  void WaitForDevices(const std::string& why);
  void WatchDeadline();
  Result<Ipv4> TakeAddress();
  void ReleaseAddress();
  void UpdateVolumes();
  void RefreshVolumes();

  // pod_claims.cc: the volumes of its claims.
  void RestoreClaims(const json::Value& record);
  std::vector<ClaimVolume> Claims() const;
  void ForgetClaims();

  // pod_mounts.cc: its volumes that servers keep.
  void MountNetworkVolumes(std::vector<NetworkVolume> volumes);
  void StopMounting();

  // pod_devices.cc: how its devices do.
  std::vector<AllocatedDevice> DevicesNow(const std::string& container) const;
  bool LookAtDevices();  // true: not as before

  // pod_plugins.cc: what device plugins give its containers.
  bool AllocatedByPlugins();        // false: they are asked, or it has failed
  bool PluginsReady(size_t index);  // false: they are asked before the container starts
  struct PluginAsking;
  void AskPlugins(const std::string& container, Function<void(Status)> done);
  void AskNextPlugin(const std::shared_ptr<PluginAsking>& asking);
  void AskBeforeStart(size_t index, std::vector<std::string> resources);
  bool HasPluginDevices(const std::string& container) const;

  // pod_containers.cc: starting and restarting containers.
  void SyncContainers();
  bool SyncInitContainer(size_t index);
  void SyncAppContainer(size_t index);
  bool AppsDone() const;
  bool ShouldRestart(const ContainerRuntimeState& container) const;
  cluster::DeviceLists GangDevices() const;
  void StartContainer(size_t index);
  void WarnOfNoDriver(const ContainerSpec& spec);
  void OnStarted(size_t index, const Result<std::string>& started_at);
  void RecordExit(size_t index, const ContainerExit& exit, bool just_now = true);
  void WaitWith(size_t index, std::string reason, std::string message);
  bool AnyPostStart() const;
  void RunPostStart(size_t index);
  void OnPostStart(size_t index, const HandlerResult& result);
  std::optional<size_t> IndexOf(const std::string& container) const;

  // pod_containers.cc, too: what their probes say.
  PodProbes::Hooks ProbeHooks();
  void BeginProbes(size_t index, bool recovered = false);
  std::optional<PodProbes::Known> KnownOf(size_t index) const;
  void LookAtProbes(size_t index);
  void EndUnhealthy();

  // pod_images.cc: the images that containers start from.
  bool ImageReady(size_t index);
  void PullImage(size_t index, const ImageReference& reference);
  void OnPulled(size_t index, const ImageReference& reference, const Result<PulledImage>& pulled);
  void UseImage(size_t index, const ImageRecord& image, const std::string& called);
  void WaitForImage(size_t index, std::string_view reason, const std::string& message);
  std::vector<json::Value> PullSecrets();

  // pod_stop.cc: ending it.
  bool ShouldStop() const;
  void Stop();
  void BeginEnding(size_t index, Duration grace, const std::string& message);
  void AdvanceEndings();
  void AdvanceEnding(size_t index);
  Duration GraceNow(size_t index) const;
  bool ItsTurnToEnd(size_t index) const;
  void RunPreStop(size_t index);
  void Signal(size_t index, bool kill);
  void RemoveEverything();
  void DeleteObject();
  void Finish();
  Duration SpecGrace() const;
  Duration StopGrace() const;

  bool IsDeleted() const { return !pod_["metadata"]["deletionTimestamp"].AsString().empty(); }
  bool AnyRunning() const;
  bool IsPlain() const { return context_.plain_ports != nullptr; }
  bool HostNetwork() const { return IsPlain() || pod_["spec"]["hostNetwork"].AsBool(); }
  PodFacts Facts() const;
  void ScheduleSync(Duration delay);  // an earlier one that is scheduled already stays
  void MarkStatus();
  void WriteStatusNow();
  void Event(client::EventType type, std::string_view reason, const std::string& message);

  PodWorkerContext& context_;
  json::Value pod_;
  const std::string uid_;
  const std::string gang_;  // SharedGangOf(pod): it does not change
  PodRuntimeState state_;
  Step step_ = Step::kAdmit;
  Step after_lost_ = Step::kAdmit;

  bool busy_ = false;  // a step is under way
  bool sandbox_ready_ = false;
  bool prepared_ = false;    // layer, /dev/shm and volumes of the present sandbox are made
  bool apps_begun_ = false;  // in the present sandbox
  bool object_gone_ = false;
  bool removed_ = false;  // nothing is left on the node
  bool delete_sent_ = false;
  bool done_ = false;
  bool status_posted_ = false;
  bool mounting_ = false;     // the step under way waits for a server
  bool claims_held_ = false;  // their volumes are its own, whatever becomes of the claims

  PodInputs inputs_;
  VolumePlan plan_;
  std::vector<std::string> node_secrets_, node_mounts_;
  std::vector<DriverFile> driver_files_;
  cluster::AssignedDevices assigned_;
  std::map<std::string, PluginAllocation> plugin_allocations_;  // by container, when all are known
  std::set<std::string> pre_started_;                           // containers, for the next start
  struct Restart {
    CrashBackoff backoff;
    Time not_before{};
  };
  std::vector<Restart> restarts_;  // by container, as state_.containers
  struct ImageWait {
    bool pulling = false;
    bool ready = false;      // for the next start
    bool refreshed = false;  // the pod's secrets were fetched again for the next try
    Duration delay{};        // after the last failure
    Time failed_at{};
    std::string failure;
  };
  std::vector<ImageWait> image_waits_;  // by container, too
  Duration retry_delay_ = kFirstRetryDelay;
  std::string last_failure_;  // so that a retry does not repeat the event

  std::optional<Time> stop_since_;
  struct Ending {
    ContainerStop stop;
    Duration grace;  // its own; that of the pod may be less
    std::unique_ptr<HandlerRun> hook;
  };
  // By container: those that are being stopped, and the postStart hooks that run.
  std::vector<std::optional<Ending>> endings_;
  std::vector<std::unique_ptr<HandlerRun>> post_starts_;
  Time sync_due_{};
  TimerId sync_timer_ = 0, first_status_timer_ = 0, deadline_timer_ = 0, refresh_timer_ = 0;
  TimerId slow_mount_timer_ = 0;
  json::Value
      own_conditions_;  // as last written: their transition times hold until the object shows them
  StatusWriter status_;
  PodProbes probes_;
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
