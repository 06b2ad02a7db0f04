#include "apiserver/kinds/service_strategy.h"

#include "apiserver/errors.h"
#include "apiserver/stored_object.h"
#include "base/log.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/registry.h"
#include "schema/validation.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kHeadless = "None";

bool NeedsAddress(const json::Value& service) {
  return service["spec"]["type"].AsString() != "ExternalName" &&
         service["spec"]["clusterIP"].AsString() != kHeadless;
}

// "" when the service has no cluster address.
std::string_view AddressOf(const json::Value& service) {
  return NeedsAddress(service) ? service["spec"]["clusterIP"].AsString() : std::string_view();
}

// clusterIP and clusterIPs say the same, whichever the client sent.
void JoinAddresses(json::Value& service) {
  const std::string_view address = service["spec"]["clusterIP"].AsString();
  const std::string_view first = service["spec"]["clusterIPs"].At(0).AsString();
  if (address.empty() && !first.empty()) {
    service = service.SetPath({"spec", "clusterIP"}, first);
  } else if (!address.empty() && first.empty()) {
    service = service.SetPath({"spec", "clusterIPs"}, json::List({address}));
  }
}

// This cluster speaks IPv4 only.
void SetFamilies(json::Value& service) {
  if (service["spec"]["type"].AsString() == "ExternalName") return;
  if (service["spec"]["ipFamilies"].empty()) {
    service = service.SetPath({"spec", "ipFamilies"}, json::List({"IPv4"}));
  }
  if (service["spec"]["ipFamilyPolicy"].AsString().empty()) {
    service = service.SetPath({"spec", "ipFamilyPolicy"}, "SingleStack");
  }
}

bool IsOutside(const json::Value& service) {
  const std::string_view type = service["spec"]["type"].AsString();
  return type == "NodePort" || type == "LoadBalancer";
}

// Load balancers outside ask the nodes which of them have pods.
bool NeedsHealthPort(const json::Value& service) {
  return service["spec"]["type"].AsString() == "LoadBalancer" &&
         service["spec"]["externalTrafficPolicy"].AsString() == "Local";
}

// 0: it has none.
int64_t HealthPortOf(const json::Value& service) {
  return NeedsHealthPort(service) ? service["spec"]["healthCheckNodePort"].AsInt() : 0;
}

// The node ports of a service, by number: its protocols may share one.
std::set<int64_t> NodePortsOf(const json::Value& service) {
  std::set<int64_t> ports;
  if (!IsOutside(service)) return ports;
  for (const json::Value& port : service["spec"]["ports"].items()) {
    if (const int64_t number = port["nodePort"].AsInt(); number != 0) ports.insert(number);
  }
  return ports;
}

std::set<int64_t> AllPortsOf(const json::Value& service) {
  std::set<int64_t> ports = NodePortsOf(service);
  if (const int64_t port = HealthPortOf(service); port != 0) ports.insert(port);
  return ports;
}

bool WantsNodePorts(const json::Value& service) {
  const json::Value& spec = service["spec"];
  return spec["type"].AsString() == "NodePort" ||
         (spec["type"].AsString() == "LoadBalancer" &&
          spec["allocateLoadBalancerNodePorts"].AsBool(true));
}

// The node port of the same port and protocol (given: of another protocol) of `service`; 0 if none.
int64_t NodePortOf(const json::Value& service, const json::Value& like, bool same_protocol) {
  for (const json::Value& port : service["spec"]["ports"].items()) {
    if (port["port"] == like["port"] &&
        (port["protocol"].AsString("TCP") == like["protocol"].AsString("TCP")) == same_protocol &&
        port["nodePort"].AsInt() != 0)
      return port["nodePort"].AsInt();
  }
  return 0;
}

// A client that leaves node ports out keeps them.
void KeepNodePorts(const json::Value& before, json::Value& after) {
  if (!WantsNodePorts(before) || !WantsNodePorts(after)) return;
  std::set<int64_t> named = NodePortsOf(after);
  json::Array ports;
  for (const json::Value& port : after["spec"]["ports"].items()) {
    const int64_t kept = port["nodePort"].AsInt() == 0 ? NodePortOf(before, port, true) : 0;
    ports.push_back(kept != 0 && named.insert(kept).second ? port.Set("nodePort", kept) : port);
  }
  if (!ports.empty()) after = after.SetPath({"spec", "ports"}, json::Value(std::move(ports)));
}

