#include "gateway/gateway.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "base/rng.h"
#include "gateway/proxy.h"
#include "gateway/route_builder.h"
#include "gateway/traffic_scaler.h"
#include "loop/loop_thread.h"
#include "net/server.h"
#include "serving/inference_service.h"

namespace muster::gateway {
namespace {

using client::ObjectKey;

constexpr std::string_view kPredictorSuffixes[] = {"-predictor", "-predictor-canary"};

bool IsPredictor(std::string_view name) {
  for (const std::string_view suffix : kPredictorSuffixes) {
    if (name.ends_with(suffix)) return true;
  }
  return false;
}

// What lives on the gateway's thread.
struct DataPlane {
  std::unique_ptr<net::HttpClient> client;
  std::shared_ptr<ByteBudget> budget;
  std::unique_ptr<Proxy> proxy;
  std::unique_ptr<net::HttpServer> server;

  ~DataPlane() {
    server.reset();
    proxy.reset();
    client.reset();
  }
};

}  // namespace

struct Gateway::Impl {
  Impl(Loop& loop_in, client::ApiClient& client, client::InformerSet& informers,
       GatewayOptions options_in)
      : loop(loop_in),
        options(std::move(options_in)),
        sources(WatchRouteSources(informers)),
        scaler(loop_in, client, sources) {}

  Loop& loop;
  GatewayOptions options;
  const RouteSources sources;
  CounterMap counters;
  TrafficScaler scaler;
  bool build_is_due = false;
  std::shared_ptr<const RouteTable> table;
  std::unique_ptr<net::IoThreads> io;
  std::unique_ptr<LoopThread> thread;
  // Used on the thread; its members are set, and go, while the control-plane loop waits.
  std::unique_ptr<DataPlane> plane;
  Duration listen_backoff = kMinListenBackoff;
  TimerId listen_timer = 0;
  std::shared_ptr<int> alive = std::make_shared<int>(0);

