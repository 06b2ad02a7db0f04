// Services: k8s.io/kubernetes pkg/apis/core/validation ValidateService.

#include <algorithm>
#include <set>

#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

void ValidateTargetPort(const Value& port, const Path& path, FieldErrors& errors) {
  if (port.IsString()) {
    errors.Check(CheckPortName, path, port);
  } else {
    errors.Port(path, port);
  }
}

void ValidatePorts(const Value& ports, const Path& path, bool headless, FieldErrors& errors) {
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
    if (headless && port["targetPort"].IsNumber() &&
        port["targetPort"].AsInt() != port["port"].AsInt() && port["port"].AsInt() == 0) {
      errors.Invalid(place.Child("port"), port["targetPort"],
                     "must be equal to the value of 'port' when clusterIP = None");
    }
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
    } else {
      errors.Port(place.Child("nodePort"), ports.At(i)["nodePort"]);
    }
  }
}

void ValidateAddresses(const Value& spec, const Path& path, std::string_view type,
                       FieldErrors& errors) {
  const std::string_view ip = spec["clusterIP"].AsString();
  if (type == "ExternalName") {
    if (!ip.empty() && ip != "None")
      errors.Forbidden(path.Child("clusterIP"), "may not be set when `type` is 'ExternalName'");
  } else if (!ip.empty() && ip != "None" && !IsIp(ip)) {
    const Path list = path.Child("clusterIPs");
    errors.Invalid(list.Index(0), ip,
                   "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
  }
  const Path external = path.Child("externalIPs");
  for (size_t i = 0; i < spec["externalIPs"].size(); ++i)
    errors.Check(CheckIp, external.Index(i), spec["externalIPs"].At(i));
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
  const bool headless = spec["clusterIP"].AsString() == "None";
  errors.OneOf(path.Child("type"), spec["type"],
               {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
  if (spec["ports"].empty() && !headless && type != "ExternalName")
    errors.Required(path.Child("ports"));
  if (headless && (type == "LoadBalancer" || type == "NodePort")) {
    const Path list = path.Child("clusterIPs");
    errors.Invalid(list.Index(0), "None",
                   fmt::format("may not be set to 'None' for {} services", type));
  }
  if (type == "ExternalName") {
    if (spec["externalName"].AsString().empty()) {
      errors.Required(path.Child("externalName"));
    } else {
      errors.Check(CheckDns1123Subdomain, path.Child("externalName"), spec["externalName"]);
    }
  }
  ValidatePorts(spec["ports"], path.Child("ports"), headless, errors);
  ValidateNodePorts(spec["ports"], path.Child("ports"), type, errors);
  ValidateLabels(spec["selector"], path.Child("selector"), errors);
  ValidateAffinity(spec, path, errors);
  ValidateAddresses(spec, path, type, errors);
  const bool outside = type == "NodePort" || type == "LoadBalancer";
  if (!spec["externalTrafficPolicy"].AsString().empty()) {
    if (!outside && spec["externalIPs"].empty()) {
      errors.Invalid(path.Child("externalTrafficPolicy"), spec["externalTrafficPolicy"],
                     "may only be set for externally-accessible services");
    } else {
      errors.OneOf(path.Child("externalTrafficPolicy"), spec["externalTrafficPolicy"],
                   {"Cluster", "Local"});
    }
  }
  if (!spec["internalTrafficPolicy"].IsNull()) {
    errors.OneOf(path.Child("internalTrafficPolicy"), spec["internalTrafficPolicy"],
                 {"Cluster", "Local"});
  }
}

void ValidateServiceUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Value& old = before["spec"];
  const Value& now = after["spec"];
  const bool outside_before = old["type"].AsString() == "ExternalName";
  const bool outside_after = now["type"].AsString() == "ExternalName";
  const Value& old_ip = old["clusterIP"];
  if (outside_before || outside_after || old_ip.AsString().empty() || old_ip == now["clusterIP"])
    return;
  const Path path("spec");
  const Path list = path.Child("clusterIPs");
  errors.Invalid(list.Index(0), now["clusterIP"].AsString(), "may not change once set");
}

}  // namespace muster::schema
