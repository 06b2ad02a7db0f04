#include "apiserver/server.h"

#include <algorithm>

#include "apiserver/admission/admission.h"
#include "apiserver/aggregation/aggregator.h"
#include "apiserver/aggregation/api_service_strategy.h"
#include "apiserver/aggregation/service_proxy.h"
#include "apiserver/authorization.h"
#include "apiserver/bootstrap.h"
#include "apiserver/call.h"
#include "apiserver/core.h"
#include "apiserver/discovery/discovery.h"
#include "apiserver/discovery/openapi.h"
#include "apiserver/discovery/subresources.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/health.h"
#include "apiserver/identity/openid.h"
#include "apiserver/identity/rbac_strategy.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/kinds/crd_lifecycle.h"
#include "apiserver/kinds/crd_strategy.h"
#include "apiserver/kinds/event_expiry.h"
#include "apiserver/metrics/node_stats.h"
#include "apiserver/mlflow/mlflow_handler.h"
#include "apiserver/stored_object.h"
#include "apiserver/turns.h"
#include "base/check.h"
#include "base/log.h"
#include "dashboard/page.h"
#include "net/websocket.h"
#include "net/websocket_writer.h"

namespace muster::apiserver {
namespace {

// Handled per task of the loop: well under 5 ms. A read of one object takes some 20 us, a list or a
// write up to 1 ms.
constexpr int kReadsPerTask = 32;
constexpr int kOthersPerTask = 4;

std::unique_ptr<Strategy> MakeCrdStrategy(Core& core) {
  return std::make_unique<CrdStrategy>(
      [&core] { return core.registry.All(); },
      [&core](const json::Value* before, const json::Value* after) {
        core.crds->OnCommit(before, after);
        core.aggregator->OnCustomKinds();
      });
}

IpAllocator MakeAllocator(const ServerOptions& options) {
  Result<IpAllocator> allocator = IpAllocator::Make(options.service_cidr);
  CHECK_MSG(allocator.has_value(), "ServerOptions.service_cidr is not an IPv4 range");
  return std::move(*allocator);
}

std::map<std::string, std::unique_ptr<Strategy>> AllStrategies(Core& core) {
  auto strategies = MakeStrategies(core.store, MakeAllocator(core.options), MakeCrdStrategy(core));
  for (const char* plural : {"roles", "clusterroles", "rolebindings", "clusterrolebindings"}) {
    strategies[fmt::format("{}.rbac.authorization.k8s.io", plural)] =
        std::make_unique<RbacStrategy>(core.authorizer);
  }
  strategies["apiservices.apiregistration.k8s.io"] = std::make_unique<ApiServiceStrategy>();
  return strategies;
}

std::shared_ptr<const net::SigningKey> TokenKey(const ServerOptions& options) {
  return options.token_key != nullptr ? options.token_key : net::SigningKey::Generate();
}

std::string ServerAddress(const ServerOptions& options) {
  return options.advertise_address.empty()
             ? ""
             : fmt::format("{}:{}", options.advertise_address, options.advertise_port);
}

// "resource", "namespace" or "cluster", as upstream labels its metrics.
std::string_view ScopeOf(const RequestInfo& info) {
  if (!info.is_resource) return "";
  if (!info.name.empty()) return "resource";
  return info.ns.empty() ? "cluster" : "namespace";
}

std::string_view MetricVerb(const RequestInfo& info, bool known) {
  if (!known) return "other";
  if (!info.is_resource) return info.method;
  if (info.verb == "create") return "POST";
  if (info.verb == "update") return "PUT";
  if (info.verb == "patch") return "PATCH";
  if (info.verb == "delete") return "DELETE";
  if (info.verb == "deletecollection") return "DELETECOLLECTION";
  if (info.verb == "list") return "LIST";
  if (info.verb == "watch") return "WATCH";
  return "GET";
}

bool IsWatchOrLog(const RequestInfo& info) {
  return info.is_resource && (info.verb == "watch" || info.subresource == "log");
}

// A page from elsewhere gets none: who it belongs to is not who it acts for.
Result<net::ResponseWriterPtr> StreamAsMessages(const net::Request& request,
                                                net::ResponseWriterPtr writer) {
  if (!net::IsSameOrigin(request)) {
    return Error(Reason::kForbidden, "a WebSocket for a page of {}, which is not this server",
                 request.headers.Get("Origin"));
  }
  return net::MakeWebSocketWriter(request, std::move(writer));
}

}  // namespace

Core::Core(Loop& the_loop, store::Store& the_store, ServerOptions the_options)
    : loop(the_loop),
      store(the_store),
      options(std::move(the_options)),
      rng(options.seed),
      tokens(store, TokenKey(options)),
      rbac(store),
      authorizer(rbac),
      registry(AllStrategies(*this)),
      quotas(std::make_shared<QuotaLedger>(loop, store)),
      hubs(loop, store, trees),
      admission(std::make_unique<Admission>(*this)),
      crds(std::make_unique<CrdLifecycle>(*this)),
      node_stats(std::make_unique<NodeStats>(*this)),
      aggregator(std::make_unique<Aggregator>(*this)) {}

Core::~Core() = default;

struct ApiServer::Impl {
  Impl(Loop& loop, store::Store& store, ServerOptions options)
      : core(loop, store, std::move(options)),
        discovery(core.registry, *core.aggregator, ServerAddress(core.options)),
        openapi(loop, core.options.pool, core.registry, core.options.version.git_version),
        events(loop, store),
        reads(loop, kReadsPerTask),
        others(loop, kOthersPerTask),
        requests(core.metrics.Counter("apiserver_request_total",
                                      "Answered requests by verb, resource and code.")),
        durations(core.metrics.Histogram(
            "apiserver_request_duration_seconds",
            "Time from a request to its answer, watches left out.",
            {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10})) {
    core.crds->Load();
    AddHealthChecks();
    AddMetrics();
  }

