#include "apiserver/services/service_resolver.h"

#include <utility>
#include <vector>

#include "apiserver/stored_object.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

using Address = std::pair<std::string, uint16_t>;

void AddReadyAddresses(const json::Value& slice, std::string_view port_name,
                       std::vector<Address>& addresses) {
  if (slice["addressType"].AsString() == "FQDN") return;
  for (const json::Value& port : slice["ports"].items()) {
    if (port["name"].AsString() != port_name || port["protocol"].AsString("TCP") != "TCP") continue;
    for (const json::Value& endpoint : slice["endpoints"].items()) {
      if (!endpoint["conditions"]["ready"].AsBool(true)) continue;
      const std::string address = endpoint["addresses"].At(0).Str();
      if (!address.empty())
        addresses.emplace_back(address, static_cast<uint16_t>(port["port"].AsInt()));
    }
  }
}

struct Endpoints {
  bool any_slice = false;
  std::vector<Address> ready;
};

Endpoints EndpointsOf(Core& core, std::string_view ns, std::string_view service,
                      std::string_view port_name) {
  Endpoints endpoints;
  const schema::Kind& slices =
      *schema::Registry::BuiltIn().Find("discovery.k8s.io", "v1", "endpointslices");
  const auto range = core.store.Range(CollectionPrefix(slices, ns), "", 0, 0);
  if (!range) return endpoints;
  for (const store::EntryPtr& entry : range->entries) {
    if (MetaOf(*entry).Label(kServiceNameLabel) != service) continue;
    endpoints.any_slice = true;
    AddReadyAddresses(core.trees.Of(slices, *entry), port_name, endpoints.ready);
  }
  return endpoints;
}

ServiceLookup Without(ServiceProblem problem, std::string port_name = {}) {
  return {problem, {}, std::move(port_name)};
}

}  // namespace

ServiceLookup LookUpService(Core& core, std::string_view ns, std::string_view name, int64_t port) {
  const schema::Kind& services = *schema::Registry::BuiltIn().Find("", "v1", "services");
  const store::EntryPtr entry = core.store.Get(ObjectKey(services, ns, name));
  if (entry == nullptr) return Without(ServiceProblem::kNoService);
  const json::Value spec = core.trees.Of(services, *entry)["spec"];
  if (spec["type"].AsString() == "ExternalName") {
    return {ServiceProblem::kNone,
            {spec["externalName"].Str(), static_cast<uint16_t>(port), false},
            {}};
  }
  const json::Value* found = nullptr;
  for (const json::Value& one : spec["ports"].items())
    if (one["port"].AsInt() == port) found = &one;
  if (found == nullptr) return Without(ServiceProblem::kNoPort);
  std::string port_name = (*found)["name"].Str();
  Endpoints endpoints = EndpointsOf(core, ns, name, port_name);
  if (endpoints.ready.empty()) {
    return Without(endpoints.any_slice ? ServiceProblem::kNoEndpoints : ServiceProblem::kNoSlices,
                   std::move(port_name));
  }
  Address& chosen = endpoints.ready[core.rng.Below(endpoints.ready.size())];
  return {ServiceProblem::kNone, {std::move(chosen.first), chosen.second, true}, port_name};
}

Result<ResolvedService> ResolveService(Core& core, std::string_view ns, std::string_view name,
                                       int64_t port) {
  ServiceLookup found = LookUpService(core, ns, name, port);
  switch (found.problem) {
    case ServiceProblem::kNone:
      return std::move(found.service);
    case ServiceProblem::kNoService:
      return Error(Reason::kNotFound, "service \"{}\" not found", name);
    case ServiceProblem::kNoPort:
      return Error(Reason::kServiceUnavailable, "no service port {} found for service \"{}\"", port,
                   name);
    case ServiceProblem::kNoSlices:
    case ServiceProblem::kNoEndpoints:
      break;
  }
  return Error(Reason::kServiceUnavailable, "no endpoints available for service \"{}\"", name);
}

}  // namespace muster::apiserver
