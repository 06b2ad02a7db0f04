// The part of PodWorker that starts and restarts containers.

#include <algorithm>

#include "agent/pod_workers/plain_pod.h"
#include "agent/pod_workers/pod_worker.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_runtime.h"
#include "agent/shim/shim.h"
#include "base/bounded_seconds.h"
#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

using Is = ContainerRuntimeState::Is;

constexpr std::string_view kNoProgram =
    "no command specified: neither the container nor its image names a program; set `command` in "
    "the container (image \"none\" is the machine itself and has none)";

std::string BackoffMessage(Duration delay, const json::Value& pod, const std::string& container) {
  return fmt::format("back-off {} restarting failed container={} pod={}_{}({})",
                     HumanDuration(delay), container, pod["metadata"]["name"].AsString(),
                     pod["metadata"]["namespace"].AsString(), pod["metadata"]["uid"].AsString());
}

std::string FolderOf(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

// Before `attempt` starts. A container that restarts for ever must not fill the disk: it keeps
// records and logs of the two attempts before (state and lastState), and the layer of one.
void RemoveOldAttempts(const std::string& base, const std::string& log, int attempt) {
  for (const std::string& dir : {FolderOf(base), FolderOf(log)}) {
    for (const std::string& name : ListDir(dir)) {
      // 3, 3.start, 3.exit, 3.log, 3.log.00000000000000000001
      const size_t dot = name.find('.');
      const auto number = ParseInt(std::string_view(name).substr(0, dot));
      if (!number || *number > attempt - (dot == std::string::npos ? 2 : 3)) continue;
      (void)RemoveTree(dir + "/" + name);
    }
  }
}

}  // namespace

std::optional<size_t> PodWorker::IndexOf(const std::string& container) const {
  for (size_t i = 0; i < state_.containers.size(); ++i) {
    if (state_.containers[i].name == container) return i;
  }
  return std::nullopt;
}

bool PodWorker::AnyRunning() const {
  for (const ContainerRuntimeState& container : state_.containers) {
    if (container.is == Is::kRunning) return true;
  }
  return false;
}

bool PodWorker::ShouldRestart(const ContainerRuntimeState& container) const {
  if (container.sidecar) return true;
  const std::string_view policy = pod_["spec"]["restartPolicy"].AsString("Always");
  if (policy == "Never") return false;
  // An init container that succeeded is done whatever the policy.
  const bool succeeded = container.exit && container.exit->exit_code == 0;
  return policy == "Always" && !container.init ? true : !succeeded;
}

void PodWorker::WaitWith(size_t index, std::string reason, std::string message) {
  ContainerRuntimeState& container = state_.containers[index];
  const bool same = container.is == Is::kWaiting && container.waiting_reason == reason &&
                    container.waiting_message == message;
  if (same) return;
  container.is = Is::kWaiting;
  container.waiting_reason = std::move(reason);
  container.waiting_message = std::move(message);
  MarkStatus();
}

void PodWorker::SyncContainers() {
  EndUnhealthy();
  AdvanceEndings();
  if (AnyPostStart()) return;  // as upstream: nothing else begins meanwhile
  bool all_initialized = true;
  for (size_t i = 0; i < state_.containers.size() && all_initialized; ++i) {
    if (state_.containers[i].init) all_initialized = SyncInitContainer(i);
    if (busy_) return;
  }
  if (!all_initialized) return;
  for (size_t i = 0; i < state_.containers.size(); ++i) {
    if (!state_.containers[i].init) SyncAppContainer(i);
    if (busy_) return;
  }
  if (ShouldStop()) Stop();
}

// True when the next container may start.
bool PodWorker::SyncInitContainer(size_t index) {
  const ContainerRuntimeState& container = state_.containers[index];
  if (container.sidecar) {
    SyncAppContainer(index);
    // One that starts again is not waited for.
    return apps_begun_ || container.Started();
  }
  if (container.is == Is::kRunning) return false;
  if (container.Succeeded()) return true;
  SyncAppContainer(index);
  return false;
}

