// Tables of Ingresses, their classes, NetworkPolicies, webhook configurations and API services.
// Logic: k8s.io/kubernetes pkg/printers/internalversion, k8s.io/kube-aggregator.

#include <set>

#include <fmt/core.h>

#include "apiserver/table/printers.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

constexpr size_t kMaxListedHosts = 3;

std::string Hosts(const json::Value& rules) {
  std::vector<std::string> hosts;
  for (const json::Value& rule : rules.items()) {
    if (!rule["host"].AsString().empty()) hosts.push_back(rule["host"].Str());
  }
  if (hosts.empty()) return "*";
  const size_t more = hosts.size() > kMaxListedHosts ? hosts.size() - kMaxListedHosts : 0;
  hosts.resize(hosts.size() - more);
  return more == 0 ? Join(hosts, ",") : fmt::format("{} + {} more...", Join(hosts, ","), more);
}

std::string Addresses(const json::Value& points) {
  std::set<std::string> addresses;
  for (const json::Value& point : points.items()) {
    const std::string address = point["ip"].Str(point["hostname"].AsString());
    if (!address.empty()) addresses.insert(address);
  }
  return Join(std::vector<std::string>(addresses.begin(), addresses.end()), ",");
}

}  // namespace

json::Array IngressCells(const json::Value& ingress, Time now) {
  const json::Value& spec = ingress["spec"];
  return {NameCell(ingress),
          spec["ingressClassName"].Str("<none>"),
          Hosts(spec["rules"]),
          Addresses(ingress["status"]["loadBalancer"]["ingress"]),
          spec["tls"].empty() ? "80" : "80, 443",
          AgeOf(ingress, now)};
}

json::Array IngressClassCells(const json::Value& ingress_class, Time now) {
  const json::Value& spec = ingress_class["spec"];
  const json::Value& parameters = spec["parameters"];
  std::string shown = "<none>";
  if (!parameters.IsNull()) {
    shown = parameters["kind"].Str();
    if (!parameters["apiGroup"].IsNull()) shown += "." + parameters["apiGroup"].Str();
    shown += "/" + parameters["name"].Str();
  }
  return {NameCell(ingress_class), spec["controller"].Str(), shown, AgeOf(ingress_class, now)};
}

json::Array WebhookConfigurationCells(const json::Value& configuration, Time now) {
  return {NameCell(configuration), static_cast<int64_t>(configuration["webhooks"].size()),
          AgeOf(configuration, now)};
}

json::Array ApiServiceCells(const json::Value& service, Time now) {
  const json::Value& behind = service["spec"]["service"];
  const std::string where = behind.IsNull() ? "Local"
                                            : fmt::format("{}/{}", behind["namespace"].AsString(),
                                                          behind["name"].AsString());
  std::string available = "Unknown";
  for (const json::Value& condition : service["status"]["conditions"].items()) {
    if (condition["type"].AsString() != "Available") continue;
    available = condition["status"].Str();
    if (available != "True") available += fmt::format(" ({})", condition["reason"].AsString());
  }
  return {NameCell(service), where, available, AgeOf(service, now)};
}

json::Array NetworkPolicyCells(const json::Value& policy, Time now) {
  return {NameCell(policy), SelectorText(policy["spec"]["podSelector"]), AgeOf(policy, now)};
}

}  // namespace muster::apiserver
