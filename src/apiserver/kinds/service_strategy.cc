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
  if (!NeedsAddress(object) || context.dry_run) return Status::Ok();
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

void ServiceStrategy::Abandon(const json::Value& object) {
  if (const std::string_view address = AddressOf(object); !address.empty())
    allocator_.Release(address);
}

void ServiceStrategy::Committed(const json::Value* before, const json::Value* after) {
  if (before == nullptr) return;
  const std::string_view old = AddressOf(*before);
  if (!old.empty() && (after == nullptr || AddressOf(*after) != old)) allocator_.Release(old);
}

}  // namespace muster::apiserver