// Nothing is left to do but for sidecars, which end now.
bool PodWorker::AppsDone() const {
  return std::all_of(state_.containers.begin(), state_.containers.end(),
                     [this](const ContainerRuntimeState& container) {
                       return container.init ||
                              (container.is == Is::kTerminated && !ShouldRestart(container));
                     });
}

void PodWorker::SyncAppContainer(size_t index) {
  ContainerRuntimeState& container = state_.containers[index];
  if (container.is == Is::kRunning) return;
  if (container.is == Is::kTerminated && !ShouldRestart(container)) return;
  Restart& restart = restarts_[index];
  const Duration left = restart.not_before - context_.loop.Now();
  if (left <= Duration()) return StartContainer(index);
  if (container.is == Is::kTerminated) {
    Event(client::EventType::kWarning, "BackOff",
          fmt::format("Back-off restarting failed container {} in pod {}_{}({})", container.name,
                      pod_["metadata"]["name"].AsString(), pod_["metadata"]["namespace"].AsString(),
                      uid_));
    container.last_exit = container.exit;
    container.last_exit_attempt = container.exit_attempt;
    WaitWith(index, "CrashLoopBackOff",
             BackoffMessage(restart.backoff.current(), pod_, container.name));
  }
  ScheduleSync(left);
}

// Those that nobody outside the gang has.
cluster::DeviceLists PodWorker::GangDevices() const {
  cluster::DeviceLists devices;
  if (gang_.empty()) return devices;
  devices = cluster::PodGangDevices(pod_);
  for (auto& [resource, ids] : devices) {
    std::erase_if(ids, [&, &of = resource](const std::string& id) {
      const std::string owner = context_.devices.OwnerOf(of, id);
      return !owner.empty() && owner != uid_ && !context_.gangs.IsMember(gang_, owner);
    });
  }
  return devices;
}

// It may do without: a program that only asks how many GPUs there are, or an image that brings its
// own driver, as machines whose driver is an image do.
void PodWorker::WarnOfNoDriver(const ContainerSpec& spec) {
  if (spec.image_root.empty() || spec.devices.empty()) return;
  if (std::any_of(driver_files_.begin(), driver_files_.end(),
                  [](const DriverFile& file) { return file.name.starts_with("libcuda.so."); }))
    return;
  const std::string& library = context_.driver_library;
  Event(client::EventType::kWarning, "NoDriverFiles",
        fmt::format("Container {} has the device files of its GPUs, but no libcuda.so of their "
                    "driver: none of its version is found beside {}. Install the driver's "
                    "user-space packages on the node, or mount them",
                    spec.name, library.empty() ? "the NVML library, which is unknown" : library));
}

