#include "apiserver/admission/service_resolver.h"

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

std::vector<Address> ReadyAddresses(Core& core, std::string_view ns, std::string_view service,
                                    std::string_view port_name) {
  std::vector<Address> addresses;
  const schema::Kind& slices =
      *schema::Registry::BuiltIn().Find("discovery.k8s.io", "v1", "endpointslices");
  const auto range = core.store.Range(CollectionPrefix(slices, ns), "", 0, 0);
  if (!range) return addresses;
  for (const store::EntryPtr& entry : range->entries) {
    if (MetaOf(*entry).Label(kServiceNameLabel) == service)
      AddReadyAddresses(core.trees.Of(slices, *entry), port_name, addresses);
  }
  return addresses;
}

}  // namespace

Result<ResolvedService> ResolveService(Core& core, std::string_view ns, std::string_view name,
                                       int64_t port) {
  const schema::Kind& services = *schema::Registry::BuiltIn().Find("", "v1", "services");
  const store::EntryPtr entry = core.store.Get(ObjectKey(services, ns, name));
  if (entry == nullptr) return Error(Reason::kNotFound, "service \"{}\" not found", name);
  const json::Value spec = core.trees.Of(services, *entry)["spec"];
  if (spec["type"].AsString() == "ExternalName")
    return ResolvedService{spec["externalName"].Str(), static_cast<uint16_t>(port), false};
  const json::Value* found = nullptr;
  for (const json::Value& one : spec["ports"].items())
    if (one["port"].AsInt() == port) found = &one;
  if (found == nullptr) {
    return Error(Reason::kServiceUnavailable, "no service port {} found for service \"{}\"", port,
                 name);
  }
  std::vector<Address> addresses = ReadyAddresses(core, ns, name, (*found)["name"].AsString());
  if (addresses.empty())
    return Error(Reason::kServiceUnavailable, "no endpoints available for service \"{}\"", name);
  Address& chosen = addresses[core.rng.Below(addresses.size())];
  return ResolvedService{std::move(chosen.first), chosen.second, true};
}

}  // namespace muster::apiserver
