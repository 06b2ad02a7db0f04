#include "apiserver/aggregation/api_service.h"

#include <tuple>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::apiserver {

std::string ApiService::Host() const { return fmt::format("{}.{}.svc", service_name, service_ns); }

bool ApiService::SameSpec(const ApiService& other) const {
  const auto spec = [](const ApiService& one) {
    return std::tie(one.group, one.version, one.service_ns, one.service_name, one.port, one.ca_pem,
                    one.believes_all, one.group_priority, one.version_priority);
  };
  return spec(*this) == spec(other);
}

ApiServicePtr ReadApiService(const json::Value& object) {
  const json::Value& spec = object["spec"];
  const json::Value& behind = spec["service"];
  if (behind.IsNull()) return nullptr;
  auto service = std::make_shared<ApiService>();
  service->name = object["metadata"]["name"].Str();
  service->group = spec["group"].Str();
  service->version = spec["version"].Str();
  service->service_ns = behind["namespace"].Str();
  service->service_name = behind["name"].Str();
  service->port = behind["port"].AsInt();
  service->ca_pem = Base64Decode(spec["caBundle"].AsString()).value_or("");
  service->believes_all = spec["insecureSkipTLSVerify"].AsBool();
  service->group_priority = spec["groupPriorityMinimum"].AsInt();
  service->version_priority = spec["versionPriority"].AsInt();
  service->available = ConditionOf(object, kAvailable)["status"].AsString() == "True";
  return service;
}

json::Value ConditionOf(const json::Value& object, std::string_view type) {
  for (const json::Value& condition : object["status"]["conditions"].items())
    if (condition["type"].AsString() == type) return condition;
  return {};
}

}  // namespace muster::apiserver
