#include "schema/pod_qos.h"

#include "schema/quantity_syntax.h"

namespace muster::schema {
namespace {

// An absent amount is none.
Amount AmountOf(const json::Value& resources, const char* list, const char* resource) {
  return AmountFromJson(resources[list][resource]).value_or(Amount());
}

}  // namespace

std::string_view QosClassOf(const json::Value& pod) {
  bool any = false;
  bool guaranteed = true;
  for (const char* list : {"containers", "initContainers"}) {
    for (const json::Value& container : pod["spec"][list].items()) {
      const json::Value& resources = container["resources"];
      for (const char* resource : {"cpu", "memory"}) {
        const Amount limit = AmountOf(resources, "limits", resource);
        const Amount request = AmountOf(resources, "requests", resource);
        any = any || limit.nano != 0 || request.nano != 0;
        // An absent request is the limit.
        const bool same = resources["requests"][resource].IsNull() || request == limit;
        guaranteed = guaranteed && limit.nano != 0 && same;
      }
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

}  // namespace muster::schema
