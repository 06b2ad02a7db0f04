#include "controllers/statefulset/stateful_pods.h"

#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/history/history.h"
#include "controllers/pods/pod_template.h"

namespace muster::controllers {
namespace {

constexpr std::string_view kPodNameLabel = "statefulset.kubernetes.io/pod-name";
constexpr std::string_view kPodIndexLabel = "apps.kubernetes.io/pod-index";

std::string ClaimName(const json::Value& claim_template, const std::string& pod) {
  return fmt::format("{}-{}", claim_template["metadata"]["name"].AsString(), pod);
}

// Claims take the place of the template's volumes of their names.
json::Value VolumesOf(const json::Value& set, const json::Value& spec, const std::string& pod) {
  json::Array volumes;
  const json::Array& claims = set["spec"]["volumeClaimTemplates"].items();
  for (const json::Value& claim : claims) {
    volumes.push_back(
        json::Obj({{"name", claim["metadata"]["name"]},
                   {"persistentVolumeClaim", json::Obj({{"claimName", ClaimName(claim, pod)}})}}));
  }
  const size_t count = volumes.size();
  for (const json::Value& volume : spec["volumes"].items()) {
    bool replaced = false;
    for (size_t i = 0; i < count; ++i) replaced |= volumes[i]["name"] == volume["name"];
    if (!replaced) volumes.push_back(volume);
  }
  return json::Value(std::move(volumes));
}

json::Value ReferenceTo(const json::Value& owner, std::string_view kind,
                        std::string_view api_version) {
  return json::Obj({{"apiVersion", api_version},
                    {"kind", kind},
                    {"name", owner["metadata"]["name"]},
                    {"uid", owner["metadata"]["uid"]}});
}

}  // namespace

std::string OrdinalName(const json::Value& set, int64_t ordinal) {
  return fmt::format("{}-{}", set["metadata"]["name"].AsString(), ordinal);
}

std::optional<int64_t> OrdinalOf(const json::Value& set, const json::Value& pod) {
  const std::string_view name = pod["metadata"]["name"].AsString();
  const size_t hyphen = name.rfind('-');
  if (hyphen == name.npos || name.substr(0, hyphen) != set["metadata"]["name"].AsString())
    return std::nullopt;
  const std::optional<int64_t> ordinal = ParseInt(name.substr(hyphen + 1));
  if (!ordinal.has_value() || OrdinalName(set, *ordinal) != name) return std::nullopt;
  return ordinal;
}

json::Value MakeStatefulPod(const json::Value& set, const json::Value& pod_template,
                            const std::string& revision, int64_t ordinal) {
  const std::string name = OrdinalName(set, ordinal);
  json::Value pod = PodFromTemplate(set, pod_template, name);
  for (const auto& [label, value] :
       {std::pair(kPodNameLabel, name), std::pair(kPodIndexLabel, fmt::format("{}", ordinal)),
        std::pair(kRevisionHashLabel, revision)}) {
    pod = std::move(pod).SetPath({"metadata", "labels", label}, value);
  }
  pod = std::move(pod).SetPath({"spec", "hostname"}, name);
  if (!set["spec"]["serviceName"].AsString().empty())
    pod = std::move(pod).SetPath({"spec", "subdomain"}, set["spec"]["serviceName"]);
  json::Value volumes = VolumesOf(set, pod_template["spec"], name);
  if (!volumes.empty()) pod = std::move(pod).SetPath({"spec", "volumes"}, std::move(volumes));
  return pod;
}

std::vector<json::Value> MakeClaims(const json::Value& set, int64_t ordinal) {
  std::vector<json::Value> claims;
  const std::string pod = OrdinalName(set, ordinal);
  for (const json::Value& claim_template : set["spec"]["volumeClaimTemplates"].items()) {
    json::Value labels = claim_template["metadata"]["labels"];
    for (const auto& [label, value] : set["spec"]["selector"]["matchLabels"].members())
      labels = std::move(labels).Set(label, value);
    json::Value metadata = json::Obj(
        {{"name", ClaimName(claim_template, pod)}, {"namespace", set["metadata"]["namespace"]}});
    if (!labels.empty()) metadata = std::move(metadata).Set("labels", std::move(labels));
    const json::Value& annotations = claim_template["metadata"]["annotations"];
    if (!annotations.empty()) metadata = std::move(metadata).Set("annotations", annotations);
    claims.push_back(json::Obj({{"apiVersion", "v1"},
                                {"kind", "PersistentVolumeClaim"},
                                {"metadata", std::move(metadata)},
                                {"spec", claim_template["spec"]}}));
    json::Value& claim = claims.back();
    json::Value owners = ClaimOwners(set, claim, nullptr, false);
    if (!owners.empty())
      claim = std::move(claim).SetPath({"metadata", "ownerReferences"}, std::move(owners));
  }
  return claims;
}

json::Value ClaimOwners(const json::Value& set, const json::Value& claim, const json::Value& pod,
                        bool condemned) {
  const json::Value& policy = set["spec"]["persistentVolumeClaimRetentionPolicy"];
  const bool with_set = policy["whenDeleted"].AsString() == "Delete";
  const bool with_pod = condemned && policy["whenScaled"].AsString() == "Delete" && !pod.IsNull();
  json::Array owners;
  for (const json::Value& owner : claim["metadata"]["ownerReferences"].items()) {
    const std::string_view kind = owner["kind"].AsString();
    const bool ours = owner["uid"] == set["metadata"]["uid"] ||
                      (kind == "Pod" && claim["metadata"]["name"].AsString().ends_with(
                                            fmt::format("-{}", owner["name"].AsString())));
    if (!ours) owners.push_back(owner);
  }
  if (with_pod) {
    owners.push_back(ReferenceTo(pod, "Pod", "v1"));
  } else if (with_set) {
    owners.push_back(ReferenceTo(set, "StatefulSet", "apps/v1"));
  }
  return json::Value(std::move(owners));
}

}  // namespace muster::controllers
