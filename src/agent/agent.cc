#include "agent/agent.h"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "agent/devices/device_plugins.h"
#include "agent/images/image_cache.h"
#include "agent/kubelet_server/kubelet_handler.h"
#include "agent/network/host_network.h"
#include "agent/network/ip_allocator.h"
#include "agent/network/pod_files.h"
#include "agent/node/idle_gpu_events.h"
#include "agent/node/network_publisher.h"
#include "agent/node/node_gpus.h"
#include "agent/node/node_object.h"
#include "agent/node/node_registrar.h"
#include "agent/node/policy_publisher.h"
#include "agent/node/policy_refuser.h"
#include "agent/pod_workers/disk_guard.h"
#include "agent/pod_workers/listeners.h"
#include "agent/pod_workers/pod_manager.h"
#include "agent/probes/node_handler_runner.h"
#include "agent/runtime/files.h"
#include "agent/runtime/process_runtime.h"
#include "agent/spawner/network_config.h"
#include "agent/spawner/spawner_client.h"
#include "agent/stats/usage_sampler.h"
#include "agent/user_node/limitations.h"
#include "agent/user_node/user_identity.h"
#include "agent/volumes/volume_remover.h"
#include "base/log.h"
#include "gpu/gpu_metrics.h"
#include "net/server.h"

namespace muster::agent {
namespace {

// What the pool reads before anything starts.
struct Gathered {
  Status status;
  NodeFacts facts;
  std::string resolv_conf, hosts, ca, cert, key;
};

void Gather(const AgentOptions& options, Gathered& out) {
  for (const char* dir : {"", "/pods", "/run", "/logs/pods"}) {
    Status status = MakeDirs(options.data_dir + dir, 0700);
    if (!status.ok()) out.status = std::move(status);
  }
  for (const char* dir : {"/pods", "/logs/pods"}) SpreadFolders(options.data_dir + dir);
  out.facts = GatherNodeFacts(options.data_dir);
  out.resolv_conf = ReadSmallFile("/etc/resolv.conf").value_or("");
  out.hosts = ReadSmallFile("/etc/hosts").value_or("127.0.0.1\tlocalhost\n");
  const auto read = [&out](const std::string& path, std::string& into) {
    if (path.empty()) return;
    if (auto text = ReadSmallFile(path)) {
      into = std::move(*text);
    } else {
      out.status = text.error();
    }
  };
  read(options.ca_file, out.ca);
  read(options.cert_file, out.cert);
  read(options.key_file, out.key);
}

}  // namespace

void ProtectFromOom(int score) {
  (void)WriteFile("/proc/self/oom_score_adj", std::to_string(score));
}

std::string SpawnerLockFile(const std::string& data_dir) { return data_dir + "/run/spawner.lock"; }

Result<UserNode> EnterNodeOfUser(const AgentOptions& options) {
  return EnterUserNode(options.data_dir, {options.ranges.DnsAddress(), 53});
}

// Members in dependency order.
struct Agent::Impl {
  Impl(AgentOptions options_in, AsioLoop& loop_in, Pool& pool_in, client::ApiClient& client_in,
       client::InformerSet& informers_in, SpawnerHandle handle, UserNode user_node_in, Rng rng_in)
      : options(std::move(options_in)),
        user_node(std::move(user_node_in)),
        loop(loop_in),
        pool(pool_in),
        client(client_in),
        rng(rng_in),
        network(NetworkOf(options)),
        pods_informer(informers_in.Get(client::resources::kPods, json::Fields::Whole(),
                                       "spec.nodeName=" + options.node_name)),
        events(client, "kubelet", options.node_name),
        spawner(loop, std::move(handle),
                [spawner_options =
                     SpawnerOptions{SpawnerLockFile(options.data_dir), user_node.network.get(),
                                    user_node.cgroup, user_node.plain}] {
                  return SpawnerProcess::Execute(spawner_options);
                }),
        runtime(options.data_dir, loop, pool, spawner),
        mounter({.program = "", .refusal = MountRefusal(user_node)}, loop),
        addresses(network.node_range),
        images(options.data_dir, loop, pool),
        own_io(IoOf(options)),
        node_io(IoOf(user_node)),
        handlers(loop, node_io != nullptr ? *node_io : Io(), runtime),
        policy_refuser(informers_in, pods_informer, events,
                       {.name = options.node_name,
                        .pods = [this] { return manager.Objects(); },
                        .on_policies_changed = [this] { manager.PoliciesChanged(); }}),
        policy_publisher(loop, pool, client, informers_in, pods_informer, spawner, events,
                         {.name = options.node_name,
                          .network = network,
                          .table_file = options.data_dir + "/run/policies",
                          .pods = [this] { return manager.PodsWithAddresses(); },
                          .on_policies_changed = [this] { manager.PoliciesChanged(); }}),
        context{.loop = loop,
                .pool = pool,
                .client = client,
                .events = events,
                .runtime = runtime,
                .services = informers_in.Get(client::resources::kServices, json::Fields::Whole()),
                .addresses = addresses,
                .devices = devices,
                .gangs = gangs,
                .handlers = handlers,
                .images = options.pull_images ? &images : nullptr,
                .policies = PolicyGuardOfNode(),
                .mounter = &mounter},
        manager(context, pods_informer),
        volume_remover({options.node_name, LocalVolumesDir(options.data_dir)}, loop, pool, client,
                       informers_in, context.volume_users),
        disk_guard(context, manager,
                   [this](bool pressure) {
                     if (registrar != nullptr) registrar->ReportDiskPressure(pressure);
                   }),
        informers(informers_in) {
    if (options.simulate_gpus > 0) {
      devices.SetDevices(SimulatedDevices(options.simulate_gpus, options.simulated_gpu_model), {});
      slicing_of_none = std::make_unique<TimeSlicingConfig>(
          informers, events, NodeReference(options.node_name),
          [](const gpu::TimeSlicing& slicing) -> Status {
            if (slicing.replicas == 1) return Status::Ok();
            return Error(Reason::kInvalid, "GPUs that are simulated are not cut");
          });
      slicing_of_none->Watch();
    } else {
      gpus = std::make_unique<NodeGpus>(loop, informers, events, devices, options.node_name,
                                        options.gpu_steady, [this] { OnGpus(); });
      gpus->monitor().OnEveryLook(
          [this] { idle_gpus.Observe(gpus->monitor().health(), this->loop.Now()); });
      devices.OnRelease([this] { CutGpusLater(); });
    }
    if (user_node.plain) return;
    // StartNetwork() wants them whole when it is too late to say so.
    informers.Get(client::resources::kEndpointSlices, json::Fields::Whole());
    plugins = std::make_unique<DevicePlugins>(
        loop, PluginDir(options.data_dir),
        DevicePlugins::Hooks{[this] { OfferDevices(); },
                             [this](std::string_view reason, const std::string& message) {
                               NodeEvent(reason, message);
                             }});
    context.plugins = plugins.get();
  }

