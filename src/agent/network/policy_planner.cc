#include "agent/network/policy_planner.h"

#include "schema/label_selector.h"

namespace muster::agent {

bool PolicySelects(const json::Value& policy, const json::Value& pod) {
  if (pod["spec"]["hostNetwork"].AsBool()) return false;
  if (policy["metadata"]["namespace"] != pod["metadata"]["namespace"]) return false;
  const json::Value& selector = policy["spec"]["podSelector"];
  if (selector.IsNull()) return true;
  const auto parsed = schema::LabelSelector::FromJson(selector);
  // What cannot be read restricts.
  return !parsed || parsed->Matches(pod["metadata"]["labels"]);
}

}  // namespace muster::agent
