// Services: k8s.io/kubernetes pkg/apis/core/validation ValidateService.

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::string_view kHeadless = "None";
constexpr int64_t kFirstNodePort = 30000;
constexpr int64_t kLastNodePort = 32767;

void ValidateTargetPort(const Value& port, const Path& path, FieldErrors& errors) {
  if (port.IsString()) {
    errors.Check(CheckPortName, path, port);
  } else {
    errors.Port(path, port);
  }
}

void ValidatePorts(const Value& ports, const Path& path, FieldErrors& errors) {
  std::set<std::string> names;
  std::set<std::pair<int64_t, std::string>> numbers;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Value& port = ports.At(i);
    const Path place = path.Index(i);
    const std::string name = port["name"].Str();
    if (ports.size() > 1 && name.empty()) {
      errors.Required(place.Child("name"));
    } else if (!name.empty() && errors.Check(CheckDns1123Label, place.Child("name"), name) &&
               !names.insert(name).second) {
      errors.Duplicate(place.Child("name"), name);
    }
    errors.Port(place.Child("port"), port["port"]);
    errors.OneOf(place.Child("protocol"), port["protocol"], {"SCTP", "TCP", "UDP"});
    ValidateTargetPort(port["targetPort"], place.Child("targetPort"), errors);
    if (!port["appProtocol"].IsNull())
      errors.Check(CheckQualifiedName, place.Child("appProtocol"), port["appProtocol"]);
    if (!numbers.insert({port["port"].AsInt(), port["protocol"].Str()}).second) {
      errors.Duplicate(place, json::Obj({{"port", port["port"]}, {"protocol", port["protocol"]}}));
    }
  }
}

void ValidateNodePorts(const Value& ports, const Path& path, std::string_view type,
                       FieldErrors& errors) {
  std::set<std::pair<int64_t, std::string>> seen;
  for (size_t i = 0; i < ports.size(); ++i) {
    const int64_t node_port = ports.At(i)["nodePort"].AsInt();
    if (node_port == 0) continue;
    const Path place = path.Index(i);
    if (type == "ClusterIP") {
      errors.Forbidden(place.Child("nodePort"), "may not be used when `type` is 'ClusterIP'");
    } else if (!seen.insert({node_port, ports.At(i)["protocol"].Str()}).second) {
      errors.Duplicate(place.Child("nodePort"), node_port);
    } else if (node_port < kFirstNodePort || node_port > kLastNodePort) {
      errors.Invalid(place.Child("nodePort"), node_port,
                     fmt::format("provided port is not in the valid range. The range of valid "
                                 "ports is {}-{}",
                                 kFirstNodePort, kLastNodePort));
    }
  }
}

// clusterIP, clusterIPs and ipFamilies.
void ValidateAddresses(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& ips = spec["clusterIPs"];
  const Path list = path.Child("clusterIPs");
  if (!spec["clusterIP"].AsString().empty() && !(ips.At(0) == spec["clusterIP"]))
    errors.Invalid(list, ips, "first value must match `clusterIP`");
  const Path families = path.Child("ipFamilies");
  std::set<std::string> seen;
  for (size_t i = 0; i < spec["ipFamilies"].size(); ++i) {
    const Value& family = spec["ipFamilies"].At(i);
    errors.OneOf(families.Index(i), family, {"IPv4", "IPv6"});
    if (!seen.insert(family.Str()).second) errors.Duplicate(families.Index(i), family);
  }
  if (!spec["ipFamilyPolicy"].IsNull()) {
    errors.OneOf(path.Child("ipFamilyPolicy"), spec["ipFamilyPolicy"],
                 {"PreferDualStack", "RequireDualStack", "SingleStack"});
  }
  bool wrong = false;
  size_t v4 = 0;
  for (size_t i = 0; i < ips.size(); ++i) {
    if (i == 0 && ips.At(0).AsString() == kHeadless) {
      if (ips.size() > 1) errors.Invalid(list, ips, "'None' must be the first and only value");
      wrong = wrong || ips.size() > 1;
      continue;
    }
    wrong = !errors.Check(CheckIp, list.Index(i), ips.At(i)) || wrong;
    v4 += IsIpv4(ips.At(i).AsString()) ? 1 : 0;
  }
  if (wrong || ips.size() < 2) return;
  if (ips.size() > 2) errors.Invalid(list, ips, "may only hold up to 2 values");
  if (ips.size() != 2 || v4 != 1)
    errors.Invalid(list, ips, "may specify no more than one IP for each IP family");
}