void PodWorker::StartContainer(size_t index) {
  if (!ImageReady(index) || !PluginsReady(index)) return;
  const json::Value spec_json = AllContainers(pod_)[index];
  ContainerRuntimeState& container = state_.containers[index];
  const PodFacts facts = Facts();
  const ImageRecord* image = nullptr;
  if (!container.image_name.empty()) {
    image = context_.images->FindRoot(container.image_name);
    CHECK(image != nullptr);  // it is used
  }
  const cluster::DeviceLists gang_devices = GangDevices();
  const ContainerBuildInput input = {pod_,
                                     inputs_,
                                     facts,
                                     plan_,
                                     assigned_,
                                     context_.devices,
                                     gang_devices,
                                     node_mounts_,
                                     driver_files_,
                                     image,
                                     plugin_allocations_[container.name],
                                     context_.data_dir,
                                     context_.node_memory_bytes};
  Result<ContainerSpec> spec = BuildContainerSpec(input, spec_json, container.attempt + 1);
  if (!spec) {
    const std::string message = spec.error().message();
    if (container.waiting_message != message) {
      Event(client::EventType::kWarning, "Failed", fmt::format("Error: {}", message));
    }
    WaitWith(index, "CreateContainerConfigError", message);
    step_ = Step::kInputs;  // what is missing may come
    ScheduleSync(retry_delay_);
    retry_delay_ = std::min<Duration>(retry_delay_ * 2, kMaxRetryDelay);
    busy_ = false;
    return;
  }
  if (spec->arguments.empty()) {
    if (container.waiting_reason != "CreateContainerError") {
      Event(client::EventType::kWarning, "Failed", fmt::format("Error: {}", kNoProgram));
    }
    WaitWith(index, "CreateContainerError", std::string(kNoProgram));
    return;
  }
  if (spec->attempt == 0) WarnOfNoDriver(*spec);
  if (spec->attempt >= 2) {
    const std::string base = ContainerBase(PodDir(context_.data_dir, uid_), container.name, 0);
    context_.pool.Run([base, log = spec->log_path,
                       attempt = spec->attempt] { RemoveOldAttempts(base, log, attempt); },
                      context_.loop, [] {});
  }
  if (IsPlain()) {
    std::vector<json::Value> services;
    for (const auto& [key, service] : context_.services.objects()) services.push_back(service);
    UseMachineForNames(spec->environment, pod_["metadata"]["namespace"].Str(), services);
  }
  busy_ = true;
  context_.runtime.StartContainer(uid_, *spec,
                                  lifetime_.Guard([this, index](Result<std::string> started_at) {
                                    busy_ = false;
                                    OnStarted(index, started_at);
                                    Sync();
                                  }));
}

void PodWorker::OnStarted(size_t index, const Result<std::string>& started_at) {
  ContainerRuntimeState& container = state_.containers[index];
  image_waits_[index].ready = false;  // a restart looks again
  pre_started_.erase(container.name);
  if (!started_at && !sandbox_ready_) return;  // OnSandboxGone() has said what comes next
  if (container.is == Is::kTerminated) {
    container.last_exit = container.exit;
    container.last_exit_attempt = container.exit_attempt;
  }
  ++container.attempt;
  if (!started_at) {
    const std::string message = started_at.error().message();
    Event(client::EventType::kWarning, "Failed",
          fmt::format("Error: failed to start container \"{}\": {}", container.name, message));
    const std::string now = FormatNanoTime(context_.loop.Now());
    RecordExit(index, {128, 0, "StartError", message, "1970-01-01T00:00:00Z", now});
    return;
  }
  container.is = Is::kRunning;
  apps_begun_ = apps_begun_ || !container.init;
  container.started_at = *started_at;
  container.waiting_message.clear();
  container.post_start_runs = AllContainers(pod_)[index]["lifecycle"].Has("postStart");
  if (container.post_start_runs) {
    container.waiting_reason = "ContainerCreating";
  } else {
    BeginProbes(index);
  }
  WriteStatusNow();  // before the events: it is what others wait for
  Event(client::EventType::kNormal, "Created",
        fmt::format("Created container: {}", container.name));
  Event(client::EventType::kNormal, "Started", fmt::format("Started container {}", container.name));
  if (container.post_start_runs) RunPostStart(index);
}

PodProbes::Hooks PodWorker::ProbeHooks() {
  return {[this](size_t index) { LookAtProbes(index); },
          [this](std::string_view reason, const std::string& message) {
            Event(client::EventType::kWarning, reason, message);
          },
          [this] { return state_.pod_ip; }};
}

void PodWorker::BeginProbes(size_t index, bool recovered) {
  ContainerRuntimeState& container = state_.containers[index];
  probes_.Begin(index, EndedAt(container.started_at, context_.loop.Now(), !recovered),
                recovered ? KnownOf(index) : std::nullopt);
  container.started = probes_.Started(index);
  container.ready = probes_.Ready(index);
}

// What the object says of this very run of the container.
std::optional<PodProbes::Known> PodWorker::KnownOf(size_t index) const {
  const ContainerRuntimeState& container = state_.containers[index];
  const std::string id = ContainerId(uid_, container.name, container.attempt);
  const char* list = container.init ? "initContainerStatuses" : "containerStatuses";
  for (const json::Value& status : pod_["status"][list].items()) {
    if (status["containerID"].AsString() == id)
      return PodProbes::Known{status["started"].AsBool(), status["ready"].AsBool()};
  }
  return std::nullopt;
}

