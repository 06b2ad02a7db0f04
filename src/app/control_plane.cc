#include "app/control_plane.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include <utility>
#include <vector>

#include <fmt/core.h>

#include "agent/agent.h"
#include "agent/network/pod_api_socket.h"
#include "agent/simulated/simulated_nodes.h"
#include "apiserver/admission/https_webhook_client.h"
#include "apiserver/aggregation/https_extension_client.h"
#include "apiserver/server.h"
#include "app/loop_metrics.h"
#include "app/node_connector.h"
#include "app/scheduler_metrics.h"
#include "app/threads.h"
#include "autoscaler/autoscaler.h"
#include "autoscaler/node_claim_controller.h"
#include "autoscaler/node_disruption_controller.h"
#include "base/log.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/in_process_transport.h"
#include "client/informer.h"
#include "client/kubeconfig.h"
#include "client/reconcile.h"
#include "client/resource_discovery.h"
#include "controllers/controllers.h"
#include "controllers/interruption/node_interruption_controller.h"
#include "cost/cost.h"
#include "gateway/gateway.h"
#include "loop/thread_pool.h"
#include "net/client.h"
#include "net/io_threads.h"
#include "net/pki.h"
#include "net/server.h"
#include "net/signing_key.h"
#include "ray/ray.h"
#include "scheduler/scheduler.h"
#include "serving/serving.h"
#include "store/compactor.h"
#include "store/sqlite_store.h"
#include "training/training.h"

namespace muster::app {
namespace {

// The kubelet API's certificate file and the API server's client certificate for it.
constexpr char kKubeletCert[] = "kubelet";

// One part's identity and client: who writes what stays visible in user agents and logs.
struct Part {
  Part(AsioLoop& loop, net::Handler& handler, const std::string& user)
      // Its own parts are administrators of a process that is one: RBAC is for everybody else.
      : transport(loop, handler, net::Peer{"", user, {"system:masters"}}),
        client(loop, transport, user) {}
  client::InProcessTransport transport;
  client::ApiClient client;
};

std::string HostPart(const std::string& address) { return address.substr(0, address.rfind(':')); }

}  // namespace

// Members in dependency order: destruction runs backwards.
struct ControlPlane::Impl {
  Impl(const UpOptions& options_in, AsioLoop& loop_in, agent::SpawnerHandle spawner_in,
       agent::UserNode user_node_in)
      : options(options_in),
        loop(loop_in),
        rng(SeedFromSystem()),
        spawner(std::move(spawner_in)),
        user_node(std::move(user_node_in)) {}

  const UpOptions options;
  AsioLoop& loop;
  Rng rng;
  agent::SpawnerHandle spawner;
  agent::UserNode user_node;
  std::string ca_pem;
  std::shared_ptr<const net::SigningKey> token_key;
  std::string address, kubeconfig_path;

  net::IoThreads io{kIoThreads};
  ThreadPool pool{"pool", kPoolThreads};
  std::shared_ptr<TaskTimes> commit_times = std::make_shared<TaskTimes>();
  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Compactor> compactor;
  std::unique_ptr<net::HttpClient> node_client;
  std::unique_ptr<NodeConnector> node_connector;
  std::unique_ptr<net::IoThreads> pod_io;  // null where the pods' network is the machine's
  std::unique_ptr<apiserver::HttpsWebhookClient> webhook_client;
  std::string front_proxy_ca_pem;
  net::KeyPair front_proxy;
  std::unique_ptr<apiserver::HttpsExtensionClient> extension_client;
  LoopMetrics loop_metrics{loop};
  std::unique_ptr<apiserver::ApiServer> api;
  std::unique_ptr<net::HttpServer> listener;
  std::unique_ptr<net::HttpServer> pod_listener;  // null where pods have no network of their own

  std::unique_ptr<Part> informer_part, controller_part, scheduler_part, agent_part;
  std::unique_ptr<client::InformerSet> informers;
  std::unique_ptr<client::ResourceDiscovery> discovery;
  std::unique_ptr<client::Runtime> controllers;
  agent::UniqueFd gateway_socket;
  serving::GatewayAddress gateway_address;
  std::unique_ptr<gateway::Gateway> gateway;
  std::unique_ptr<scheduler::Scheduler> scheduler;
  std::unique_ptr<agent::Agent> agent;
  std::unique_ptr<agent::SimulatedNodes> simulated_nodes;
  std::unique_ptr<autoscaler::Autoscaler> node_autoscaler;