  static std::unique_ptr<net::IoThreads> IoOf(const AgentOptions& options) {
    return options.io != nullptr ? nullptr : std::make_unique<net::IoThreads>(1);
  }
  // A thread inside the network of an ordinary user's node, from where its pods are reached.
  static std::unique_ptr<net::IoThreads> IoOf(const UserNode& user_node) {
    if (!user_node.valid()) return nullptr;
    return std::make_unique<net::IoThreads>(1, [network = user_node.network.get()] {
      if (setns(network, CLONE_NEWNET) != 0)
        LOG_ERROR("agent: probes cannot enter the node's network: {}", strerror(errno));
    });
  }
  // The kernel lets nobody else than the machine's root mount from servers.
  static std::string MountRefusal(const UserNode& user_node) {
    if (!user_node.valid() && !user_node.plain && !InUserNamespace()) return "";
    return "the node of an ordinary user cannot mount NFS, only the machine's root can: run muster "
           "as root, or have it mounted by the machine (/etc/fstab) and use a hostPath";
  }
  // Where pods are plain processes, they have no network of their own to restrict.
  PolicyGuard* PolicyGuardOfNode() {
    if (user_node.plain) return &policy_refuser;
    return &policy_publisher;
  }
  net::IoThreads& Io() const { return options.io != nullptr ? *options.io : *own_io; }

  static NodeNetworkConfig NetworkOf(const AgentOptions& options) {
    NodeNetworkConfig config;
    config.UseRanges(options.ranges);
    config.state_file = options.data_dir + "/run/network.state";
    return config;
  }