  void AddHealthChecks() {
    health.Add("ping", [] { return Status::Ok(); }, true);
    health.Add("store", [this] { return core.store.Health(); }, true);
    health.Add(
        "poststarthook/bootstrap",
        [this]() -> Status {
          if (bootstrapped) return Status::Ok();
          return Error(Reason::kServiceUnavailable, "the first objects are not written yet");
        },
        false);
    health.Add(
        "shutdown",
        [this]() -> Status {
          if (!core.shutting_down) return Status::Ok();
          return Error(Reason::kServiceUnavailable, "the server is shutting down");
        },
        false);
    for (auto& [name, check] : core.options.ready_checks) health.Add(name, check, false);
  }

  void AddMetrics() {
    core.metrics.Callback("apiserver_registered_watchers", "Watches that are open.",
                          [this] { return static_cast<double>(core.hubs.watchers()); });
    core.metrics.Callback(
        "apiserver_flowcontrol_current_inqueue_requests", "Requests that wait for their turn.",
        [this] { return static_cast<double>(reads.waiting() + others.waiting()); });
    core.metrics.Callback("muster_store_revision", "Latest committed revision.",
                          [this] { return static_cast<double>(core.store.CommittedRevision()); });
    core.metrics.Callback("muster_store_compacted_revision",
                          "Oldest revision that can still be read.",
                          [this] { return static_cast<double>(core.store.CompactedRevision()); });
    core.metrics.Callback("muster_store_healthy", "1 while the store takes writes.",
                          [this] { return core.store.Health().ok() ? 1.0 : 0.0; });
  }

  void KeepOwnObjects();
  void Handle(net::Request request, net::ResponseWriterPtr writer);
  // A step of a request of `user` that was let in before.
  void HandleInside(net::Request request, const User& user, net::ResponseWriterPtr writer);
  void Route(const CallPtr& call);
  void RouteResource(const CallPtr& call);
  void RouteVerb(const CallPtr& call, const ResourcePtr& resource);
  void RouteSubresource(const CallPtr& call, const ResourcePtr& resource);
  bool HandleSmallPages(Call& call);
  bool HandleDashboard(Call& call);
  Function<void(int)> Observer(const RequestInfo& info);