void PodWorker::LookAtProbes(size_t index) {
  ContainerRuntimeState& container = state_.containers[index];
  const bool started = probes_.Started(index), ready = probes_.Ready(index);
  if (container.started != started || container.ready != ready) MarkStatus();
  container.started = started;
  container.ready = ready;
  Sync();
}

// Those that their liveness or startup probe gave up.
void PodWorker::EndUnhealthy() {
  for (size_t i = 0; i < state_.containers.size(); ++i) {
    const ContainerRuntimeState& container = state_.containers[i];
    if (container.is != Is::kRunning || endings_[i]) continue;
    const std::optional<ProbeKind> failed = probes_.Failed(i);
    if (!failed) continue;
    const bool liveness = *failed == ProbeKind::kLiveness;
    const bool again =
        container.sidecar || pod_["spec"]["restartPolicy"].AsString("Always") != "Never";
    const json::Value probe = AllContainers(pod_)[i][liveness ? "livenessProbe" : "startupProbe"];
    const json::Value& own_grace = probe["terminationGracePeriodSeconds"];
    BeginEnding(i, own_grace.IsNull() ? SpecGrace() : BoundedSeconds(own_grace.AsInt()),
                fmt::format("Container {} failed {} probe{}", container.name,
                            liveness ? "liveness" : "startup", again ? ", will be restarted" : ""));
  }
}

bool PodWorker::AnyPostStart() const {
  return std::any_of(post_starts_.begin(), post_starts_.end(),
                     [](const auto& run) { return run != nullptr; });
}

void PodWorker::RunPostStart(size_t index) {
  const json::Value container = AllContainers(pod_)[index];
  const Result<HandlerAction> action =
      HookActionOf(container["lifecycle"]["postStart"], container, state_.pod_ip);
  if (!action) return OnPostStart(index, {HandlerResult::Is::kUnknown, action.error().message()});
  post_starts_[index] = context_.handlers.Run(
      {uid_, state_.containers[index].name}, *action, std::nullopt,
      lifetime_.Guard([this, index](const HandlerResult& result) { OnPostStart(index, result); }));
}

void PodWorker::OnPostStart(size_t index, const HandlerResult& result) {
  if (result.Good()) {
    state_.containers[index].post_start_runs = false;
    BeginProbes(index);
    WriteStatusNow();
  } else {
    Event(client::EventType::kWarning, "FailedPostStartHook", "PostStartHook failed");
    BeginEnding(index, SpecGrace(), "FailedPostStartHook");
  }
  post_starts_[index].reset();
  Sync();
}

void PodWorker::RecordExit(size_t index, const ContainerExit& exit, bool just_now) {
  ContainerRuntimeState& container = state_.containers[index];
  container.is = Is::kTerminated;
  container.exit = exit;
  container.exit_attempt = container.attempt;
  container.post_start_runs = false;
  probes_.End(index);
  endings_[index].reset();
  post_starts_[index].reset();
  const std::optional<Time> started = ParseTime(exit.started_at);
  const std::optional<Time> finished = ParseTime(exit.finished_at);
  // A program that cannot be started is not worth an immediate second try, but upstream gives it
  // one as well.
  const bool ran = exit.reason != "StartError";
  const Duration ran_for = ran && started && finished ? *finished - *started : Duration();
  restarts_[index].not_before = restarts_[index].backoff.OnExit(
      ran_for, EndedAt(exit.finished_at, context_.loop.Now(), just_now));
}

void PodWorker::OnContainerExit(const std::string& container, int attempt,
                                const ContainerExit& exit) {
  const auto index = IndexOf(container);
  if (!index) return;
  const ContainerRuntimeState& entry = state_.containers[*index];
  if (entry.is != Is::kRunning || entry.attempt != attempt) return;  // told twice
  RecordExit(*index, exit);
  MarkStatus();
  Sync();
}

}  // namespace muster::agent
