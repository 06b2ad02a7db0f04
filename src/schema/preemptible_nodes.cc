#include "schema/preemptible_nodes.h"

#include <algorithm>
#include <string_view>

namespace muster::schema {
namespace {

struct LabelPair {
  std::string_view key, value;
  std::string Text() const { return std::string(key) + "=" + std::string(value); }
};
constexpr LabelPair kPreemptible[] = {
    {"karpenter.sh/capacity-type", "spot"},
    {"eks.amazonaws.com/capacityType", "SPOT"},
    {"node.kubernetes.io/lifecycle", "spot"},
    {"cloud.google.com/gke-preemptible", "true"},
    {"cloud.google.com/gke-spot", "true"},
    {"cloud.google.com/gke-provisioning", "spot"},
    {"kubernetes.azure.com/scalesetpriority", "spot"},
};

bool Demands(const json::Value& expression, const LabelPair& label) {
  return expression["key"].AsString() == label.key && expression["operator"].AsString() == "In" &&
         expression["values"].size() == 1 && expression["values"].At(0).AsString() == label.value;
}

}  // namespace

std::string PreemptibleLabel(const json::Value& labels) {
  for (const LabelPair& label : kPreemptible) {
    if (labels[label.key].AsString() == label.value) return label.Text();
  }
  return "";
}

std::string PreemptibleDemand(const json::Value& pod_spec) {
  if (std::string label = PreemptibleLabel(pod_spec["nodeSelector"]); !label.empty()) return label;
  // Of several terms one is enough for a node.
  const json::Array& terms =
      pod_spec
          .Path({"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                 "nodeSelectorTerms"})
          .items();
  if (terms.size() != 1) return "";
  for (const LabelPair& label : kPreemptible) {
    const bool demanded = std::ranges::any_of(
        terms[0]["matchExpressions"].items(),
        [&label](const json::Value& expression) { return Demands(expression, label); });
    if (demanded) return label.Text();
  }
  return "";
}

}  // namespace muster::schema
