// API services. Source: k8s.io/kube-aggregator pkg/apis/apiregistration/v1/defaults.go.

#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"

namespace muster::schema {

json::Value DefaultApiService(json::Value service) {
  EditMember(service, "spec", [](json::Value spec) {
    EditMember(spec, "service", [](json::Value behind) {
      SetIfAbsent(behind, "port", 443);
      return behind;
    });
    return spec;
  });
  return service;
}

}  // namespace muster::schema