  Core core;
  Discovery discovery;
  OpenApi openapi;
  Health health;
  EventExpiry events;
  Turns reads, others;  // requests that wait: reads of one object, and the rest
  const std::shared_ptr<ScanTurns> mlflow_scans = std::make_shared<ScanTurns>(core.loop);
  CounterFamily& requests;
  HistogramFamily& durations;
  bool bootstrapped = false;
  std::vector<store::Store::WatchId> kept_watches;
};

// Clients find this server through default/kubernetes, and servers behind it whom to believe in a
// ConfigMap: `kubectl delete services --all` must not take them away.
void ApiServer::Impl::KeepOwnObjects() {
  struct Kept {
    const char *group, *plural, *ns, *name;
  };
  for (const Kept& kept :
       {Kept{"", "services", "default", "kubernetes"},
        Kept{"", "endpoints", "default", "kubernetes"},
        Kept{"discovery.k8s.io", "endpointslices", "default", "kubernetes"},
        Kept{"", "configmaps", "kube-system", "extension-apiserver-authentication"}}) {
    const ResourcePtr resource = core.registry.Find(kept.group, "v1", kept.plural);
    const std::string key = ObjectKey(*resource->kind, kept.ns, kept.name);
    const auto on_events = [this, key](const std::vector<store::WatchEvent>& events) {
      const bool gone = std::ranges::any_of(events, [&](const store::WatchEvent& event) {
        return event.type == store::WatchEvent::Type::kDelete && event.entry->key == key;
      });
      if (!gone) return;
      core.loop.Post(core.Guarded([this] {
        Bootstrap(core, [](const Status& status) {
          if (status.ok()) return;
          LOG_WARN("apiserver: cannot restore what was deleted error={:?}", status.message());
        });
      }));
    };
    const auto watch = core.store.Watch(key, core.store.CommittedRevision(), on_events);
    if (watch) kept_watches.push_back(*watch);
  }
}

// Counts the answer when it is given. Names of resources that do not exist stay out of the labels.
Function<void(int)> ApiServer::Impl::Observer(const RequestInfo& info) {
  const ResourcePtr resource = core.registry.Find(info.group, info.version, info.resource);
  const bool known = !info.is_resource || resource != nullptr;
  const std::string group = resource != nullptr ? info.group : "",
                    version = resource != nullptr ? info.version : "";
  const std::string plural = resource != nullptr ? info.resource : "";
  const std::string sub = resource != nullptr ? info.subresource.substr(0, 32) : "";
  return [this, verb = std::string(MetricVerb(info, known)), group, version, plural, sub,
          scope = std::string(ScopeOf(info)), start = core.loop.Now()](int code) {
    const std::string code_text = std::to_string(code);
    requests.Add({{"verb", verb},
                  {"group", group},
                  {"version", version},
                  {"resource", plural},
                  {"subresource", sub},
                  {"scope", scope},
                  {"component", "apiserver"},
                  {"code", code_text}});
    if (verb == "WATCH" || sub == "log" || sub == "exec") return;
    const double elapsed = std::chrono::duration<double>(core.loop.Now() - start).count();
    durations.Observe({{"verb", verb},
                       {"group", group},
                       {"version", version},
                       {"resource", plural},
                       {"subresource", sub},
                       {"scope", scope},
                       {"component", "apiserver"}},
                      elapsed);
  };
}

void ApiServer::Impl::Handle(net::Request request, net::ResponseWriterPtr writer) {
  Result<RequestInfo> info = ParseRequestInfo(request);
  const bool protobuf = PrefersProtobuf(request.headers.Get("Accept"));
  const bool websocket = net::IsWebSocketRequest(request);
  if (websocket) net::TakeTokenFromProtocols(request);
  if (!info) return writer->Send(ErrorResponse(info.error(), protobuf));
  Result<User> user = Authenticate(request, core.tokens, core.loop.Now());
  if (user) user = Impersonate(*std::move(user), request, core.authorizer);
  const bool mlflow = IsMlflowPath(*info);
  if (!user) {
    return writer->Send(mlflow ? MlflowErrorResponse(user.error())
                               : ErrorResponse(user.error(), protobuf));
  }
  // Of those paths the kinds behind them decide.
  Status allowed = mlflow ? Status::Ok() : core.authorizer.Authorize(*user, *info);
  if (websocket && IsWatchOrLog(*info)) {
    Result<net::ResponseWriterPtr> messages = StreamAsMessages(request, writer);
    if (messages) {
      writer = *std::move(messages);
    } else if (allowed.ok()) {
      allowed = messages.error();
    }
  }
  Function<void(int)> observer = Observer(*info);
  const bool from_outside = !request.peer.address.empty();
  auto call = std::make_shared<Call>(std::move(request), std::move(*info), std::move(writer),
                                     std::move(observer));
  call->set_user(*std::move(user));
  if (!allowed.ok()) return call->Fail(allowed);
  // The parts of this process must go on, and whoever asks for our health or what we serve is
  // answered at once.
  if (!from_outside || !(call->info().is_resource || mlflow)) return Route(call);
  const bool one_object = call->info().verb == "get" && call->info().subresource.empty();
  Turns& turns = one_object ? reads : others;
  if (turns.Wait(call->user().name, [this, call] { Route(call); })) return;
  if (mlflow) return call->Send(MlflowErrorResponse(TooManyRequestsError()));
  call->Fail(TooManyRequestsError());
}

void ApiServer::Impl::HandleInside(net::Request request, const User& user,
                                   net::ResponseWriterPtr writer) {
  Result<RequestInfo> info = ParseRequestInfo(request);
  if (!info) return writer->Send(ErrorResponse(info.error(), false));
  const Status allowed = core.authorizer.Authorize(user, *info);
  Function<void(int)> observer = Observer(*info);
  auto call = std::make_shared<Call>(std::move(request), std::move(*info), std::move(writer),
                                     std::move(observer));
  call->set_user(user);
  allowed.ok() ? Route(call) : call->Fail(allowed);
}

void ApiServer::Impl::Route(const CallPtr& call) {
  const RequestInfo& info = call->info();
  const ApiServicePtr service = core.aggregator->services().Find(info.group, info.version);
  if (service != nullptr && info.parts[0] == "apis") return ProxyToApiService(core, call, service);
  if (info.is_resource) return RouteResource(call);
  if (IsMlflowPath(info)) {
    return HandleMlflow(
        core, call,
        [this](net::Request request, const User& user, net::ResponseWriterPtr writer) {
          HandleInside(std::move(request), user, std::move(writer));
        },
        mlflow_scans);
  }
  if (discovery.Handle(*call) || openapi.Handle(call) || health.Handle(*call, call->user()) ||
      HandleOpenId(*call, core.tokens.key(), ServerAddress(core.options)) ||
      HandleSmallPages(*call) || HandleDashboard(*call))
    return;
  call->Fail(NoSuchResourceError());
}

bool ApiServer::Impl::HandleSmallPages(Call& call) {
  const std::string& path = call.info().path;
  if (path != "/" && path != "/version" && path != "/metrics") return false;
  if (call.info().method != "GET" && call.info().method != "HEAD") {
    call.Fail(MethodNotAllowedError());
  } else if (path == "/version") {
    const VersionInfo& version = core.options.version;
    call.Reply(200, json::Obj({{"major", version.major},
                               {"minor", version.minor},
                               {"gitVersion", version.git_version},
                               {"gitCommit", version.git_commit},
                               {"gitTreeState", "clean"},
                               {"buildDate", version.build_date},
                               {"goVersion", "none"},
                               {"compiler", "g++"},
                               {"platform", "linux/amd64"}}));
  } else if (path == "/metrics") {
    net::Response response;
    response.headers.Add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    response.body = core.metrics.Render();
    for (const auto& extra : core.options.extra_metrics) response.body += extra();
    call.Send(std::move(response));
  } else {
    call.Reply(
        200, json::Obj({{"paths", json::List({"/.well-known/openid-configuration", "/api", "/apis",
                                              "/healthz", "/livez", "/metrics", "/openapi/v2",
                                              "/openapi/v3", "/readyz", "/version"})}}));
  }
  return true;
}

bool ApiServer::Impl::HandleDashboard(Call& call) {
  std::optional<net::Response> answer = dashboard::Page().Answer(call.request());
  if (!answer) return false;
  call.Send(*std::move(answer));
  return true;
}

void ApiServer::Impl::RouteResource(const CallPtr& call) {
  const RequestInfo& info = call->info();
  if (info.group.empty() && info.resource == "bindings" && info.version == "v1" &&
      info.name.empty()) {
    return HandleBinding(core, call, core.registry.Find("", "v1", "pods"));
  }
  ResourcePtr resource = core.registry.Find(info.group, info.version, info.resource);
  if (resource == nullptr) return call->Fail(NoSuchResourceError());
  // Handlers know the stored version; the call converts what comes in and goes out.
  if (resource->kind->conversion != nullptr) {
    call->set_spoken(resource->kind);
    resource = core.registry.FindStored(info.group, info.resource);
  }
  // A cluster-scoped kind has no URL below a namespace, and a namespaced object none without.
  if (!resource->kind->namespaced && !info.ns.empty() && info.resource != "namespaces") {
    return call->Fail(NoSuchResourceError());
  }
  if (resource->kind->namespaced && info.ns.empty() && !info.name.empty())
    return call->Fail(NoSuchResourceError());
  if (!info.subresource.empty()) return RouteSubresource(call, resource);
  if (resource->kind->create_only) return HandleReview(core, call, resource);
  RouteVerb(call, resource);
}

void ApiServer::Impl::RouteVerb(const CallPtr& call, const ResourcePtr& resource) {
  const RequestInfo& info = call->info();
  if (resource->kind->computed) return HandleMetrics(core, call, resource);
  if (info.verb == "get") return HandleGet(core, call, resource);
  if (info.verb == "list") return HandleList(core, call, resource);
  if (info.verb == "watch") return HandleWatch(core, call, resource);
  if (info.verb == "create" && info.name.empty()) return HandleCreate(core, call, resource);
  if (info.verb == "update" && !info.name.empty()) return HandleUpdate(core, call, resource);
  if (info.verb == "patch" && !info.name.empty()) return HandlePatch(core, call, resource);
  if (info.verb == "delete") return HandleDelete(core, call, resource);
  if (info.verb == "deletecollection") return HandleDeleteCollection(core, call, resource);
  call->Fail(MethodNotAllowedError());
}

void ApiServer::Impl::RouteSubresource(const CallPtr& call, const ResourcePtr& resource) {
  const RequestInfo& info = call->info();
  const schema::Kind& kind = *resource->kind;
  if (info.subresource == "status" && kind.status_subresource) {
    if (info.verb == "get") return HandleGet(core, call, resource);
    if (info.verb == "update") return HandleUpdate(core, call, resource);
    if (info.verb == "patch") return HandlePatch(core, call, resource);
    return call->Fail(MethodNotAllowedError());
  }
  for (const schema::Subresource& sub : SubresourcesOf(kind)) {
    if (sub.name != info.subresource) continue;
    if (sub.name == "log") return HandleLog(core, call, resource);
    if (sub.name == "exec") return HandleExec(core, call, resource);
    if (sub.name == "proxy" && kind.plural == "services") return HandleServiceProxy(core, call);
    if (sub.name == "proxy") return HandleNodeProxy(core, call);
    if (sub.name == "binding") return HandleBinding(core, call, resource);
    if (sub.name == "eviction") return HandleEviction(core, call, resource);
    if (sub.name == "token") return HandleTokenRequest(core, call, resource);
    if (sub.name == "scale") return HandleScale(core, call, resource);
    if (sub.name == "finalize" && info.verb == "update")
      return HandleFinalizeNamespace(core, call, resource);
    return call->Fail(MethodNotAllowedError());
  }
  call->Fail(UnservedSubresourceError(kind, info.subresource));
}

ApiServer::ApiServer(Loop& loop, store::Store& store, ServerOptions options)
    : impl_(std::make_unique<Impl>(loop, store, std::move(options))) {}

ApiServer::~ApiServer() {
  for (const store::Store::WatchId watch : impl_->kept_watches)
    impl_->core.store.CancelWatch(watch);
  impl_->core.alive.reset();
}

void ApiServer::Start(Function<void(Status)> done) {
  impl_->core.rbac.Start();
  impl_->core.admission->Start();
  impl_->core.aggregator->Start();
  impl_->events.Start();
  impl_->KeepOwnObjects();
  Bootstrap(impl_->core, [this, weak = std::weak_ptr<int>(impl_->core.alive),
                          done = std::move(done)](const Status& status) mutable {
    if (!weak.lock()) return;
    impl_->bootstrapped = status.ok();
    done(status);
  });
}

void ApiServer::BeginShutdown() {
  impl_->core.shutting_down = true;
  impl_->core.hubs.Close("");
}

void ApiServer::Handle(net::Request request, net::ResponseWriterPtr writer) {
  impl_->Handle(std::move(request), std::move(writer));
}

}  // namespace muster::apiserver