  bool HasWork() const {
    return table != nullptr || !sources.services.objects().empty() ||
           !sources.graphs.objects().empty();
  }
  void Watch();
  void BuildSoon();
  void Build();
  void StartThreads();
  Status StartDataPlane();
  void Listen();
  Status TryToListen();
};

void Gateway::Impl::Watch() {
  const auto any = [this](const ObjectKey&, const json::Value&, const json::Value&) {
    BuildSoon();
  };
  const auto synced = [this] { BuildSoon(); };
  const auto subscribe = [&](client::Informer& informer, auto on_change) {
    informer.Subscribe({on_change, synced, synced});
  };
  subscribe(sources.services, any);
  subscribe(sources.graphs, any);
  subscribe(sources.deployments,
            [this](const ObjectKey& key, const json::Value&, const json::Value&) {
              if (IsPredictor(key.name)) BuildSoon();
            });
  subscribe(sources.cluster_services,
            [this](const ObjectKey& key, const json::Value&, const json::Value&) {
              if (sources.services.Find(key) != nullptr || sources.graphs.Find(key) != nullptr)
                BuildSoon();
            });
  subscribe(sources.slices,
            [this](const ObjectKey&, const json::Value& before, const json::Value& after) {
              const json::Value& slice = after.IsNull() ? before : after;
              if (IsPredictor(slice["metadata"]["labels"]["kubernetes.io/service-name"].AsString()))
                BuildSoon();
            });
  subscribe(sources.pods, [this](const ObjectKey&, const json::Value&, const json::Value&) {
    if (table != nullptr && table->HasAmbiguousNames()) BuildSoon();
  });
}

// Once for all changes of one turn of the loop.
void Gateway::Impl::BuildSoon() {
  if (!HasWork() || std::exchange(build_is_due, true)) return;
  loop.Post([this, weak = std::weak_ptr(alive)] {
    if (!weak.expired()) Build();
  });
}

void Gateway::Impl::Build() {
  build_is_due = false;
  for (const client::Informer* informer : {&sources.services, &sources.graphs, &sources.deployments,
                                           &sources.cluster_services, &sources.slices}) {
    if (!informer->Known()) return;  // its own on_synced comes back
  }
  table = BuildRoutes(sources, counters, options.address.address);
  StartThreads();
  if (plane != nullptr) {
    thread->loop().Post([plane = plane.get(), table = table] { plane->proxy->SetTable(table); });
  }
  scaler.SetTable(table);
}

void Gateway::Impl::StartThreads() {
  if (thread != nullptr) return;
  thread = std::make_unique<LoopThread>("gateway");
  io = std::make_unique<net::IoThreads>(kGatewayIoThreads, options.on_thread_start);
  plane = std::make_unique<DataPlane>();
  Status status;
  thread->RunAndWait([&] { status = StartDataPlane(); });
  if (!status.ok()) return LOG_ERROR("gateway: cannot start error={:?}", status.message());
  Listen();
}

Status Gateway::Impl::StartDataPlane() {
  Loop& own = thread->loop();
  net::ClientOptions client_options;
  client_options.connect_timeout = seconds(5);
  client_options.max_undelivered_bytes = kMaxUnreadAnswerBytes;
  ASSIGN_OR_RETURN(plane->client, net::HttpClient::Make(own, *io, std::move(client_options)));
  const auto send = [client = plane->client.get()](const net::Endpoint& endpoint,
                                                   net::Request request, Body body,
                                                   net::ClientStreamCallbacks callbacks) {
    return client->Stream(endpoint, std::move(request), std::move(body), std::move(callbacks));
  };
  const auto wake = [this, weak = std::weak_ptr(alive)](const ObjectKey& service) {
    loop.Post([this, weak, service] {
      if (!weak.expired()) scaler.Wake(service);
    });
  };
  plane->budget = std::make_shared<ByteBudget>(kMaxAllAnswerBytes, [plane = plane.get()] {
    return plane->server == nullptr ? 0 : plane->server->queued_bytes();
  });
  plane->proxy = std::make_unique<Proxy>(own, send, wake, plane->budget, Rng(options.seed));
  return Status::Ok();
}

// Until it does.
void Gateway::Impl::Listen() {
  listen_timer = 0;
  Status status;
  thread->RunAndWait([&] { status = TryToListen(); });
  if (status.ok()) {
    if (options.address.fault != nullptr) options.address.fault->clear();
    close(std::exchange(options.bound_socket, -1));
    return;
  }
  const std::string fault =
      fmt::format("the gateway cannot listen on {}:{}: {}", options.address.address,
                  options.address.port, status.message());
  LOG_ERROR("gateway: cannot listen error={:?} again_in_ms={}", fault,
            std::chrono::duration_cast<milliseconds>(listen_backoff).count());
  if (options.address.fault != nullptr) *options.address.fault = fault + "; it tries again";
  listen_timer = loop.After(listen_backoff, [this] { Listen(); });
  listen_backoff = std::min(listen_backoff * 2, kMaxListenBackoff);
}

// The server takes over a socket, also where it fails: so it gets a second descriptor.
Status Gateway::Impl::TryToListen() {
  const int second = fcntl(options.bound_socket, F_DUPFD_CLOEXEC, 0);
  if (second < 0) return Error(Reason::kServiceUnavailable, "{}", strerror(errno));
  net::ServerOptions server_options;
  server_options.bound_socket = second;
  server_options.max_body_bytes = kMaxInferenceBytes;
  server_options.max_all_queued_bytes = kMaxAllAnswerBytes;
  ASSIGN_OR_RETURN(plane->server, net::HttpServer::Start(thread->loop(), *io, *plane->proxy,
                                                         std::move(server_options)));
  LOG_INFO("gateway: started address={}", plane->server->address());
  return Status::Ok();
}

Gateway::Gateway(Loop& loop, client::ApiClient& client, client::InformerSet& informers,
                 GatewayOptions options)
    : impl_(std::make_unique<Impl>(loop, client, informers, std::move(options))) {}

Gateway::~Gateway() {
  impl_->alive.reset();
  impl_->loop.Cancel(impl_->listen_timer);
  if (impl_->thread != nullptr) {
    impl_->thread->RunAndWait([this] { impl_->plane.reset(); });
    impl_->io.reset();
    impl_->thread.reset();
  }
  if (impl_->options.bound_socket >= 0) close(impl_->options.bound_socket);
}

void Gateway::Start() { impl_->Watch(); }

std::string Gateway::MetricsText() const {
  if (impl_->counters.empty()) return "";
  std::string text;
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help,
                          auto value) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
    for (const auto& [key, counter] : impl_->counters) {
      text += fmt::format("{}{{namespace=\"{}\",deployment=\"{}\"}} {}\n", name, key.ns, key.name,
                          value(*counter));
    }
  };
  family("muster_gateway_requests_total", "counter", "Requests for the pods of a predictor.",
         [](const TrafficCounters& one) { return one.requests.load(); });
  family("muster_gateway_failures_total", "counter", "Requests that the gateway had to refuse.",
         [](const TrafficCounters& one) { return one.failures.load(); });
  family("muster_gateway_requests_in_flight", "gauge", "Requests at the pods now.",
         [](const TrafficCounters& one) { return one.in_flight.load(); });
  family("muster_gateway_requests_held", "gauge", "Requests that wait for a pod.",
         [](const TrafficCounters& one) { return one.held.load(); });
  const DataPlane* plane = impl_->plane.get();
  if (plane == nullptr || plane->server == nullptr) return text;
  text += fmt::format(
      "# HELP muster_gateway_buffered_bytes Bytes that the gateway keeps.\n"
      "# TYPE muster_gateway_buffered_bytes gauge\n"
      "muster_gateway_buffered_bytes{{of=\"requests\"}} {}\n"
      "muster_gateway_buffered_bytes{{of=\"answers\"}} {}\n"
      "# HELP muster_gateway_answers_refused_total Answers that there was no room for.\n"
      "# TYPE muster_gateway_answers_refused_total counter\n"
      "muster_gateway_answers_refused_total {}\n",
      plane->server->body_bytes(), plane->budget->used(), plane->budget->refused());
  return text;
}

}  // namespace muster::gateway