// A change of type takes along the fields that mean nothing any more, if the client left them as
// they were.
void DropFieldsOfOldType(const json::Value& before, json::Value& after) {
  const auto drop = [&](std::string_view field) {
    if (after["spec"][field] == before["spec"][field]) after = after.RemovePath({"spec", field});
  };
  const std::string_view old_type = before["spec"]["type"].AsString();
  const std::string_view type = after["spec"]["type"].AsString();
  if (type == "ExternalName" && old_type != "ExternalName") {
    for (std::string_view field : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"})
      drop(field);
  }
  if (IsOutside(before) && !IsOutside(after)) {
    drop("externalTrafficPolicy");
    json::Array ports;
    for (const json::Value& port : after["spec"]["ports"].items())
      ports.push_back(port.Remove("nodePort"));
    if (!ports.empty()) after = after.SetPath({"spec", "ports"}, json::Value(std::move(ports)));
  }
  if (NeedsHealthPort(before) && !NeedsHealthPort(after)) drop("healthCheckNodePort");
  if (old_type == "LoadBalancer" && type != "LoadBalancer") {
    for (std::string_view field : {"allocateLoadBalancerNodePorts", "loadBalancerClass"})
      drop(field);
  }
}

}  // namespace

ServiceStrategy::ServiceStrategy(IpAllocator allocator, const store::Store& store)
    : allocator_(std::move(allocator)) {
  const schema::KindPtr kind = schema::Registry::BuiltIn().Find("", "v1", "services");
  const Result<store::RangeResult> range = store.Range(KeyPrefix(*kind), "", 0, 0);
  if (!range) return;
  for (const store::EntryPtr& entry : range->entries) {
    const json::Value service = DecodeStored(*kind, *entry->value);
    for (const int64_t port : AllPortsOf(service)) node_ports_.Allocate(port);
    const std::string_view address = AddressOf(service);
    if (address.empty()) continue;
    if (const Status status = allocator_.Allocate(address); !status.ok()) {
      LOG_WARN(
          "apiserver: kept a service whose address cannot be reserved service={} address={} "
          "error={:?}",
          entry->key, address, status.message());
    }
  }
}

Status ServiceStrategy::PrepareCreate(WriteContext&, json::Value& object) {
  JoinAddresses(object);
  SetFamilies(object);
  object = object.Set("status", json::Obj({{"loadBalancer", json::Obj()}}));
  return Status::Ok();
}

Status ServiceStrategy::PrepareUpdate(WriteContext&, const json::Value& before,
                                      json::Value& after) {
  DropFieldsOfOldType(before, after);
  // A client that leaves the address out keeps it (kubectl apply of the first manifest).
  const bool absent =
      after["spec"]["clusterIP"].AsString().empty() && after["spec"]["clusterIPs"].empty();
  const bool headless = before["spec"]["clusterIP"].AsString() == kHeadless;
  if (absent && after["spec"]["type"].AsString() != "ExternalName" &&
      (headless || !AddressOf(before).empty())) {
    after = after.SetPath({"spec", "clusterIP"}, before["spec"]["clusterIP"]);
    after = after.SetPath({"spec", "clusterIPs"}, before["spec"]["clusterIPs"]);
  }
  KeepNodePorts(before, after);
  if (NeedsHealthPort(after) && HealthPortOf(after) == 0 && HealthPortOf(before) != 0)
    after = after.SetPath({"spec", "healthCheckNodePort"}, HealthPortOf(before));
  JoinAddresses(after);
  SetFamilies(after);
  return Status::Ok();
}

void ServiceStrategy::Validate(const WriteContext&, const json::Value*, const json::Value& after,
                               std::vector<StatusCause>& causes) {
  if (!causes.empty() || after["spec"]["type"].AsString() == "ExternalName") return;
  const json::Value& families = after["spec"]["ipFamilies"];
  for (size_t i = 0; i < families.size(); ++i) {
    if (families.At(i).AsString() == "IPv4") continue;
    causes.push_back(InvalidField(fmt::format("spec.ipFamilies[{}]", i), families.At(i),
                                  "not configured on this cluster"));
  }
  const json::Value& policy = after["spec"]["ipFamilyPolicy"];
  if (policy.AsString() == "RequireDualStack") {
    causes.push_back(InvalidField("spec.ipFamilyPolicy", policy,
                                  "this cluster is not configured for dual-stack services"));
  }
}

Status ServiceStrategy::Reserve(WriteContext& context, const json::Value* before,
                                json::Value& object) {
  if (context.dry_run) return Status::Ok();
  const std::set<int64_t> own = before == nullptr ? std::set<int64_t>() : NodePortsOf(*before);
  RETURN_IF_ERROR(ReservePorts(context, own, object));
  const auto release = [&](const std::set<int64_t>& ports) {
    for (const int64_t port : ports)
      if (!own.contains(port)) node_ports_.Release(port);
  };
  Status status = ReserveHealthPort(before, object);
  if (!status.ok()) {
    release(NodePortsOf(object));
    return status;
  }
  status = ReserveAddress(context, before, object);
  if (!status.ok()) {
    release(NodePortsOf(object));
    if (before == nullptr || HealthPortOf(*before) == 0) release({HealthPortOf(object)});
  }
  return status;
}

