#include "gpu/time_slicing.h"

#include <fmt/core.h>

#include <vector>

#include "gpu/inventory.h"
#include "json/parse.h"
#include "json/write.h"

namespace muster::gpu {
namespace {

constexpr const char* kPath = "sharing.timeSlicing";

Result<bool> Flag(const json::Value& settings, const char* name) {
  const json::Value& flag = settings[name];
  if (flag.IsNull() || flag.IsBool()) return flag.AsBool();
  return Error(Reason::kInvalid, "{}.{}: expected true or false, got {}", kPath, name,
               json::Write(flag));
}

// The plugin takes names without its domain, too.
std::string FullName(std::string_view name) {
  return name.find('/') == std::string_view::npos ? fmt::format("nvidia.com/{}", name)
                                                  : std::string(name);
}

}  // namespace

Result<TimeSlicing> ParseTimeSlicing(std::string_view config_yaml) {
  ASSIGN_OR_RETURN(const std::vector<json::Value> documents, json::ParseYaml(config_yaml));
  if (documents.size() != 1 || !documents[0].IsObject())
    return Error(Reason::kInvalid, "expected one object, `version: v1` and what it shares");
  const json::Value& config = documents[0];
  if (config["version"].AsString() != "v1")
    return Error(Reason::kInvalid, "version: expected v1, got {}", json::Write(config["version"]));
  if (!config["sharing"]["mps"].IsNull())
    return Error(Reason::kInvalid, "sharing.mps: MPS is not offered, only sharing.timeSlicing");
  const json::Value& settings = config["sharing"]["timeSlicing"];
  TimeSlicing out;
  if (settings.IsNull()) return out;
  ASSIGN_OR_RETURN(out.renamed, Flag(settings, "renameByDefault"));
  ASSIGN_OR_RETURN(out.one_each, Flag(settings, "failRequestsGreaterThanOne"));
  const json::Array& resources = settings["resources"].items();
  if (resources.empty())
    return Error(Reason::kInvalid, "{}.resources: expected nvidia.com/gpu and its replicas", kPath);
  for (size_t i = 0; i < resources.size(); ++i) {
    if (FullName(resources[i]["name"].AsString()) != kGpuResource) continue;
    const json::Value& replicas = resources[i]["replicas"];
    out.replicas = replicas.AsInt();
    if (out.replicas >= 2) continue;
    return Error(Reason::kInvalid,
                 "{}.resources[{}].replicas: expected a whole number above 1, got {}", kPath, i,
                 json::Write(replicas));
  }
  if (out.replicas == 1) return TimeSlicing();  // of other resources
  return out;
}

std::string ShareName(std::string_view gpu, int64_t number) {
  return fmt::format("{}::{}", gpu, number);
}

}  // namespace muster::gpu