void ValidateExternalName(const Value& spec, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kNotHere = "may not be set for ExternalName services";
  for (const char* key : {"clusterIPs", "ipFamilies"}) {
    if (!spec[key].empty()) errors.Forbidden(path.Child(key), kNotHere);
  }
  if (!spec["ipFamilyPolicy"].IsNull()) errors.Forbidden(path.Child("ipFamilyPolicy"), kNotHere);
  std::string_view name = spec["externalName"].AsString();
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) return errors.Required(path.Child("externalName"));
  errors.Check(CheckDns1123Subdomain, path.Child("externalName"), name);
}

// What only services of type LoadBalancer have.
void ValidateLoadBalancer(const Value& spec, const Path& path, bool balanced, FieldErrors& errors) {
  constexpr std::string_view kOnlyThere = "may only be used when `type` is 'LoadBalancer'";
  const Path ranges = path.Child("LoadBalancerSourceRanges");
  const Value& sources = spec["loadBalancerSourceRanges"];
  if (!balanced && !sources.empty()) errors.Forbidden(ranges, kOnlyThere);
  for (size_t i = 0; i < sources.size(); ++i)
    errors.Check(CheckCidr, ranges.Index(i), Trim(sources.At(i).AsString()));
  for (const char* key : {"allocateLoadBalancerNodePorts", "loadBalancerClass"}) {
    if (!balanced && !spec[key].IsNull()) errors.Forbidden(path.Child(key), kOnlyThere);
  }
  if (balanced && !spec["loadBalancerClass"].IsNull())
    errors.Check(CheckQualifiedName, path.Child("loadBalancerClass"), spec["loadBalancerClass"]);
}

bool NeedsHealthPort(const Value& spec) {
  return spec["type"].AsString() == "LoadBalancer" &&
         spec["externalTrafficPolicy"].AsString() == "Local";
}

void ValidateTraffic(const Value& spec, const Path& path, FieldErrors& errors) {
  const std::string_view type = spec["type"].AsString();
  const std::string_view policy = spec["externalTrafficPolicy"].AsString();
  const bool outside = type == "NodePort" || type == "LoadBalancer" || !spec["externalIPs"].empty();
  if (!policy.empty() && !outside) {
    errors.Invalid(path.Child("externalTrafficPolicy"), policy,
                   "may only be set for externally-accessible services");
  } else if (!policy.empty()) {
    errors.OneOf(path.Child("externalTrafficPolicy"), policy, {"Cluster", "Local"});
  }
  if (spec["healthCheckNodePort"].AsInt() != 0 && !NeedsHealthPort(spec)) {
    errors.Invalid(
        path.Child("healthCheckNodePort"), spec["healthCheckNodePort"],
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
  }
  if (!spec["internalTrafficPolicy"].IsNull()) {
    errors.OneOf(path.Child("internalTrafficPolicy"), spec["internalTrafficPolicy"],
                 {"Cluster", "Local"});
  }
  if (!spec["trafficDistribution"].IsNull())
    errors.OneOf(path.Child("trafficDistribution"), spec["trafficDistribution"],
                 {"PreferClose", "PreferSameZone", "PreferSameNode"});
}

void ValidateAffinity(const Value& spec, const Path& path, FieldErrors& errors) {
  constexpr int64_t kMaxAffinitySeconds = 86400;
  errors.OneOf(path.Child("sessionAffinity"), spec["sessionAffinity"], {"ClientIP", "None"});
  if (spec["sessionAffinity"].AsString() != "ClientIP") {
    if (!spec["sessionAffinityConfig"].IsNull()) {
      errors.Forbidden(path.Child("sessionAffinityConfig"),
                       "must not be set when session affinity is None");
    }
    return;
  }
  const int64_t timeout =
      spec.Path({"sessionAffinityConfig", "clientIP", "timeoutSeconds"}).AsInt();
  if (timeout <= 0 || timeout > kMaxAffinitySeconds) {
    const Path config = path.Child("sessionAffinityConfig");
    const Path client = config.Child("clientIP");
    errors.Invalid(client.Child("timeoutSeconds"), timeout,
                   "must be greater than 0 and less than 86400");
  }
}

}  // namespace

