// Tables of the kinds other than pods. Logic: k8s.io/kubernetes pkg/printers/internalversion.

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "apiserver/table/printers.h"
#include "base/strings.h"
#include "schema/conditions.h"

namespace muster::apiserver {
namespace {

constexpr size_t kMaxListedInCell = 3;  // ports and addresses of an EndpointSlice

json::Value Name(const json::Value& object) { return object["metadata"]["name"]; }

std::string Age(const json::Value& object, Time now) {
  return AgeCell(object["metadata"]["creationTimestamp"], now);
}

std::string Or(std::string_view text, std::string_view otherwise) {
  return std::string(text.empty() ? otherwise : text);
}

int64_t Count(const json::Value& value) { return static_cast<int64_t>(value.size()); }

std::string NodeStatus(const json::Value& node) {
  std::string status = "Unknown";
  const json::Value& ready = schema::FindCondition(node["status"]["conditions"], "Ready");
  if (!ready.IsNull()) status = ready["status"].AsString() == "True" ? "Ready" : "NotReady";
  if (node["spec"]["unschedulable"].AsBool()) status += ",SchedulingDisabled";
  return status;
}

std::string NodeRoles(const json::Value& node) {
  constexpr std::string_view kRolePrefix = "node-role.kubernetes.io/";
  std::vector<std::string> roles;
  for (const auto& [label, value] : node["metadata"]["labels"].members()) {
    if (label.starts_with(kRolePrefix) && label.size() > kRolePrefix.size()) {
      roles.push_back(label.substr(kRolePrefix.size()));
    } else if (label == "kubernetes.io/role" && !value.AsString().empty()) {
      roles.push_back(value.Str());
    }
  }
  std::ranges::sort(roles);
  roles.erase(std::unique(roles.begin(), roles.end()), roles.end());
  return OrNone(Join(roles, ","));
}

std::string NodeAddress(const json::Value& node, std::string_view type) {
  for (const json::Value& address : node["status"]["addresses"].items()) {
    if (address["type"].AsString() == type) return address["address"].Str();
  }
  return "<none>";
}

std::string ExternalAddress(const json::Value& service) {
  const std::string_view type = service["spec"]["type"].AsString();
  if (type == "ExternalName") return service["spec"]["externalName"].Str();
  std::vector<std::string> addresses;
  for (const json::Value& ingress : service["status"]["loadBalancer"]["ingress"].items()) {
    addresses.push_back(ingress["ip"].Str(ingress["hostname"].AsString()));
  }
  const std::vector<std::string> external = json::ToStrings(service["spec"]["externalIPs"]);
  if (type == "LoadBalancer") {
    addresses.insert(addresses.end(), external.begin(), external.end());
    return Or(Join(addresses, ","), "<pending>");
  }
  return OrNone(Join(external, ","));
}

std::string ServicePorts(const json::Value& service) {
  std::vector<std::string> ports;
  for (const json::Value& port : service["spec"]["ports"].items()) {
    const std::string_view protocol = port["protocol"].AsString("TCP");
    if (const int64_t node_port = port["nodePort"].AsInt(); node_port != 0) {
      ports.push_back(fmt::format("{}:{}/{}", port["port"].AsInt(), node_port, protocol));
    } else {
      ports.push_back(fmt::format("{}/{}", port["port"].AsInt(), protocol));
    }
  }
  return OrNone(Join(ports, ","));
}

std::string FirstFew(const std::vector<std::string>& texts) {
  if (texts.empty()) return "<unset>";
  if (texts.size() <= kMaxListedInCell) return Join(texts, ",");
  const std::vector<std::string> few(texts.begin(), texts.begin() + kMaxListedInCell);
  return fmt::format("{} + {} more...", Join(few, ","), texts.size() - kMaxListedInCell);
}

std::string EventSource(const json::Value& event) {
  std::string component = event["source"]["component"].Str();
  if (component.empty()) component = event["reportingComponent"].Str();
  std::string host = event["source"]["host"].Str();
  if (host.empty()) host = event["reportingInstance"].Str();
  return host.empty() || event["source"]["host"].AsString().empty() ? component
                                                                    : component + ", " + host;
}

}  // namespace

std::string OrNone(std::string_view text) { return Or(text, "<none>"); }

std::string FormatLabels(const json::Value& labels) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : labels.members())
    pairs.push_back(fmt::format("{}={}", key, value.AsString()));
  std::ranges::sort(pairs);
  return OrNone(Join(pairs, ","));
}

json::Value NameCell(const json::Value& object) { return Name(object); }

std::string AgeOf(const json::Value& object, Time now) { return Age(object, now); }

std::string AccessModes(const json::Value& modes) {
  std::vector<std::string> texts;
  for (const json::Value& mode : modes.items()) {
    const std::string_view name = mode.AsString();
    if (name == "ReadWriteOnce") texts.emplace_back("RWO");
    if (name == "ReadOnlyMany") texts.emplace_back("ROX");
    if (name == "ReadWriteMany") texts.emplace_back("RWX");
    if (name == "ReadWriteOncePod") texts.emplace_back("RWOP");
  }
  return Join(texts, ",");
}