Status ServiceStrategy::ReserveHealthPort(const json::Value* before, json::Value& object) {
  if (!NeedsHealthPort(object)) return Status::Ok();
  const int64_t wanted = HealthPortOf(object);
  if (wanted == 0) {
    const std::optional<int64_t> next = node_ports_.AllocateNext();
    if (!next) return InternalError("failed to allocate a HealthCheck NodePort: range is full");
    object = object.SetPath({"spec", "healthCheckNodePort"}, *next);
    return Status::Ok();
  }
  if (before != nullptr && HealthPortOf(*before) == wanted) return Status::Ok();
  const auto refuse = [&](std::string_view why) {
    return InternalError(
        fmt::format("failed to allocate requested HealthCheck NodePort {}: {}", wanted, why));
  };
  if (wanted < kFirstNodePort || wanted > kLastNodePort)
    return refuse(
        fmt::format("provided port is not in the valid range. The range of valid ports is {}-{}",
                    kFirstNodePort, kLastNodePort));
  return node_ports_.Allocate(wanted) ? Status::Ok() : refuse("provided port is already allocated");
}

// All of them or none.
Status ServiceStrategy::ReservePorts(WriteContext& context, const std::set<int64_t>& own,
                                     json::Value& object) {
  if (!IsOutside(object)) return Status::Ok();
  std::set<int64_t> taken;  // for this write
  const auto fail = [&](size_t index, std::string why) {
    for (const int64_t port : taken) node_ports_.Release(port);
    return schema::InvalidError(
        context.kind, context.name,
        {{"FieldValueInvalid", fmt::format("spec.ports[{}].nodePort", index), std::move(why)}});
  };
  const json::Value& ports = object["spec"]["ports"];
  for (size_t i = 0; i < ports.size(); ++i) {
    const int64_t number = ports.At(i)["nodePort"].AsInt();
    if (number == 0 || own.contains(number) || taken.contains(number)) continue;
    if (!node_ports_.Allocate(number))
      return fail(i, fmt::format("Invalid value: {}: provided port is already allocated", number));
    taken.insert(number);
  }
  if (!WantsNodePorts(object)) return Status::Ok();
  for (size_t i = 0; i < object["spec"]["ports"].size(); ++i) {
    const json::Value port = object["spec"]["ports"].At(i);
    if (port["nodePort"].AsInt() != 0) continue;
    int64_t number = NodePortOf(object, port, /*same_protocol=*/false);
    if (number == 0) {
      const std::optional<int64_t> next = node_ports_.AllocateNext();
      if (!next) return fail(i, "Internal error: failed to allocate a nodePort: range is full");
      taken.insert(number = *next);
    }
    json::Array changed = object["spec"]["ports"].items();
    changed[i] = port.Set("nodePort", number);
    object = object.SetPath({"spec", "ports"}, json::Value(std::move(changed)));
  }
  return Status::Ok();
}

Status ServiceStrategy::ReserveAddress(WriteContext& context, const json::Value* before,
                                       json::Value& object) {
  if (!NeedsAddress(object)) return Status::Ok();
  const std::string address = object["spec"]["clusterIP"].Str();
  if (before != nullptr && !address.empty() && AddressOf(*before) == address) return Status::Ok();
  if (!address.empty()) {
    const Status taken = allocator_.Allocate(address);
    if (taken.ok()) return taken;
    return schema::InvalidError(
        context.kind, context.name,
        {{"FieldValueInvalid", "spec.clusterIPs",
          fmt::format("Invalid value: [\"{}\"]: failed to allocate IP {}: {}", address, address,
                      taken.message())}});
  }
  ASSIGN_OR_RETURN(const std::string chosen, allocator_.AllocateNext());
  object = object.SetPath({"spec", "clusterIP"}, chosen);
  object = object.SetPath({"spec", "clusterIPs"}, json::List({chosen}));
  return Status::Ok();
}

void ServiceStrategy::Abandon(const json::Value* before, const json::Value& object) {
  Committed(&object, before);  // as if it had been there and were no more
}

void ServiceStrategy::Committed(const json::Value* before, const json::Value* after) {
  if (before == nullptr) return;
  const std::string_view old = AddressOf(*before);
  if (!old.empty() && (after == nullptr || AddressOf(*after) != old)) allocator_.Release(old);
  const std::set<int64_t> kept = after == nullptr ? std::set<int64_t>() : AllPortsOf(*after);
  for (const int64_t port : AllPortsOf(*before))
    if (!kept.contains(port)) node_ports_.Release(port);
}

}  // namespace muster::apiserver