void ValidateService(const Value& service, FieldErrors& errors) {
  const Value& spec = service["spec"];
  const Path path("spec");
  const std::string_view type = spec["type"].AsString();
  const bool headless = spec["clusterIP"].AsString() == kHeadless;
  errors.OneOf(path.Child("type"), spec["type"],
               {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
  if (spec["ports"].empty() && !headless && type != "ExternalName")
    errors.Required(path.Child("ports"));
  const bool headless_list =
      spec["clusterIPs"].size() == 1 && spec["clusterIPs"].At(0).AsString() == kHeadless;
  if (headless_list && (type == "LoadBalancer" || type == "NodePort")) {
    const Path list = path.Child("clusterIPs");
    errors.Invalid(list.Index(0), kHeadless,
                   fmt::format("may not be set to 'None' for {} services", type));
  }
  if (type == "ExternalName") {
    ValidateExternalName(spec, path, errors);
  } else {
    ValidateAddresses(spec, path, errors);
  }
  ValidatePorts(spec["ports"], path.Child("ports"), errors);
  ValidateNodePorts(spec["ports"], path.Child("ports"), type, errors);
  ValidateLabels(spec["selector"], path.Child("selector"), errors);
  ValidateAffinity(spec, path, errors);
  const Path external = path.Child("externalIPs");
  for (size_t i = 0; i < spec["externalIPs"].size(); ++i) {
    const Value& ip = spec["externalIPs"].At(i);
    if (errors.Check(CheckIp, external.Index(i), ip))
      errors.Check(CheckOrdinaryIp, external.Index(i), ip);
  }
  ValidateLoadBalancer(spec, path, type == "LoadBalancer", errors);
  ValidateTraffic(spec, path, errors);
}

void ValidateServiceUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Value& old = before["spec"];
  const Value& now = after["spec"];
  if (old["type"].AsString() == "ExternalName" || now["type"].AsString() == "ExternalName") return;
  const Path path("spec");
  if (NeedsHealthPort(old) && NeedsHealthPort(now) &&
      old["healthCheckNodePort"].AsInt() != now["healthCheckNodePort"].AsInt())
    errors.Forbidden(path.Child("healthCheckNodePort"), "field is immutable");
  const Path list = path.Child("clusterIPs");
  const Value& old_ip = old["clusterIPs"].At(0);
  if (!old_ip.IsNull() && !(old_ip == now["clusterIPs"].At(0)))
    errors.Invalid(list.Index(0), now["clusterIPs"], "may not change once set");
}

void ValidateServiceStatusUpdate(const Value&, const Value& after, FieldErrors& errors) {
  const Path status("status");
  const Path balancer = status.Child("loadBalancer");
  const Path list = balancer.Child("ingress");
  const Value& ingress = after["status"]["loadBalancer"]["ingress"];
  if (ingress.empty()) return;
  if (after["spec"]["type"].AsString() != "LoadBalancer")
    return errors.Forbidden(list, "may only be used when `spec.type` is 'LoadBalancer'");
  for (size_t i = 0; i < ingress.size(); ++i) {
    const Path place = list.Index(i);
    if (!ingress.At(i)["ip"].AsString().empty())
      errors.Check(CheckIp, place.Child("ip"), ingress.At(i)["ip"]);
    if (!ingress.At(i)["hostname"].AsString().empty())
      errors.Check(CheckDns1123Subdomain, place.Child("hostname"), ingress.At(i)["hostname"]);
  }
}

}  // namespace muster::schema
