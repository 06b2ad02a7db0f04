#include "ray/dashboard.h"

#include <utility>

#include <fmt/core.h>

#include "ray/cluster.h"

namespace muster::ray {

client::Target DashboardTarget(const std::string& ns, std::string_view cluster,
                               std::string_view path) {
  return {client::resources::kServices, ns, fmt::format("{}-head-svc:{}", cluster, kDashboardPort),
          fmt::format("proxy/{}", path)};
}

client::Probe AskDashboard(std::string name, const std::string& ns, std::string_view cluster,
                           std::string_view path) {
  client::Probe probe;
  probe.name = std::move(name);
  probe.path = client::ApiClient::PathOf(DashboardTarget(ns, cluster, path));
  probe.failures_too = true;
  return probe;
}

bool IsUnknownToRay(const json::Value& answer) {
  // The API server's own words name what it could not find.
  return client::IsFailure(answer) && answer["code"].AsInt() == 404 &&
         !answer["message"].AsString().starts_with("services ");
}

}  // namespace muster::ray