  void OnGathered(std::shared_ptr<Gathered> gathered);
  void FillContext(const Gathered& gathered);
  std::string ResolvConfOfUserNode(const std::string& machine) const;
  Status StartServer(const Gathered& gathered);
  std::vector<MeasuredPod> MeasuredPods() const;
  void StartNetwork(const std::string& resolv_conf);
  void StartPods();
  void OnGpus();
  void OfferDevices();
  void NodeEvent(std::string_view reason, const std::string& message);
  void CutGpusLater();
  void TellXids();
  std::vector<std::string> HoldersOf(const std::string& gpu) const;
  std::vector<gpu::GpuUser> UsersOf(const std::string& gpu) const;
  void StartRegistration();
  void StartImages();
  std::string GpuMetricsText() const;
  void OnSpawnerState(const Status& status);
  void TellLimitations();
  void Step(Status status);

  AgentOptions options;
  UserNode user_node;
  AsioLoop& loop;
  Pool& pool;
  client::ApiClient& client;
  Rng rng;
  NodeNetworkConfig network;
  client::Informer& pods_informer;
  client::EventRecorder events;
  SpawnerClient spawner;
  ProcessRuntime runtime;
  NetworkMounter mounter;
  IpAllocator addresses;
  DeviceAllocator devices;
  ImageCache images;
  std::unique_ptr<net::IoThreads> own_io;   // null: the caller's
  std::unique_ptr<net::IoThreads> node_io;  // where the node's network is not the machine's
  NodeHandlerRunner handlers;
  GangSandboxes gangs{addresses};
  PolicyRefuser policy_refuser;
  PolicyPublisher policy_publisher;
  PodWorkerContext context;
  PodManager manager;
  VolumeRemover volume_remover;
  DiskGuard disk_guard;
  UsageSampler usage{loop, pool, Cgroups::At(user_node.cgroup), options.node_name,
                     [this] { return MeasuredPods(); }};
  client::InformerSet& informers;
  std::unique_ptr<NetworkPublisher> publisher;
  std::unique_ptr<KubeletHandler> handler;
  std::unique_ptr<net::HttpServer> server;
  std::unique_ptr<NodeRegistrar> registrar;
  IdleGpuEvents idle_gpus{events,
                          options.node_name,
                          options.gpu_idle,
                          {.holders_of = [this](const std::string& gpu) { return HoldersOf(gpu); },
                           .pod_of = [this](const std::string& uid) -> const json::Value* {
                             const PodWorker* worker = manager.FindByUid(uid);
                             return worker == nullptr ? nullptr : &worker->pod();
                           }}};
  std::unique_ptr<NodeGpus> gpus;                      // null: they are simulated
  std::unique_ptr<TimeSlicingConfig> slicing_of_none;  // null: they are not
  std::unique_ptr<DevicePlugins> plugins;              // null: pods are plain processes
  NodeFacts facts;
  TimerId gpu_patience = 0;
  Function<void(Status)> ready;
  int waiting_for = 0;  // steps of the start that have not answered
  client::Lifetime lifetime;
};

// One step of the start is through; the last one, or the first failure, answers.
void Agent::Impl::Step(Status status) {
  --waiting_for;
  if (!ready || (status.ok() && waiting_for > 0)) return;
  Function<void(Status)> answer = std::move(ready);
  ready = nullptr;
  answer(std::move(status));
}

void Agent::Impl::FillContext(const Gathered& gathered) {
  facts = gathered.facts;
  if (gpus != nullptr) gpus->Fill(facts);
  facts.name = options.node_name;
  facts.pod_cidr = options.ranges.NodeRange().ToString();
  facts.version = options.version;
  if (gpus == nullptr) facts.devices = devices.devices();
  facts.devices_simulated = options.simulate_gpus > 0;
  facts.limitations = user_node.limitations;
  // Plain processes cannot be shown a volume.
  if (!user_node.plain) facts.local_volumes = LocalVolumesDir(options.data_dir);
  // The machine's address is not the node's where that has a network of its own.
  if (!options.node_address.empty())
    facts.address = options.node_address;
  else if (!user_node.valid())
    facts.address = DefaultRouteAddress();
  if (facts.address.empty()) facts.address = network.BridgeAddress().ToString();

  context.data_dir = options.data_dir;
  context.node_name = options.node_name;
  context.host_ip = facts.address;
  context.bridge = network.bridge;
  context.cluster_domain = options.cluster_domain;
  context.dns_address = options.ranges.DnsAddress();
  context.host_resolv_conf =
      user_node.valid() ? ResolvConfOfUserNode(gathered.resolv_conf) : gathered.resolv_conf;
  context.host_hosts = gathered.hosts;
  context.node_allocatable = NodeAllocatable(facts);
  context.node_memory_bytes = facts.memory_bytes;
  context.pod_max_pids = options.pod_max_pids;
  if (user_node.plain) context.plain_ports = std::make_unique<PortAllocator>();
  if (!user_node.plain && !user_node.valid()) context.host_ports = HostPorts(MachineListeners);
  for (const NodeLimitation& limitation : user_node.limitations) {
    if (limitation.condition == kLimitsNotEnforced) context.limits_not_enforced = limitation.Text();
  }
  context.on_addresses_changed = lifetime.Guard([this] {
    if (publisher != nullptr) publisher->LocalPodsChanged();
    policy_publisher.LocalPodsChanged();
  });
}

// The machine's resolvers are reached through the node's DNS server alone.
std::string Agent::Impl::ResolvConfOfUserNode(const std::string& machine) const {
  ResolvConf conf = ParseResolvConf(machine);
  conf.nameservers = {options.ranges.DnsAddress().ToString()};
  return FormatResolvConf(conf);
}

Status Agent::Impl::StartServer(const Gathered& gathered) {
  handler = std::make_unique<KubeletHandler>(options.data_dir, loop, pool, runtime, manager,
                                             context.images);
  handler->OnMetrics([this](Function<void(std::string)> answer) {
    if (gpus == nullptr) return answer("");
    gpus->monitor().Refresh(
        lifetime.Guard([this, answer = std::move(answer)]() mutable { answer(GpuMetricsText()); }));
  });
  handler->OnSummary(
      [this](Function<void(json::Value)> answer) { usage.Summary(std::move(answer)); });
  usage.Start();
  net::ServerOptions server_options;
  server_options.host = options.kubelet_host;
  server_options.port = static_cast<uint16_t>(options.kubelet_port);
  server_options.tls = net::TlsServerOptions{gathered.cert, gathered.key, gathered.ca};
  ASSIGN_OR_RETURN(server, net::HttpServer::Start(loop, Io(), *handler, std::move(server_options)));
  facts.kubelet_port = server->port();
  return Status::Ok();
}

std::vector<MeasuredPod> Agent::Impl::MeasuredPods() const {
  std::vector<MeasuredPod> pods;
  for (const json::Value& object : manager.Objects()) {
    const json::Value& meta = object["metadata"];
    const PodWorker* worker = manager.FindByUid(meta["uid"].Str());
    if (worker == nullptr) continue;
    MeasuredPod pod{meta["namespace"].Str(), meta["name"].Str(), worker->uid(), {}};
    for (const ContainerRuntimeState& container : worker->state().containers) {
      if (container.is == ContainerRuntimeState::Is::kRunning)
        pod.containers.push_back({container.name, container.started_at});
    }
    if (!pod.containers.empty()) pods.push_back(std::move(pod));
  }
  return pods;
}

void Agent::Impl::StartNetwork(const std::string& resolv_conf) {
  if (user_node.plain) return StartPods();  // the machine's network as it is
  NetworkPublisher::Options publish;
  publish.network = network;
  publish.cluster_domain = options.cluster_domain;
  publish.resolv_conf = resolv_conf;
  publish.node_name = options.node_name;
  publish.table_file = options.data_dir + "/run/services";
  publish.dns = std::move(user_node.dns);
  if (!user_node.valid()) publish.health_io = &Io();
  publisher = std::make_unique<NetworkPublisher>(
      loop, pool, informers, spawner, std::move(publish),
      NetworkPublisher::LocalPods{[this] { return manager.PodsWithAddresses(); },
                                  [this] { return manager.PodsWithHostPorts(); }});
  spawner.Call("setupNetwork", ToJson(network), lifetime.Guard([this](Result<json::Value> answer) {
    if (!answer) return Step(answer.error().WithPrefix("pod network: "));
    const Status status = publisher->Start();
    if (!status.ok()) return Step(status.WithPrefix("cluster DNS: "));
    StartPods();
  }));
}

void Agent::Impl::OnSpawnerState(const Status& status) {
  if (registrar == nullptr) return;
  if (status.ok()) return registrar->ReportFault("", "");
  registrar->ReportFault("SpawnerGone",
                         fmt::format("the process that starts pods (muster-spawner) cannot be "
                                     "started: {}; running pods go on, and it is tried again",
                                     status.message()));
}

void Agent::Impl::StartPods() {
  runtime.Recover(lifetime.Guard([this](std::vector<RecoveredPod> recovered) {
    if (!recovered.empty()) LOG_INFO("agent: found {} pods of an earlier run", recovered.size());
    // Pods that run from an image are told of with it.
    images.WhenReady(lifetime.Guard(
        [this, pods = std::make_shared<std::vector<RecoveredPod>>(std::move(recovered))] {
          const bool adopts = !pods->empty();
          manager.Start(std::move(*pods));
          // What they have stays offered as they have it.
          if (adopts && gpus != nullptr && devices.known()) OnGpus();
          if (user_node.plain) {
            policy_refuser.Start();
          } else {
            policy_publisher.Start();
          }
          volume_remover.Start();
          disk_guard.Start();
          Step(Status::Ok());
        }));
  }));
}

void Agent::Impl::TellLimitations() {
  // Events about a Node name it as the kubelet does: its uid is its name.
  const json::Value node = json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "Node"},
       {"metadata", json::Obj({{"name", options.node_name}, {"uid", options.node_name}})}});
  for (const NodeLimitation& limitation : facts.limitations)
    events.Record(node, client::EventType::kWarning, limitation.condition, limitation.Text());
}

