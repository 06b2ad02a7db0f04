#include "controllers/disruption/custom_scale.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace muster::controllers {
namespace {

constexpr char kScale[] = "scale";
constexpr Duration kDiscoveryWait = seconds(1);

std::string GroupOf(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? "" : std::string(api_version.substr(0, slash));
}

std::string PathOfKinds(const client::Resource& resource) {
  return resource.group.empty() ? fmt::format("/api/{}", resource.version)
                                : fmt::format("/apis/{}/{}", resource.group, resource.version);
}

bool HasScale(const json::Value& kinds, const std::string& plural) {
  const auto& resources = kinds["resources"].items();
  return std::any_of(resources.begin(), resources.end(), [&](const json::Value& resource) {
    return resource["name"].AsString() == plural + "/" + kScale;
  });
}

WantedScale Failed(std::string error) {
  WantedScale scale;
  scale.error = std::move(error);
  return scale;
}

WantedScale Pending() {
  WantedScale scale;
  scale.is_pending = true;
  return scale;
}

}  // namespace

WantedScale NoController(const json::Value& pod) {
  return Failed(
      fmt::format("found no controllers for pod \"{}\"", pod["metadata"]["name"].AsString()));
}

WantedScale CustomScales::Of(const json::Value& pod, const json::Value& controller) {
  const std::string_view version = controller["apiVersion"].AsString();
  const std::string_view kind_name = controller["kind"].AsString();
  const client::ServedKind* kind = discovery_.Find(GroupOf(version), kind_name);
  if (kind == nullptr) {
    if (discovery_.Synced())
      return Failed(
          fmt::format("no matches for kind \"{}\" in version \"{}\"", kind_name, version));
    kinds_missing_ = true;
    return Pending();
  }
  const std::string name = controller["name"].Str();
  const std::string ns = kind->namespaced ? pod["metadata"]["namespace"].Str() : "";
  const client::Target target{kind->resource, ns, name, kScale};
  const json::Value* scale = Answer(client::ApiClient::PathOf(target), target, "");
  if (scale == nullptr) return Pending();
  if (client::IsFailure(*scale)) {
    return (*scale)["reason"].AsString() == "NotFound" ? NotFound(pod, *kind)
                                                       : Failed((*scale)["message"].Str());
  }
  const json::Value& uid = (*scale)["metadata"]["uid"];
  if (uid != controller["uid"]) return NoController(pod);
  WantedScale wanted;
  wanted.uid = uid.Str();
  wanted.replicas = (*scale)["spec"]["replicas"].AsInt();
  return wanted;
}

// Either the object is gone, or its kind has no scale.
WantedScale CustomScales::NotFound(const json::Value& pod, const client::ServedKind& kind) {
  const std::string path = PathOfKinds(kind.resource);
  const json::Value* kinds = Answer(path, {}, path);
  if (kinds == nullptr) return Pending();
  if (client::IsFailure(*kinds)) return Failed((*kinds)["message"].Str());
  const client::Resource& resource = kind.resource;
  if (HasScale(*kinds, resource.plural)) return NoController(pod);
  return Failed(fmt::format("{}{}{} does not implement the scale subresource", resource.plural,
                            resource.group.empty() ? "" : ".", resource.group));
}

const json::Value* CustomScales::Answer(const std::string& name, client::Target target,
                                        std::string path) {
  client::Probe& probe = probes_[name];
  probe.name = name;
  probe.target = std::move(target);
  probe.path = std::move(path);
  probe.failures_too = true;
  const auto known = observations_.find(name);
  if (known != observations_.end()) return &known->second;
  is_missing_ = true;
  return nullptr;
}

void CustomScales::Ask(client::Reconciled& out) const {
  if (kinds_missing_) out.LookAgainAt(now_ + kDiscoveryWait);
  if (!is_missing_) return;
  for (const auto& [name, probe] : probes_) out.Ask(probe);
}

}  // namespace muster::controllers