json::Array NodeCells(const json::Value& node, Time now) {
  const json::Value& info = node["status"]["nodeInfo"];
  return {Name(node),
          NodeStatus(node),
          NodeRoles(node),
          Age(node, now),
          info["kubeletVersion"].Str(),
          NodeAddress(node, "InternalIP"),
          NodeAddress(node, "ExternalIP"),
          Or(info["osImage"].AsString(), "<unknown>"),
          Or(info["kernelVersion"].AsString(), "<unknown>"),
          Or(info["containerRuntimeVersion"].AsString(), "<unknown>")};
}

json::Array NamespaceCells(const json::Value& ns, Time now) {
  return {Name(ns), ns["status"]["phase"].Str(), Age(ns, now)};
}

json::Array ServiceCells(const json::Value& service, Time now) {
  const json::Value& spec = service["spec"];
  return {Name(service),
          spec["type"].Str("ClusterIP"),
          OrNone(spec["clusterIP"].AsString()),
          ExternalAddress(service),
          ServicePorts(service),
          Age(service, now),
          FormatLabels(spec["selector"])};
}

json::Array ConfigMapCells(const json::Value& config_map, Time now) {
  return {Name(config_map), Count(config_map["data"]) + Count(config_map["binaryData"]),
          Age(config_map, now)};
}

json::Array SecretCells(const json::Value& secret, Time now) {
  return {Name(secret), secret["type"].Str(), Count(secret["data"]), Age(secret, now)};
}

json::Array ServiceAccountCells(const json::Value& account, Time now) {
  return {Name(account), Count(account["secrets"]), Age(account, now)};
}

json::Array PersistentVolumeClaimCells(const json::Value& claim, Time now) {
  std::string phase = claim["status"]["phase"].Str();
  if (claim["metadata"].Has("deletionTimestamp")) phase = "Terminating";
  const json::Value& spec = claim["spec"];
  const bool bound = !spec["volumeName"].AsString().empty();
  return {Name(claim),
          phase,
          spec["volumeName"].Str(),
          bound ? claim["status"]["capacity"]["storage"].Str() : "",
          bound ? AccessModes(claim["status"]["accessModes"]) : "",
          spec["storageClassName"].Str(),
          Or(spec["volumeAttributesClassName"].AsString(), "<unset>"),
          Age(claim, now),
          Or(spec["volumeMode"].AsString(), "<unset>")};
}

json::Array EventCells(const json::Value& event, Time now) {
  std::string first = AgeCell(event["firstTimestamp"], now);
  if (event["firstTimestamp"].IsNull()) first = AgeCell(event["eventTime"], now);
  std::string last = event["lastTimestamp"].IsNull() ? first : AgeCell(event["lastTimestamp"], now);
  int64_t count = std::max<int64_t>(event["count"].AsInt(), 1);
  if (!event["series"].IsNull()) {
    last = AgeCell(event["series"]["lastObservedTime"], now);
    count = event["series"]["count"].AsInt();
  }
  const json::Value& involved = event["involvedObject"];
  std::string object = ToLower(involved["kind"].AsString());
  if (!involved["name"].AsString().empty()) object += "/" + involved["name"].Str();
  return {last,
          event["type"].Str(),
          event["reason"].Str(),
          object,
          involved["fieldPath"].Str(),
          EventSource(event),
          std::string(Trim(event["message"].AsString())),
          first,
          count,
          Name(event)};
}

json::Array EndpointsCells(const json::Value& endpoints, Time now) {
  std::vector<std::string> shown;
  const auto show = [&](const json::Value& subset, const std::string& port) {
    for (const json::Value& address : subset["addresses"].items()) {
      const std::string ip = address["ip"].Str();
      const bool bracket = !port.empty() && ip.find(':') != std::string::npos;
      shown.push_back((bracket ? "[" + ip + "]" : ip) + port);
    }
  };
  for (const json::Value& subset : endpoints["subsets"].items()) {
    if (subset["ports"].empty()) show(subset, "");
    for (const json::Value& port : subset["ports"].items())
      show(subset, fmt::format(":{}", port["port"].AsInt()));
  }
  std::string text = shown.empty() ? "" : FirstFew(shown);
  if (endpoints["subsets"].empty()) text = "<none>";
  return {Name(endpoints), std::move(text), Age(endpoints, now)};
}

json::Array EndpointSliceCells(const json::Value& slice, Time now) {
  std::vector<std::string> ports, addresses;
  for (const json::Value& port : slice["ports"].items()) {
    ports.push_back(port["port"].IsNull() ? "*" : std::to_string(port["port"].AsInt()));
  }
  for (const json::Value& endpoint : slice["endpoints"].items()) {
    for (const json::Value& address : endpoint["addresses"].items())
      addresses.push_back(address.Str());
  }
  return {Name(slice), slice["addressType"].Str(), FirstFew(ports), FirstFew(addresses),
          Age(slice, now)};
}

json::Array LeaseCells(const json::Value& lease, Time now) {
  return {Name(lease), lease["spec"]["holderIdentity"].Str(), Age(lease, now)};
}

json::Array PriorityClassCells(const json::Value& priority_class, Time now) {
  return {Name(priority_class), priority_class["value"].AsInt(),
          priority_class["globalDefault"].AsBool(), Age(priority_class, now),
          priority_class["preemptionPolicy"].Str("PreemptLowerPriority")};
}

json::Array CustomResourceDefinitionCells(const json::Value& crd, Time) {
  return {Name(crd), crd["metadata"]["creationTimestamp"].Str()};
}

}  // namespace muster::apiserver