  std::string Dir(std::string_view sub) const {
    return fmt::format("{}/{}", options.data_dir, sub);
  }

  Status MakeKeys(const net::Pki& pki, net::TlsServerOptions& tls);
  Status MakeFrontProxy();
  Status OpenStore();
  void MakeOutsideClients();
  Status StartServer(net::TlsServerOptions tls);
  Result<agent::UniqueFd> PodApiSocket();
  Status BindGateway();
  // What a thread does first that talks to pods; empty where their network is the machine's.
  std::function<void()> EnterPodNetwork() const;
  bool ListensEverywhere() const {
    return options.listen_host == "0.0.0.0" || options.listen_host == "::";
  }
  Status WriteKubeconfig(const net::Pki& pki);
  void BuildParts();
  void BuildAutoscaler();
  void PublishInstanceTypes();
  void StartParts(Function<void(Status)> ready);
};

Status ControlPlane::Impl::MakeKeys(const net::Pki& pki, net::TlsServerOptions& tls) {
  ca_pem = pki.ca_pem();
  const Time now = loop.Now();
  std::vector<std::string> ips;
  if (!ListensEverywhere() && options.listen_host != "127.0.0.1")
    ips.push_back(options.listen_host);
  ips.push_back(options.ranges.ApiAddress().ToString());
  ips.push_back(options.ranges.DnsAddress().ToString());
  ASSIGN_OR_RETURN(
      const net::KeyPair server,
      pki.LoadOrIssueServer("apiserver", net::DefaultServerNames(options.node_name, ips), now));
  tls = {server.certificate_pem, server.key_pem, ca_pem};
  ASSIGN_OR_RETURN(token_key, net::SigningKey::LoadOrCreate(Dir("pki/sa.key")));
  ASSIGN_OR_RETURN(
      const net::KeyPair kubelet,
      pki.LoadOrIssueServer(kKubeletCert, net::DefaultServerNames(options.node_name, {}), now));
  ASSIGN_OR_RETURN(const net::KeyPair to_kubelet,
                   pki.LoadOrIssueClient("apiserver-kubelet-client",
                                         "kube-apiserver-kubelet-client", {"system:masters"}, now));
  net::ClientOptions client_options;
  client_options.ca_pem = ca_pem;
  client_options.certificate_pem = to_kubelet.certificate_pem;
  client_options.key_pem = to_kubelet.key_pem;
  ASSIGN_OR_RETURN(node_client, net::HttpClient::Make(loop, io, std::move(client_options)));
  node_connector = std::make_unique<NodeConnector>(*node_client, options.node_name);
  return Status::Ok();
}

// An authority of its own: what it signs says who a client is, and no client's certificate may.
Status ControlPlane::Impl::MakeFrontProxy() {
  ASSIGN_OR_RETURN(const net::Pki pki, net::Pki::LoadOrCreate(Dir("pki/front-proxy"), loop.Now()));
  front_proxy_ca_pem = pki.ca_pem();
  ASSIGN_OR_RETURN(front_proxy,
                   pki.LoadOrIssueClient("client", "front-proxy-client", {}, loop.Now()));
  return Status::Ok();
}

// Before the keys are made: where there are keys there must have been a store.
Status ControlPlane::Impl::OpenStore() {
  store::SqliteOptions sqlite;
  sqlite.must_exist = access(Dir("pki/ca.crt").c_str(), F_OK) == 0;
  sqlite.commit_times = commit_times;
  ASSIGN_OR_RETURN(store, store::OpenSqliteStore(loop, Dir("store/muster.db"),
                                                 apiserver::MakeDecorator(), std::move(sqlite)));
  compactor = std::make_unique<store::Compactor>(loop, *store);
  return Status::Ok();
}

std::function<void()> ControlPlane::Impl::EnterPodNetwork() const {
  if (!user_node.valid()) return {};
  return [network = user_node.network.get()] {
    if (setns(network, CLONE_NEWNET) != 0)
      LOG_ERROR("app: cannot enter the node's network: {}", strerror(errno));
  };
}

// Webhooks and API services that are pods are asked from inside the network of an ordinary user's
// node.
void ControlPlane::Impl::MakeOutsideClients() {
  if (user_node.valid()) {
    pod_io = std::make_unique<net::IoThreads>(1, EnterPodNetwork());
  }
  webhook_client = std::make_unique<apiserver::HttpsWebhookClient>(loop, io, pod_io.get());
  extension_client =
      std::make_unique<apiserver::HttpsExtensionClient>(loop, io, front_proxy, pod_io.get());
}

Status ControlPlane::Impl::StartServer(net::TlsServerOptions tls) {
  // The listener comes before the API server's Start(), so that the port is known and clients can
  // already ask /readyz.
  apiserver::ServerOptions api_options;
  api_options.seed = rng.Next();
  api_options.advertise_address = options.listen_host == "0.0.0.0" ? "" : options.listen_host;
  api_options.service_cidr = options.ranges.services.ToString();
  api_options.advertise_port = options.listen_port;
  api_options.node_proxy = node_connector.get();
  MakeOutsideClients();
  api_options.webhook_client = webhook_client.get();
  api_options.extension_client = extension_client.get();
  api_options.client_ca_pem = ca_pem;
  api_options.front_proxy_ca_pem = front_proxy_ca_pem;
  api_options.pool = &pool;
  api_options.token_key = token_key;
  api_options.extra_metrics.push_back([this] { return loop_metrics.Text(); });
  api_options.extra_metrics.push_back([this] {
    return HistogramText("etcd_disk_backend_commit_duration_seconds",
                         "Time that a commit of the store took until the disk had it.",
                         *commit_times);
  });
  api_options.extra_metrics.push_back([this] {
    return scheduler == nullptr ? std::string() : SchedulerMetricsText(scheduler->metrics());
  });
  api_options.extra_metrics.push_back(
      [this] { return agent == nullptr ? std::string() : agent->GpuMetricsText(); });
  api_options.extra_metrics.push_back(
      [this] { return gateway == nullptr ? std::string() : gateway->MetricsText(); });
  api_options.ready_checks.emplace_back("informer-sync", [this]() -> Status {
    if (informers != nullptr && informers->AllSynced()) return Status::Ok();
    return Error(Reason::kServiceUnavailable, "informers have not synced yet");
  });
  net::ServerOptions server_options;
  server_options.tls = std::move(tls);
  ASSIGN_OR_RETURN(agent::UniqueFd pod_socket, PodApiSocket());
  if (pod_socket.valid()) {
    api_options.pod_address = options.ranges.DnsAddress().ToString();
    ASSIGN_OR_RETURN(api_options.pod_port, agent::PortOfSocket(pod_socket.get()));
  }
  api = std::make_unique<apiserver::ApiServer>(loop, *store, std::move(api_options));
  if (pod_socket.valid()) {
    net::ServerOptions pod_options = server_options;
    pod_options.bound_socket = pod_socket.Release();
    ASSIGN_OR_RETURN(pod_listener, net::HttpServer::Start(loop, io, *api, std::move(pod_options)));
  }
  server_options.host = options.listen_host;
  server_options.port = options.listen_port;
  auto started = net::HttpServer::Start(loop, io, *api, std::move(server_options));
  if (!started) {
    return started.error().WithPrefix(
        fmt::format("--listen {}:{}: ", options.listen_host, options.listen_port));
  }
  listener = *std::move(started);
  address = listener->address();
  return Status::Ok();
}

// Not valid where pods have no network of their own.
Result<agent::UniqueFd> ControlPlane::Impl::PodApiSocket() {
  if (user_node.plain) return agent::UniqueFd();
  if (user_node.valid()) return std::move(user_node.pod_api);
  const bool taken = ListensEverywhere() && options.listen_port == agent::kPodApiPort;
  return agent::BindPodApi(options.ranges.DnsAddress(), taken ? 0 : agent::kPodApiPort);
}

// Where pods have no network of their own Services lead nowhere, and there is no gateway.
Status ControlPlane::Impl::BindGateway() {
  if (user_node.plain) return Status::Ok();
  if (user_node.valid()) {
    gateway_socket = std::move(user_node.gateway);
  } else {
    ASSIGN_OR_RETURN(gateway_socket,
                     agent::BindPodApi(options.ranges.DnsAddress(), agent::kGatewayPort));
  }
  ASSIGN_OR_RETURN(const uint16_t port, agent::PortOfSocket(gateway_socket.get()));
  gateway_address = {options.ranges.DnsAddress().ToString(), port,
                     std::make_shared<std::string>()};
  return Status::Ok();
}

Status ControlPlane::Impl::WriteKubeconfig(const net::Pki& pki) {
  ASSIGN_OR_RETURN(const net::KeyPair admin,
                   pki.LoadOrIssueClient("admin", "muster-admin", {"system:masters"}, loop.Now()));
  const std::string url = fmt::format(
      "https://{}:{}", ListensEverywhere() ? "127.0.0.1" : HostPart(address), listener->port());
  kubeconfig_path = Dir("kubeconfig");
  return client::RenewKubeconfigFile(
      kubeconfig_path,
      client::MakeKubeconfig(client::kOwnEntry, url, ca_pem, admin.certificate_pem, admin.key_pem));
}

void ControlPlane::Impl::BuildParts() {
  informer_part = std::make_unique<Part>(loop, *api, "system:muster:informers");
  controller_part = std::make_unique<Part>(loop, *api, "system:kube-controller-manager");
  scheduler_part = std::make_unique<Part>(loop, *api, "system:kube-scheduler");
  agent_part = std::make_unique<Part>(loop, *api, "system:node:" + options.node_name);

  informers = std::make_unique<client::InformerSet>(informer_part->client);
  discovery = std::make_unique<client::ResourceDiscovery>(controller_part->client, *informers);
  controllers =
      std::make_unique<client::Runtime>(controller_part->client, *informers, Rng(rng.Next()));
  if (options.controls) {
    controllers::AddAll(*controllers, *discovery,
                        {.root_ca_pem = ca_pem,
                         .autoscaler_period = options.horizontal_pod_autoscaler_sync_period});
  } else {
    controllers->Add(std::make_unique<controllers::NodeInterruptionController>());
  }
  training::AddAll(*controllers);
  serving::AddAll(*controllers, gateway_address);
  if (gateway_address.port != 0) {
    gateway::GatewayOptions gateway_options;
    gateway_options.bound_socket = gateway_socket.Release();
    gateway_options.address = gateway_address;
    gateway_options.on_thread_start = EnterPodNetwork();
    gateway_options.seed = rng.Next();
    gateway = std::make_unique<gateway::Gateway>(loop, controller_part->client, *informers,
                                                 std::move(gateway_options));
  }
  BuildAutoscaler();
  cost::AddAll(*controllers);
  ray::AddAll(*controllers);

  if (options.schedules) {
    scheduler = std::make_unique<scheduler::Scheduler>(scheduler_part->client, *informers, pool);
  }

  agent::AgentOptions agent_options;
  agent_options.data_dir = options.data_dir;
  agent_options.node_name = options.node_name;
  agent_options.ranges = options.ranges;
  agent_options.simulate_gpus = options.simulate_gpus;
  agent_options.gpu_steady = seconds(options.gpu_steady_seconds);
  agent_options.gpu_idle = seconds(options.gpu_idle_seconds);
  agent_options.simulated_gpu_model = options.simulated_gpu_model;
  agent_options.kubelet_host = "127.0.0.1";
  agent_options.kubelet_port = options.kubelet_port;
  agent_options.pod_max_pids = options.pod_max_pids;
  agent_options.pull_images = options.pull_images;
  agent_options.ca_file = Dir("pki/ca.crt");
  agent_options.cert_file = Dir(fmt::format("pki/{}.crt", kKubeletCert));
  agent_options.key_file = Dir(fmt::format("pki/{}.key", kKubeletCert));
  agent = std::make_unique<agent::Agent>(std::move(agent_options), loop, pool, agent_part->client,
                                         *informers, std::move(spawner), std::move(user_node),
                                         Rng(rng.Next()));
  agent::SimulatedNodesOptions simulated;
  simulated.count = options.simulate_nodes;
  simulated_nodes = std::make_unique<agent::SimulatedNodes>(
      std::move(simulated), loop, agent_part->client, *informers, Rng(rng.Next()));
}

// The file was read before (up_options.h).
void ControlPlane::Impl::BuildAutoscaler() {
  const autoscaler::Catalog catalog =
      autoscaler::ReadCatalog(options.instance_types).value_or(autoscaler::Catalog());
  controllers->Add(std::make_unique<autoscaler::NodeClaimController>(
      autoscaler::ProviderOptions{catalog, options.node_start_delay}));
  controllers->Add(std::make_unique<autoscaler::NodeDisruptionController>());
  autoscaler::AutoscalerConfig config;
  config.catalog = catalog;
  config.scheduler_names = scheduler::SchedulerConfig().scheduler_names;
  node_autoscaler = std::make_unique<autoscaler::Autoscaler>(
      controller_part->client, *informers, pool, std::move(config), Rng(rng.Next()));
}

// So that whoever explains what would be added knows the prices.
void ControlPlane::Impl::PublishInstanceTypes() {
  if (options.instance_types.empty()) return;
  const json::Value data =
      json::Obj({{std::string(autoscaler::kCatalogKey), options.instance_types}});
  const client::Target target{client::resources::kConfigMaps, "kube-system",
                              autoscaler::kCatalogConfigMap, ""};
  const json::Value object =
      json::Obj({{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", json::Obj({{"name", autoscaler::kCatalogConfigMap}})},
                 {"data", data}});
  controller_part->client.Create(
      {target.resource, target.ns, "", ""}, object,
      [this, target, data](const Result<json::Value>& created) {
        if (created || created.error().reason() != Reason::kAlreadyExists) return;
        controller_part->client.Patch(target, client::PatchType::kMerge,
                                      json::Obj({{"data", data}}),
                                      [](const Result<json::Value>&) {});
      });
}

void ControlPlane::Impl::StartParts(Function<void(Status)> ready) {
  controllers->Start();
  discovery->Start();
  if (gateway != nullptr) gateway->Start();
  if (scheduler != nullptr) scheduler->Start();
  simulated_nodes->Start();
  node_autoscaler->Start();
  PublishInstanceTypes();
  agent->Start(std::move(ready));
  informers->Start();
}

ControlPlane::ControlPlane(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ControlPlane::~ControlPlane() = default;

const std::string& ControlPlane::address() const { return impl_->address; }

const std::string& ControlPlane::kubeconfig() const { return impl_->kubeconfig_path; }

Result<std::unique_ptr<ControlPlane>> ControlPlane::Open(const UpOptions& options, AsioLoop& loop,
                                                         agent::SpawnerHandle spawner,
                                                         agent::UserNode user_node) {
  auto impl = std::make_unique<Impl>(options, loop, std::move(spawner), std::move(user_node));
  RETURN_IF_ERROR(impl->OpenStore());
  ASSIGN_OR_RETURN(const net::Pki pki, net::Pki::LoadOrCreate(impl->Dir("pki"), loop.Now()));
  net::TlsServerOptions tls;
  RETURN_IF_ERROR(impl->MakeKeys(pki, tls));
  RETURN_IF_ERROR(impl->MakeFrontProxy());
  RETURN_IF_ERROR(impl->StartServer(std::move(tls)));
  RETURN_IF_ERROR(impl->BindGateway());
  RETURN_IF_ERROR(impl->WriteKubeconfig(pki));
  impl->BuildParts();
  return std::unique_ptr<ControlPlane>(new ControlPlane(std::move(impl)));
}

void ControlPlane::Start(Function<void(Status)> ready) {
  impl_->api->Start([this, ready = std::move(ready)](Status status) mutable {
    if (!status.ok()) return ready(std::move(status));
    LOG_INFO("app: api server started address={}", impl_->address);
    impl_->StartParts(std::move(ready));
  });
}

void ControlPlane::Stop(Task done) {
  impl_->api->BeginShutdown();
  impl_->agent->Stop([this, done = std::move(done)]() mutable {
    if (impl_->pod_listener != nullptr) impl_->pod_listener->Stop(seconds(2), [] {});
    impl_->listener->Stop(seconds(2), std::move(done));
  });
}

}  // namespace muster::app
