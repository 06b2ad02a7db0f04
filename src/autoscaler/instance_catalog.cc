#include "autoscaler/instance_catalog.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "base/strings.h"
#include "cluster/quantity.h"
#include "json/parse.h"

namespace muster::autoscaler {
namespace {

using cluster::InstanceType;

constexpr int64_t kMaxGpus = 128;  // a node's devices that we can tell apart
constexpr std::string_view kFields[] = {"name",         "cpu",        "memory", "gpus",
                                        "gpuName",      "gpuProduct", "price",  "spotPrice",
                                        "gpuMemoryMiB", "arch"};

Status Wrong(const InstanceType& type, std::string_view field, std::string_view wanted) {
  return Error(Reason::kBadRequest, "instance type {:?}: {}: expected {}", type.name, field,
               wanted);
}

Result<cluster::Quantity> Positive(const InstanceType& type, const json::Value& value,
                                   std::string_view field, std::string_view wanted) {
  auto quantity = cluster::Quantity::FromJson(value);
  if (!quantity || quantity->IsNegative() || quantity->IsZero() || !quantity->IsWhole())
    return Error(Wrong(type, field, wanted));
  return quantity;
}

Result<cluster::MicroUsd> Price(const InstanceType& type, const json::Value& value,
                                std::string_view field) {
  if (value.IsNull()) return 0;
  const auto price = cluster::ParseUsd(value.IsNumber() ? value.NumberToken() : value.AsString());
  if (!price) return Error(Wrong(type, field, "dollars for an hour, such as \"1.212\""));
  return *price;
}

Status ReadShape(const json::Value& entry, InstanceType& type) {
  ASSIGN_OR_RETURN(const auto cpu, Positive(type, entry["cpu"], "cpu", "a whole number of vCPUs"));
  ASSIGN_OR_RETURN(const auto memory, Positive(type, entry["memory"], "memory", "bytes, as 64Gi"));
  type.vcpus = cpu.Units();
  type.memory_bytes = memory.Units();
  const json::Value& gpus = entry["gpus"];
  if (!gpus.IsNull() && (!gpus.Int() || *gpus.Int() < 0 || *gpus.Int() > kMaxGpus))
    return Wrong(type, "gpus", fmt::format("a number from 0 to {}", kMaxGpus));
  type.gpus = static_cast<int>(gpus.AsInt());
  type.gpu_product = entry["gpuProduct"].Str();
  type.gpu_name = entry["gpuName"].Str(ToLower(type.gpu_product));
  type.gpu_memory_mib = entry["gpuMemoryMiB"].AsInt();
  type.arch = entry["arch"].Str("amd64");
  if (type.gpus > 0 && type.gpu_product.empty())
    return Wrong(type, "gpuProduct", "the GPUs' name, as the label nvidia.com/gpu.product has it");
  return Status::Ok();
}

Result<InstanceType> ReadType(const json::Value& entry) {
  InstanceType type;
  type.name = entry["name"].Str();
  if (type.name.empty() || type.name.size() > 63)
    return Error(Reason::kBadRequest, "an instance type needs a name of up to 63 characters");
  for (const auto& [field, value] : entry.members()) {
    if (std::ranges::find(kFields, field) == std::end(kFields)) {
      return Error(Reason::kBadRequest, "instance type {:?}: there is no field {:?}; there are {}",
                   type.name, field,
                   Join(std::vector<std::string>(std::begin(kFields), std::end(kFields)), ", "));
    }
  }
  RETURN_IF_ERROR(ReadShape(entry, type));
  ASSIGN_OR_RETURN(type.on_demand, Price(type, entry["price"], "price"));
  ASSIGN_OR_RETURN(type.spot, Price(type, entry["spotPrice"], "spotPrice"));
  if (type.on_demand == 0 && type.spot == 0)
    return Error(Wrong(type, "price", "a price, or spotPrice: it is offered in no way"));
  return type;
}

}  // namespace

Result<Catalog> ReadCatalog(const std::string& yaml) {
  const Catalog& built_in = cluster::BuiltInInstanceTypes();
  if (yaml.empty()) return built_in;
  ASSIGN_OR_RETURN(const std::vector<json::Value> documents, json::ParseYaml(yaml));
  std::map<std::string, InstanceType> types;
  for (const InstanceType& type : built_in) types[type.name] = type;
  std::set<std::string> given;
  for (const json::Value& document : documents) {
    if (document.IsNull()) continue;
    if (!document["types"].IsArray())
      return Error(Reason::kBadRequest, "expected `types:` with a list of instance types");
    for (const json::Value& entry : document["types"].items()) {
      ASSIGN_OR_RETURN(InstanceType type, ReadType(entry));
      if (!given.insert(type.name).second)
        return Error(Reason::kBadRequest, "instance type {:?} is there twice", type.name);
      types[type.name] = std::move(type);
    }
  }
  if (types.size() > kMaxInstanceTypes)
    return Error(Reason::kBadRequest, "{} instance types, at most {}", types.size(),
                 kMaxInstanceTypes);
  Catalog catalog;
  for (auto& [name, type] : types) catalog.push_back(std::move(type));
  return catalog;
}

}  // namespace muster::autoscaler