void Agent::Impl::StartImages() {
  ImageCache::Hooks hooks;
  hooks.users = [this] { return manager.ImageUsers(); };
  hooks.on_garbage = [this](bool ok, const std::string& message) {
    const json::Value node = json::Obj(
        {{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata", json::Obj({{"name", options.node_name}, {"uid", options.node_name}})}});
    events.Record(node, ok ? client::EventType::kNormal : client::EventType::kWarning,
                  ok ? "ImageGarbageCollected" : "FreeDiskSpaceFailed", message);
  };
  images.Start(std::move(hooks));
}

void Agent::Impl::OnGathered(std::shared_ptr<Gathered> gathered) {
  if (!gathered->status.ok()) return Step(gathered->status);
  FillContext(*gathered);
  StartImages();
  if (plugins != nullptr) {
    if (const Status status = plugins->Start(); !status.ok())
      LOG_WARN("agent: device plugins cannot register: {}", status.message());
  }
  if (Status status = StartServer(*gathered); !status.ok())
    return Step(status.WithPrefix("kubelet API (--kubelet-port): "));
  ++waiting_for;  // the network with the pods, and the registration
  StartNetwork(gathered->resolv_conf);
  if (devices.known()) return StartRegistration();
  gpu_patience = loop.After(kGpuPatience, lifetime.Guard([this] { StartRegistration(); }));
}

void Agent::Impl::StartRegistration() {
  if (registrar != nullptr) return;
  loop.Cancel(gpu_patience);
  registrar = std::make_unique<NodeRegistrar>(loop, client, facts);
  registrar->Start(lifetime.Guard([this] {
    TellLimitations();
    Step(Status::Ok());
  }));
}

std::string Agent::Impl::GpuMetricsText() const {
  if (gpus == nullptr) return "";
  return gpu::GpuMetricsText(gpus->monitor().health(), options.node_name,
                             [this](const std::string& gpu) { return UsersOf(gpu); });
}

// Each pod once, also one that has several shares of it.
std::vector<gpu::GpuUser> Agent::Impl::UsersOf(const std::string& gpu) const {
  std::map<std::string, gpu::GpuUser> users;
  for (const DeviceAllocator::GpuUse& use : devices.UsesOf(gpu)) {
    for (const std::string& uid : use.owners) {
      const PodWorker* worker = manager.FindByUid(uid);
      if (worker == nullptr) continue;
      const json::Value& meta = worker->pod()["metadata"];
      users[uid] = {meta["namespace"].Str(), meta["name"].Str(),
                    devices.ContainerOf(uid, use.resource, use.id)};
    }
  }
  std::vector<gpu::GpuUser> out;
  for (auto& [uid, user] : users) out.push_back(std::move(user));
  return out;
}

std::vector<std::string> Agent::Impl::HoldersOf(const std::string& gpu) const {
  std::set<std::string> uids;
  for (const DeviceAllocator::GpuUse& use : devices.UsesOf(gpu))
    uids.insert(use.owners.begin(), use.owners.end());
  return {uids.begin(), uids.end()};
}

// Errors of a program on a GPU are for its pod to know; those of a GPU itself it hears of as
// DeviceUnhealthy.
void Agent::Impl::TellXids() {
  const gpu::GpuHealth& health = gpus->monitor().health();
  for (const gpu::GpuHealth::Known& known : health.gpus()) {
    for (const std::string& uid : HoldersOf(known.gpu.uuid)) {
      const PodWorker* worker = manager.FindByUid(uid);
      if (worker == nullptr) continue;
      for (const int64_t xid : known.gpu.xids) {
        if (health.xids().IsFatal(xid)) continue;
        events.Record(worker->pod(), client::EventType::kWarning, "GPUXid",
                      fmt::format("{}: {}", gpu::Describe(known.gpu), gpu::DescribeXid(xid)));
      }
    }
  }
}

void Agent::Impl::OnGpus() {
  gpus->Fill(facts);
  devices.SetDevices({}, {});  // they are known now
  context.driver_library = gpus->monitor().health().inventory().library;
  OfferDevices();
  TellXids();
  if (registrar == nullptr && server != nullptr) StartRegistration();  // all else is gathered
}

// The GPUs and what plugins have. Before the driver has answered nothing is known of either.
void Agent::Impl::OfferDevices() {
  if (!devices.known()) return;
  std::vector<cluster::Device> all = facts.devices;
  const size_t gpus_offered = std::min(all.size(), cluster::kMaxDevicesPerNode);
  if (plugins != nullptr)
    facts.plugin_devices = plugins->Devices(cluster::kMaxDevicesPerNode - gpus_offered);
  all.insert(all.end(), facts.plugin_devices.begin(), facts.plugin_devices.end());
  if (gpus != nullptr) {
    devices.SetDevices(std::move(all), gpus->monitor().health().inventory().control_files,
                       gpus->one_each());
  } else {
    devices.SetDevices(std::move(all), {});
  }
  context.node_allocatable = NodeAllocatable(facts);
  manager.DevicesChanged();
  if (registrar != nullptr) registrar->ReportGpus(facts);
}

void Agent::Impl::NodeEvent(std::string_view reason, const std::string& message) {
  const json::Value node = json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "Node"},
       {"metadata", json::Obj({{"name", options.node_name}, {"uid", options.node_name}})}});
  events.Record(node, client::EventType::kWarning, reason, message);
}

