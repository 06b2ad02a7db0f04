// k8s.io/kubernetes pkg/apis/core/v1/defaults.go SetDefaults_Service. Addresses and families are
// given by the API server when the service is made.

#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"

namespace muster::schema {
namespace {

using json::Obj;
using json::Value;

constexpr int kDefaultAffinitySeconds = 3 * 60 * 60;

Value DefaultPort(Value port) {
  SetDefault(port, "protocol", "TCP");
  const Value target = port["targetPort"];
  if (IsUnset(target) || (target.IsNumber() && target.AsInt() == 0)) {
    const int64_t number = port["port"].AsInt();
    port = std::move(port).Set("targetPort", number);
  }
  return port;
}

}  // namespace

Value DefaultService(Value service) {
  Value spec = service["spec"];
  EditItems(spec, "ports", DefaultPort);
  SetDefault(spec, "sessionAffinity", "None");
  SetDefault(spec, "type", "ClusterIP");
  const std::string type = spec["type"].Str();
  // Whoever switches affinity off need not know what was configured for it.
  if (spec["sessionAffinity"].AsString() == "None") spec = spec.Remove("sessionAffinityConfig");
  if (spec["sessionAffinity"].AsString() == "ClientIP" &&
      spec.Path({"sessionAffinityConfig", "clientIP", "timeoutSeconds"}).IsNull()) {
    spec = spec.SetPath({"sessionAffinityConfig", "clientIP", "timeoutSeconds"},
                        kDefaultAffinitySeconds);
  }
  const bool outside = type == "NodePort" || type == "LoadBalancer";
  if (outside) SetDefault(spec, "externalTrafficPolicy", "Cluster");
  if (outside || type == "ClusterIP") SetDefault(spec, "internalTrafficPolicy", "Cluster");
  if (type == "LoadBalancer" && !spec.Has("allocateLoadBalancerNodePorts")) {
    spec = std::move(spec).Set("allocateLoadBalancerNodePorts", true);
  }
  if (!spec.SameAs(service["spec"])) service = std::move(service).Set("spec", std::move(spec));
  return service;
}

}  // namespace muster::schema
