#include "agent/node/health_check_ports.h"

#include <fmt/core.h>

#include "agent/network/service_planner.h"
#include "base/log.h"
#include "json/write.h"

namespace muster::agent {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted;
  json::AppendString(quoted, text);
  return quoted;
}

// 0: it has none.
uint16_t HealthPortOf(const json::Value& service) {
  const json::Value& spec = service["spec"];
  if (spec["type"].AsString() != "LoadBalancer" ||
      spec["externalTrafficPolicy"].AsString() != "Local")
    return 0;
  return ParsePort(spec["healthCheckNodePort"]).value_or(0);
}

}  // namespace

// Whatever the method and the path.
class HealthCheckPorts::Answers final : public net::Handler {
 public:
  Answers(client::ObjectKey service, const CountLocal& count)
      : service_(std::move(service)), count_(count) {}

  void Handle(net::Request, net::ResponseWriterPtr writer) override {
    const size_t count = count_(service_);
    net::Response response;
    response.status = count > 0 ? 200 : 503;
    response.headers.Set("Content-Type", "application/json");
    response.headers.Set("X-Content-Type-Options", "nosniff");
    response.headers.Set("X-Load-Balancing-Endpoint-Weight", fmt::format("{}", count));
    response.body = fmt::format(
        "{{\n\t\"service\": {{\n\t\t\"namespace\": {},\n\t\t\"name\": {}\n\t}},\n"
        "\t\"localEndpoints\": {},\n\t\"serviceProxyHealthy\": true\n}}",
        Quoted(service_.ns), Quoted(service_.name), count);
    writer->Send(std::move(response));
  }

 private:
  const client::ObjectKey service_;
  const CountLocal& count_;
};

HealthCheckPorts::HealthCheckPorts(Loop& loop, net::IoThreads& io, CountLocal count_local)
    : loop_(loop), io_(io), count_local_(std::move(count_local)) {}

HealthCheckPorts::~HealthCheckPorts() { loop_.Cancel(retry_); }

void HealthCheckPorts::Follow(const client::ObjectKey& key, const json::Value& service) {
  const uint16_t port = HealthPortOf(service);
  const auto found = listeners_.find(key);
  if (found != listeners_.end() && found->second.port == port) return;
  if (found != listeners_.end()) listeners_.erase(found);
  if (port == 0) return;
  Listener& listener = listeners_[key];
  listener.port = port;
  listener.answers = std::make_unique<Answers>(key, count_local_);
  if (!Listen(key, listener)) Retry();
}

bool HealthCheckPorts::Listen(const client::ObjectKey& key, Listener& listener) {
  net::ServerOptions options;
  options.host = "0.0.0.0";
  options.port = listener.port;
  options.max_connections = kMaxHealthConnections;
  options.max_body_bytes = 0;
  options.head_timeout = options.idle_timeout = options.write_stall_timeout = kHealthIdleTimeout;
  auto server = net::HttpServer::Start(loop_, io_, *listener.answers, std::move(options));
  if (!server) {
    LOG_WARN("agent: healthCheckNodePort {} of service {}/{}: {}", listener.port, key.ns, key.name,
             server.error().message());
    return false;
  }
  listener.server = std::move(*server);
  return true;
}

void HealthCheckPorts::Retry() {
  if (retry_ != 0) return;
  retry_ = loop_.After(kHealthPortRetry, [this] {
    retry_ = 0;
    bool all = true;
    for (auto& [key, listener] : listeners_)
      if (listener.server == nullptr) all = Listen(key, listener) && all;
    if (!all) Retry();
  });
}

}  // namespace muster::agent