// After a pod gave back what it had, for a GPU that is to be cut otherwise.
void Agent::Impl::CutGpusLater() {
  if (gpus == nullptr || !gpus->waits()) return;
  loop.Post(lifetime.Guard([this] {
    if (gpus != nullptr && gpus->waits()) OnGpus();
  }));
}

Agent::Agent(AgentOptions options, AsioLoop& loop, Pool& pool, client::ApiClient& client,
             client::InformerSet& informers, SpawnerHandle spawner, UserNode user_node, Rng rng)
    : impl_(std::make_unique<Impl>(std::move(options), loop, pool, client, informers,
                                   std::move(spawner), std::move(user_node), rng)) {}

Agent::~Agent() = default;

void Agent::Start(Function<void(Status)> ready) {
  impl_->ready = std::move(ready);
  // The first pod finds the answer there.
  impl_->pool.Run([secrets = impl_->context.secrets] { (void)secrets->Paths(); }, impl_->loop,
                  [] {});
  if (impl_->gpus != nullptr) impl_->gpus->Start();
  impl_->waiting_for = 1;
  impl_->spawner.OnState(
      [impl = impl_.get()](const Status& status) { impl->OnSpawnerState(status); });
  auto gathered = std::make_shared<Gathered>();
  impl_->pool.Run(
      [options = impl_->options, gathered] { Gather(options, *gathered); }, impl_->loop,
      impl_->lifetime.Guard([impl = impl_.get(), gathered] { impl->OnGathered(gathered); }));
}

void Agent::Stop(Task done) {
  impl_->loop.Cancel(impl_->gpu_patience);
  impl_->gpus.reset();
  impl_->context.plugins = nullptr;
  impl_->plugins.reset();
  impl_->registrar.reset();
  impl_->publisher.reset();
  if (impl_->server == nullptr) return impl_->loop.Post(std::move(done));
  impl_->server->Stop(seconds(2), std::move(done));
}

std::string Agent::GpuMetricsText() {
  if (impl_->gpus != nullptr) impl_->gpus->monitor().Refresh([] {});
  return impl_->GpuMetricsText();
}

int Agent::kubelet_port() const { return impl_->server == nullptr ? 0 : impl_->server->port(); }

}  // namespace muster::agent
