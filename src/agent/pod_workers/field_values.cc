#include "agent/pod_workers/field_values.h"

#include "base/strings.h"
#include "cluster/quantity.h"
#include "json/write.h"

namespace muster::agent {
namespace {

// "metadata.labels['a/b']" with prefix "metadata.labels" -> "a/b"; nullopt otherwise.
std::optional<std::string_view> Subscript(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return std::nullopt;
  path.remove_prefix(prefix.size());
  if (path.size() < 4 || !path.starts_with("['") || !path.ends_with("']")) return std::nullopt;
  return path.substr(2, path.size() - 4);
}

// key="value" lines, as downward API files have them.
std::string FormatMap(const json::Value& map) {
  std::map<std::string, std::string> sorted;
  for (const json::Member& member : map.members()) sorted[member.first] = member.second.Str();
  std::string out;
  for (const auto& [key, value] : sorted) {
    if (!out.empty()) out += '\n';
    out += key + "=";
    json::AppendString(out, value);
  }
  return out;
}

json::Value ContainerNamed(const json::Value& pod, std::string_view name) {
  for (const json::Value& container : AllContainers(pod)) {
    if (container["name"].AsString() == name) return container;
  }
  return {};
}

// value / divisor, rounded up.
std::string Divide(const cluster::Quantity& value, const cluster::Quantity& divisor, bool is_cpu) {
  const int64_t amount = is_cpu ? value.Milli() : value.Units();
  const int64_t unit = is_cpu ? divisor.Milli() : divisor.Units();
  return std::to_string(unit <= 0 ? amount : (amount + unit - 1) / unit);
}

}  // namespace

Result<std::string> FieldValue(const json::Value& pod, std::string_view path,
                               const PodFacts& facts) {
  if (const auto key = Subscript(path, "metadata.labels"))
    return pod["metadata"]["labels"][*key].Str();
  if (const auto key = Subscript(path, "metadata.annotations"))
    return pod["metadata"]["annotations"][*key].Str();
  if (path == "metadata.labels") return FormatMap(pod["metadata"]["labels"]);
  if (path == "metadata.annotations") return FormatMap(pod["metadata"]["annotations"]);
  if (path == "metadata.name") return pod["metadata"]["name"].Str();
  if (path == "metadata.namespace") return pod["metadata"]["namespace"].Str();
  if (path == "metadata.uid") return pod["metadata"]["uid"].Str();
  if (path == "spec.nodeName") return facts.node_name;
  if (path == "spec.serviceAccountName") return pod["spec"]["serviceAccountName"].Str("default");
  if (path == "status.hostIP" || path == "status.hostIPs") return facts.host_ip;
  if (path == "status.podIP" || path == "status.podIPs") return facts.pod_ip;
  return Error(Reason::kInvalid, "fieldRef: unsupported fieldPath {:?}", path);
}

Result<std::string> ResourceValue(const json::Value& pod, const json::Value& container,
                                  const json::Value& reference, const PodFacts& facts) {
  const std::string name = reference["containerName"].Str();
  const json::Value of = name.empty() ? container : ContainerNamed(pod, name);
  if (of.IsNull())
    return Error(Reason::kInvalid, "resourceFieldRef: there is no container {:?}", name);
  const std::string resource = reference["resource"].Str();
  const size_t dot = resource.find('.');
  const std::string list = resource.substr(0, dot);
  if (dot == std::string::npos || (list != "limits" && list != "requests")) {
    return Error(Reason::kInvalid, "resourceFieldRef: unsupported resource {:?}", resource);
  }
  const std::string what = resource.substr(dot + 1);
  json::Value amount = of["resources"][list][what];
  // Without a limit the container may use the whole node.
  if (amount.IsNull() && list == "limits") amount = facts.node_allocatable[what];
  ASSIGN_OR_RETURN(const cluster::Quantity value, cluster::Quantity::FromJson(amount));
  const json::Value divisor = reference["divisor"];
  const bool given = !divisor.IsNull() && divisor.AsString() != "0" && divisor.AsString() != "";
  ASSIGN_OR_RETURN(const cluster::Quantity unit,
                   cluster::Quantity::FromJson(given ? divisor : json::Value("1")));
  return Divide(value, unit, what == "cpu");
}

}  // namespace muster::agent
