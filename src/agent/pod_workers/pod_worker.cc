#include "agent/pod_workers/pod_worker.h"

#include <algorithm>

#include "agent/network/pod_files.h"
#include "agent/node/node_mounts.h"
#include "agent/pod_workers/inputs_fetcher.h"
#include "agent/pod_workers/plain_pod.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_runtime.h"
#include "base/bounded_seconds.h"
#include "base/log.h"
#include "json/write.h"
#include "schema/pod_phase.h"
#include "schema/registry.h"
#include "schema/unsupported_fields.h"

namespace muster::agent {
namespace {

// The upstream text of a state that nobody saw end.
ContainerExit LostExit(const std::string& started_at, Time now) {
  return {137,
          0,
          "ContainerStatusUnknown",
          "The container could not be located when the pod was terminated",
          started_at,
          FormatNanoTime(now)};
}

// Fields that loosen or tighten what a pod may do and that this node cannot follow.
std::string RestrictingField(const json::Value& pod) {
  for (const char* field : {"hostPID", "hostIPC"}) {
    if (pod["spec"][field].AsBool()) return fmt::format("spec.{}", field);
  }
  const schema::KindPtr kind = schema::Registry::BuiltIn().Find("", "v1", "pods");
  if (kind == nullptr || kind->schema == nullptr) return "";
  for (const schema::UnsupportedField& field : schema::FindUnsupported(*kind->schema, pod)) {
    if (field.restricts) return field.path;
  }
  return "";
}

constexpr std::string_view kOs = "linux";
// The kubelet's.
constexpr std::string_view kOtherOs = "Failed to admit pod as the OS field doesn't match node OS";

bool HasLimits(const json::Value& pod) {
  return std::ranges::any_of(AllContainers(pod), [](const json::Value& container) {
    const json::Value& limits = container["resources"]["limits"];
    return limits.Has("memory") || limits.Has("cpu");
  });
}

}  // namespace

PodWorker::PodWorker(PodWorkerContext& context, json::Value pod, const RecoveredPod* recovered)
    : context_(context),
      pod_(std::move(pod)),
      uid_(pod_["metadata"]["uid"].Str()),
      gang_(recovered != nullptr && recovered->record.Has("gang") ? recovered->record["gang"].Str()
                                                                  : SharedGangOf(pod_)),
      status_(context.loop, context.client, pod_,
              [this] {
                if (status_.NeedsNewStatus(pod_)) MarkStatus();
                Sync();
              }),
      probes_(context.loop, context.handlers, pod_, recovered != nullptr, ProbeHooks()) {
  const size_t init_count = pod_["spec"]["initContainers"].size();
  for (const json::Value& container : AllContainers(pod_)) {
    ContainerRuntimeState entry;
    entry.name = container["name"].Str();
    entry.init = state_.containers.size() < init_count;
    entry.sidecar = entry.init && container["restartPolicy"].AsString() == "Always";
    if (!entry.init && init_count > 0) entry.waiting_reason = "PodInitializing";
    state_.containers.push_back(std::move(entry));
  }
  restarts_.resize(state_.containers.size());
  image_waits_.resize(state_.containers.size());
  endings_.resize(state_.containers.size());
  post_starts_.resize(state_.containers.size());
  state_.host_ip = context_.host_ip;
  const json::Value& start_time = pod_["status"]["startTime"];
  state_.start_time = start_time.IsString() ? start_time.Str() : FormatTime(context_.loop.Now());
  removed_ = schema::IsFinalPhase(pod_["status"]["phase"].AsString()) && recovered == nullptr;
  if (recovered != nullptr) Restore(*recovered);
}

PodWorker::~PodWorker() {
  for (TimerId timer :
       {sync_timer_, first_status_timer_, deadline_timer_, refresh_timer_, slow_mount_timer_})
    context_.loop.Cancel(timer);
}

void PodWorker::Restore(const RecoveredPod& recovered) {
  assigned_ = cluster::AssignedDevicesFromJson(recovered.record["devices"]);
  (void)LookAtDevices();
  RestoreClaims(recovered.record);
  sandbox_ready_ = state_.sandbox_ready = recovered.sandbox_alive;
  prepared_ = recovered.sandbox_alive && recovered.prepared;
  if (sandbox_ready_) {
    TakeContainers(recovered);
  } else {
    step_ = Step::kLost;  // it may have written more before it went
  }
  // The manager has taken the address of a live sandbox already.
  if (sandbox_ready_ && !HostNetwork()) state_.pod_ip = recovered.record["podIP"].Str();
}

// Starts and ends that the folder and the shim know of, and we perhaps do not.
void PodWorker::TakeContainers(const RecoveredPod& recovered) {
  const Time now = context_.loop.Now();
  for (const RecoveredContainer& container : recovered.containers) {
    const auto index = IndexOf(container.name);
    if (!index) continue;
    ContainerRuntimeState& entry = state_.containers[*index];
    const bool known = entry.attempt == container.attempt;
    if (context_.images != nullptr && !container.image_name.empty()) {
      entry.image_name = container.image_name;
      if (const ImageRecord* image = context_.images->FindRoot(container.image_name)) {
        entry.image = image->names.empty() ? "" : image->names.front();
        entry.image_id = image->ImageId();
        entry.image_stop_signal = image->config.stop_signal;
      }
    }
    if (known && entry.is != ContainerRuntimeState::Is::kRunning) continue;
    if (!known) {
      entry.attempt = container.attempt;
      entry.last_exit = container.last_exit;
      entry.last_exit_attempt = container.attempt - 1;
    }
    if (recovered.sandbox_alive && !entry.init) apps_begun_ = true;
    if (container.running && recovered.sandbox_alive) {
      entry.is = ContainerRuntimeState::Is::kRunning;
      entry.started_at = container.started_at;
      BeginProbes(*index, /*recovered=*/true);
    } else {
      RecordExit(*index, container.exit.value_or(LostExit(container.started_at, now)),
                 /*just_now=*/false);
    }
  }
}

// What they made (memory volumes, files of the layer) went with the sandbox.
void PodWorker::RunInitContainersAgain() {
  if (ShouldStop()) return;
  for (ContainerRuntimeState& container : state_.containers) {
    if (!container.init || container.sidecar || !container.Succeeded()) continue;
    container.last_exit = std::exchange(container.exit, std::nullopt);
    container.last_exit_attempt = container.exit_attempt;
    container.is = ContainerRuntimeState::Is::kWaiting;
    container.waiting_reason = "PodInitializing";
  }
}

void PodWorker::Start() {
  first_status_timer_ = context_.loop.After(kFirstStatusDelay, [this] {
    if (status_.NothingWrittenYet() && !removed_) WriteStatusNow();
  });
  WatchDeadline();
  Sync();
}

void PodWorker::Update(json::Value pod) {
  // What we wrote ourselves comes back here: only what others may change matters.
  pod_ = std::move(pod);
  if (status_.IsContradictedBy(pod_)) {
    own_conditions_ = pod_["status"]["conditions"];
    MarkStatus();
  }
  if (status_.NeedsNewStatus(pod_)) MarkStatus();
  WatchDeadline();
  if (!pod_["spec"]["readinessGates"].IsNull() && !removed_) MarkStatus();
  Sync();
}

void PodWorker::ObjectGone() {
  object_gone_ = true;
  ReleaseHostPorts();
  Sync();
}

// For the next pod, whatever the end of this one takes.
void PodWorker::ReleaseHostPorts() {
  if (!context_.host_ports.Has(uid_)) return;
  context_.host_ports.Release(uid_);
  context_.on_addresses_changed();
}

void PodWorker::OnSandboxGone() {
  LOG_WARN("agent: sandbox of pod {}/{} is gone", pod_["metadata"]["namespace"].AsString(),
           pod_["metadata"]["name"].AsString());
  sandbox_ready_ = prepared_ = state_.sandbox_ready = apps_begun_ = false;
  // Whatever step was under way fails by itself; the next one starts from the beginning.
  after_lost_ = step_ == Step::kLost ? after_lost_ : Step::kInputs;
  step_ = Step::kLost;
  Sync();
}

// A shim that was killed took its containers along, but not what it had written down: exits that
// it had no time to tell of, and starts that it was asked for.
void PodWorker::ReadWhatIsLeft() {
  busy_ = true;
  auto left = std::make_shared<RecoveredPod>();
  context_.pool.Run(
      [left, data_dir = context_.data_dir, uid = uid_] { *left = ReadPodFolder(data_dir, uid); },
      context_.loop, lifetime_.Guard([this, left] {
        busy_ = false;
        TakeContainers(*left);
        RunInitContainersAgain();
        step_ = after_lost_;
        if (!ShouldStop()) {
          Event(client::EventType::kNormal, "SandboxChanged",
                "Pod sandbox changed, it will be killed and re-created.");
        }
        MarkStatus();
        Sync();
      }));
}

void PodWorker::Sync() {
  if (mounting_ && ShouldStop()) StopMounting();
  if (busy_ || done_) return;
  if (step_ == Step::kLost) return ReadWhatIsLeft();
  if (ShouldStop()) return Stop();
  switch (step_) {
    case Step::kLost:
    case Step::kAdmit:
      return Admit();
    case Step::kInputs:
      return GetInputs();
    case Step::kFolder:
      return MakeFolder();
    case Step::kPolicies:
      return AwaitPolicies();
    case Step::kSandbox:
      return MakeSandbox();
    case Step::kPrepare:
      return PrepareSandbox();
    case Step::kContainers:
      return SyncContainers();
  }
}

void PodWorker::Fail(std::string reason, std::string message) {
  Event(client::EventType::kWarning, reason, message);
  FailAs(std::move(reason), std::move(message));
}

void PodWorker::FailAs(std::string reason, std::string message) {
  state_.failed_reason = std::move(reason);
  state_.failed_message = std::move(message);
  MarkStatus();
  Sync();
}

// Refused before anything of it began.
void PodWorker::Reject(std::string reason, const std::string& message) {
  state_.rejected = std::all_of(state_.containers.begin(), state_.containers.end(),
                                [](const auto& container) { return container.attempt < 0; });
  Event(client::EventType::kWarning, reason, message);
  FailAs(std::move(reason),
         state_.rejected ? fmt::format("Pod was rejected: {}", message) : message);
}

void PodWorker::Evict(const std::string& message) {
  if (!ShouldStop()) Fail(std::string(kEvicted), message);
}

bool PodWorker::AdmitPlain(bool is_new) {
  if (const Status status = CheckPlainPod(pod_); !status.ok()) {
    Reject("UnsupportedField", status.message());
    return false;
  }
  if (const Status status = context_.plain_ports->Take(pod_, is_new); !status.ok()) {
    Reject("NodePorts", status.message());  // the kubelet's reason
    return false;
  }
  return true;
}

// A pod that is refused makes place for another one at once, which helps where the scheduler knows
// better by then. It knows nothing of programs of the node: whoever wants their ports waits.
bool PodWorker::TakeHostPorts() {
  const Status status = context_.host_ports.Take(pod_);
  if (status.ok()) return true;
  if (status.reason() != Reason::kServiceUnavailable) {
    Reject("NodePorts", status.message());
    return false;
  }
  ShowWait("FailedCreatePodSandBox", status.message());
  ScheduleSync(kHostPortRetry);
  return false;
}

void PodWorker::Admit() {
  const bool is_new = std::all_of(state_.containers.begin(), state_.containers.end(),
                                  [](const auto& container) { return container.attempt < 0; });
  if (context_.disk_pressure && is_new)
    return Reject(std::string(kEvicted), "The node had condition: [DiskPressure]. ");
  if (const std::string os = pod_["spec"]["os"]["name"].Str(kOs); os != kOs)
    return Reject("PodOSNotSupported", std::string(kOtherOs));
  const std::string field = RestrictingField(pod_);
  if (!field.empty()) {
    return Reject(
        "UnsupportedField",
        fmt::format(
            "{} is set, which this node cannot enforce; the pod is not run without it. Remove the "
            "field, or use a node with a container runtime",
            field));
  }
  if (!TakeHostPorts()) return;
  if (IsPlain() && !AdmitPlain(is_new)) return;
  if (!context_.devices.known() && context_.devices.Wants(pod_))
    return WaitForDevices("the GPU driver has not answered since the node agent was started");
  Result<cluster::AssignedDevices> assigned = context_.devices.Assign(pod_, AnyRunning());
  if (!assigned && assigned.error().reason() == Reason::kServiceUnavailable)
    return WaitForDevices(assigned.error().message());
  if (!assigned) return Reject("UnexpectedAdmissionError", assigned.error().message());
  WaitForDevices("");
  if (is_new && !context_.limits_not_enforced.empty() && HasLimits(pod_))
    Event(client::EventType::kWarning, "LimitsNotEnforced", context_.limits_not_enforced);
  assigned_ = std::move(*assigned);
  DevicesChanged();
  // Of what runs already a plugin is not asked.
  if (!AnyRunning() && !AllocatedByPlugins()) return;
  step_ = Step::kInputs;
  Sync();
}

// "" ends the wait.
void PodWorker::WaitForDevices(const std::string& why) {
  for (ContainerRuntimeState& container : state_.containers) {
    if (container.is != ContainerRuntimeState::Is::kWaiting) continue;
    if (container.waiting_message != why) MarkStatus();
    container.waiting_message = why;
  }
  if (!why.empty()) ScheduleSync(kDevicesRetry);
}

PodFacts PodWorker::Facts() const {
  return {state_.pod_ip, context_.host_ip, context_.node_name, context_.node_allocatable};
}

void PodWorker::ShowWait(std::string_view event_reason, const std::string& message) {
  if (message != last_failure_) {
    Event(client::EventType::kWarning, event_reason, message);
    last_failure_ = message;
  }
  for (size_t i = 0; i < state_.containers.size(); ++i) {
    ContainerRuntimeState& container = state_.containers[i];
    if (container.is == ContainerRuntimeState::Is::kWaiting) container.waiting_message = message;
  }
  MarkStatus();
}

void PodWorker::RetryLater(std::string_view event_reason, const std::string& message) {
  ShowWait(event_reason, message);
  ForgetClaims();
  step_ = Step::kInputs;
  ScheduleSync(retry_delay_);
  retry_delay_ = std::min<Duration>(retry_delay_ * 2, kMaxRetryDelay);
}

Result<Ipv4> PodWorker::TakeAddress() {
  return gang_.empty() ? context_.addresses.Allocate() : context_.gangs.Join(gang_, uid_);
}

void PodWorker::ReleaseAddress() {
  if (HostNetwork()) return;
  if (!gang_.empty()) return context_.gangs.Leave(gang_, uid_);
  if (const auto address = Ipv4::Parse(state_.pod_ip)) context_.addresses.Release(*address);
}

void PodWorker::GetInputs() {
  if (HostNetwork()) {
    state_.pod_ip = context_.host_ip;
  } else if (state_.pod_ip.empty()) {
    Result<Ipv4> address = TakeAddress();
    if (!address) return RetryLater("FailedCreatePodSandBox", address.error().message());
    state_.pod_ip = address->ToString();
    context_.on_addresses_changed();
    // What it takes goes on beside the next steps.
    if (context_.policies != nullptr) (void)context_.policies->Look(pod_, state_.pod_ip);
  }
  busy_ = true;
  FetchPodInputs(context_.client, context_.services, pod_, inputs_,
                 lifetime_.Guard([this](Result<PodInputs> inputs) {
                   busy_ = false;
                   if (ShouldStop() || step_ == Step::kLost) return Sync();
                   if (!inputs) return RetryLater("FailedMount", inputs.error().message());
                   inputs_ = std::move(*inputs);
                   Result<VolumePlan> plan =
                       PlanVolumes(pod_, inputs_, Facts(), PodDir(context_.data_dir, uid_));
                   if (!plan) return RetryLater("FailedMount", plan.error().message());
                   const Status taken = context_.volume_users.Take(uid_, Claims());
                   if (!taken.ok()) return RetryLater("FailedMount", taken.message());
                   plan_ = std::move(*plan);
                   step_ = Step::kFolder;
                   Sync();
                 }));
}

void PodWorker::MakeFolder() {
  busy_ = true;
  struct Work {
    VolumePlan plan;
    std::vector<NetworkVolume> not_mounted = {};
    std::vector<std::string> secrets, mounts;
    std::vector<DriverFile> driver;
    Status status;
  };
  auto work = std::make_shared<Work>(Work{plan_, {}, {}, {}, {}, {}});
  const json::Value record = json::Obj({{"uid", uid_},
                                        {"namespace", pod_["metadata"]["namespace"]},
                                        {"name", pod_["metadata"]["name"]},
                                        {"podIP", state_.pod_ip},
                                        {"gang", gang_},
                                        {"startTime", state_.start_time},
                                        {"devices", cluster::ToJson(assigned_)},
                                        {"claims", ToJson(Claims())},
                                        {"hostPorts", context_.host_ports.ToJson(uid_)},
                                        {"gpuMilli", DeviceAllocator::ShareOf(pod_)}});
  const std::string dir = PodDir(context_.data_dir, uid_);
  context_.pool.Run(
      [work, record, dir, data_dir = context_.data_dir, secrets = context_.secrets,
       library = context_.driver_library, wants_driver = !assigned_.empty()] {
        work->secrets = secrets->Paths();
        work->mounts = NodeProgramMounts(library);
        if (wants_driver) work->driver = FindDriverFiles(library);
        work->status = MakeDirs(dir, 0700);
        if (work->status.ok())
          work->status = WriteFileAtomic(dir + "/pod.json", json::Write(record), 0600);
        if (work->status.ok()) work->status = PrepareVolumes(work->plan, data_dir);
        if (!work->status.ok()) return;
        Result<std::vector<NetworkVolume>> missing = NotMounted(work->plan.network_volumes);
        if (missing) work->not_mounted = std::move(*missing);
        if (!missing) work->status = missing.error();
      },
      context_.loop, lifetime_.Guard([this, work] {
        busy_ = false;
        if (ShouldStop() || step_ == Step::kLost) return Sync();
        if (!work->status.ok()) return RetryLater("FailedMount", work->status.message());
        plan_ = std::move(work->plan);
        node_secrets_ = std::move(work->secrets);
        node_mounts_ = std::move(work->mounts);
        driver_files_ = std::move(work->driver);
        if (!work->not_mounted.empty()) return MountNetworkVolumes(std::move(work->not_mounted));
        FolderMade();
      }));
}

void PodWorker::FolderMade() {
  claims_held_ = true;
  step_ = !sandbox_ready_ ? Step::kPolicies : prepared_ ? Step::kContainers : Step::kPrepare;
  // After a restart of the agent: what changed meanwhile.
  if (step_ == Step::kContainers) UpdateVolumes();
  Sync();
}

// Before anything of the pod can send a packet.
void PodWorker::AwaitPolicies() {
  const PolicyGuard::Answer answer = context_.policies == nullptr
                                         ? PolicyGuard::Answer()
                                         : context_.policies->Look(pod_, state_.pod_ip);
  switch (answer.is) {
    case PolicyGuard::Answer::Is::kInForce:
      step_ = Step::kSandbox;
      return Sync();
    case PolicyGuard::Answer::Is::kNotYet:
      return;  // PoliciesChanged() looks again
    case PolicyGuard::Answer::Is::kFailed:
      return ShowWait("FailedCreatePodSandBox",
                      fmt::format("Failed to create pod sandbox: {}", answer.message));
    case PolicyGuard::Answer::Is::kRefused:
      return Reject(std::string(kPolicyNotEnforced), answer.message);
  }
}

void PodWorker::PoliciesChanged() {
  if (step_ == Step::kPolicies) Sync();
}

void PodWorker::MakeSandbox() {
  SandboxRequest request;
  request.uid = uid_;
  request.pod_dir = PodDir(context_.data_dir, uid_);
  request.hostname = PodHostname(pod_);
  request.cgroup = PodCgroup(uid_);
  request.limits = PodLimits(pod_);
  request.limits.pids = context_.pod_max_pids;
  request.host_network = HostNetwork();
  if (!request.host_network) {
    request.bridge = context_.bridge;
    request.address = Ipv4::Parse(state_.pod_ip).value_or(Ipv4{});
    request.gateway = context_.addresses.Gateway();
    for (const std::string& member : context_.gangs.OtherMembers(gang_, uid_))
      request.gang.push_back(PodDir(context_.data_dir, member));
  }
  busy_ = true;
  context_.runtime.CreateSandbox(request, lifetime_.Guard([this](Status status) {
    busy_ = false;
    if (!status.ok()) {
      return RetryLater("FailedCreatePodSandBox",
                        fmt::format("Failed to create pod sandbox: {}", status.message()));
    }
    sandbox_ready_ = state_.sandbox_ready = true;
    step_ = Step::kPrepare;
    Sync();
  }));
}

json::Value PodWorker::PrepareRequest() const {
  const Ipv4 address = Ipv4::Parse(state_.pod_ip).value_or(Ipv4{});
  const std::string hosts = HostNetwork() ? EtcHostsOfHostNetwork(pod_, context_.host_hosts)
                                          : EtcHosts(pod_, address, context_.cluster_domain);
  const std::string resolv_conf =
      EtcResolvConf(pod_, context_.dns_address, ParseResolvConf(context_.host_resolv_conf),
                    context_.cluster_domain);
  return json::Obj({{"hidden", json::Strings({context_.data_dir})},
                    {"secrets", json::Strings(node_secrets_)},
                    {"files", json::Obj({{"/etc/hosts", hosts},
                                         {"/etc/hostname", EtcHostname(pod_)},
                                         {"/etc/resolv.conf", resolv_conf}})},
                    // What several pods share is not as small as one of them.
                    {"shmBytes", gang_.empty() ? PodMemoryLimit(pod_) : 0},
                    {"volumes", plan_.shim_volumes}});
}

void PodWorker::PrepareSandbox() {
  busy_ = true;
  context_.runtime.Prepare(uid_, PrepareRequest(), lifetime_.Guard([this](Status status) {
    busy_ = false;
    if (!status.ok() && !sandbox_ready_) return Sync();  // OnSandboxGone() has set what comes next
    if (!status.ok()) return RetryLater("FailedMount", status.message());
    prepared_ = true;
    retry_delay_ = kFirstRetryDelay;
    last_failure_.clear();
    for (ContainerRuntimeState& container : state_.containers) container.waiting_message.clear();
    step_ = Step::kContainers;
    RefreshVolumes();
    Sync();
  }));
}

// The shim writes those whose version is new.
void PodWorker::UpdateVolumes() {
  RefreshVolumes();
  context_.runtime.UpdateVolumes(uid_, plan_.shim_volumes, [](Status status) {
    if (!status.ok()) LOG_WARN("agent: update volumes: {}", status.message());
  });
}

// What volumes show (ConfigMaps, Secrets, the pod's own fields, tokens) is written again when it
// changes.
void PodWorker::RefreshVolumes() {
  context_.loop.Cancel(refresh_timer_);
  if (!HasFiles(plan_)) return;
  refresh_timer_ = context_.loop.After(kVolumeRefreshPeriod, [this] {
    if (ShouldStop() || !sandbox_ready_) return;
    FetchPodInputs(context_.client, context_.services, pod_, inputs_,
                   lifetime_.Guard([this](Result<PodInputs> inputs) {
                     RefreshVolumes();
                     if (!inputs || ShouldStop() || !sandbox_ready_) return;
                     inputs_.tokens = inputs->tokens;
                     const auto plan =
                         PlanVolumes(pod_, *inputs, Facts(), PodDir(context_.data_dir, uid_));
                     if (!plan || plan->shim_volumes == plan_.shim_volumes) return;
                     plan_.shim_volumes = plan->shim_volumes;
                     UpdateVolumes();
                   }));
  });
}

void PodWorker::WatchDeadline() {
  context_.loop.Cancel(deadline_timer_);
  deadline_timer_ = 0;
  const auto limit = pod_["spec"]["activeDeadlineSeconds"].Int();
  const auto start = ParseTime(state_.start_time);
  if (!limit || !start || ShouldStop()) return;
  // A clock that was set back between two lives must not make it longer.
  const Duration passed = std::max<Duration>(context_.loop.Now() - *start, Duration());
  const Duration left = BoundedSeconds(*limit) - passed;
  deadline_timer_ = context_.loop.After(left, [this] {
    deadline_timer_ = 0;
    if (ShouldStop()) return;
    Fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
  });
}

void PodWorker::ScheduleSync(Duration delay) {
  const Time due = context_.loop.Now() + delay;
  if (sync_timer_ != 0 && sync_due_ <= due) return;
  context_.loop.Cancel(sync_timer_);
  sync_due_ = due;
  sync_timer_ = context_.loop.After(delay, [this] {
    sync_timer_ = 0;
    Sync();
  });
}

// Several changes of one moment become one write.
void PodWorker::MarkStatus() {
  if (status_posted_ || object_gone_) return;
  status_posted_ = true;
  context_.loop.Post(lifetime_.Guard([this] {
    if (!status_posted_) return;  // written meanwhile
    WriteStatusNow();
  }));
}

void PodWorker::WriteStatusNow() {
  status_posted_ = false;
  if (object_gone_ || step_ == Step::kLost) return;
  json::Value status = BuildPodStatus(pod_, state_, own_conditions_, context_.loop.Now());
  own_conditions_ = status["conditions"];
  status_.Write(std::move(status), client::RevisionOf(pod_));
}

void PodWorker::Event(client::EventType type, std::string_view reason, const std::string& message) {
  if (!object_gone_) context_.events.Record(pod_, type, reason, message);
}

}  // namespace muster::agent
