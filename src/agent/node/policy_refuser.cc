#include "agent/node/policy_refuser.h"

#include <fmt/core.h>

#include "agent/network/policy_planner.h"
#include "schema/pod_phase.h"

namespace muster::agent {

PolicyRefuser::PolicyRefuser(client::InformerSet& informers, client::Informer& pods_of_node,
                             client::EventRecorder& events, Node node)
    : policies_(informers.Get(client::resources::kNetworkPolicies, json::Fields::Whole())),
      pods_of_node_(pods_of_node),
      events_(events),
      node_(std::move(node)) {}

void PolicyRefuser::Start() {
  started_ = true;
  client::InformerEvents of_policies;
  of_policies.on_change = lifetime_.Guard(
      [this](const client::ObjectKey&, const json::Value&, const json::Value&) { LookAtAll(); });
  of_policies.on_synced = of_policies.on_unserved = lifetime_.Guard([this] { LookAtAll(); });
  policies_.Subscribe(std::move(of_policies));
  client::InformerEvents of_pods;
  of_pods.on_change = lifetime_.Guard(
      [this](const client::ObjectKey&, const json::Value& before, const json::Value& after) {
        if (!after.IsNull() && !(before["metadata"]["labels"] == after["metadata"]["labels"]))
          WarnOf(after);
      });
  pods_of_node_.Subscribe(std::move(of_pods));
  LookAtAll();
}

void PolicyRefuser::LookAtAll() {
  for (const json::Value& pod : node_.pods()) WarnOf(pod);
  node_.on_policies_changed();
}

std::string PolicyRefuser::SelectedBy(const json::Value& pod) const {
  const std::string_view ns = pod["metadata"]["namespace"].AsString();
  for (auto entry = policies_.objects().lower_bound({std::string(ns), ""});
       entry != policies_.objects().end() && entry->first.ns == ns; ++entry) {
    if (PolicySelects(entry->second, pod)) return entry->first.name;
  }
  return "";
}

PolicyGuard::Answer PolicyRefuser::Look(const json::Value& pod, const std::string&) {
  if (!started_ || !policies_.Known()) return {Answer::Is::kNotYet};
  const std::string policy = SelectedBy(pod);
  if (policy.empty()) return {};
  return {Answer::Is::kRefused,
          fmt::format("the network policy {} selects the pod, and this node cannot enforce it, "
                      "because its pods have no network of their own; the pod is not run without "
                      "it. Use another node, or change the policy",
                      policy)};
}

// Of a pod that runs: one that does not is refused when its turn comes.
void PolicyRefuser::WarnOf(const json::Value& pod) {
  if (pod["status"]["phase"].AsString() != "Running") return;
  const std::string policy = SelectedBy(pod);
  if (policy.empty()) return;
  events_.Record(pod, client::EventType::kWarning, kPolicyNotEnforced,
                 fmt::format("the network policy {} selects the pod, which runs without it: this "
                             "node cannot enforce it. Delete the pod to be rid of it",
                             policy));
  const json::Value node =
      json::Obj({{"apiVersion", "v1"},
                 {"kind", "Node"},
                 {"metadata", json::Obj({{"name", node_.name}, {"uid", node_.name}})}});
  events_.Record(
      node, client::EventType::kWarning, kPolicyNotEnforced,
      fmt::format("pods that network policies select run here without them, such as "
                  "{}/{}: this node cannot enforce network policies",
                  pod["metadata"]["namespace"].AsString(), pod["metadata"]["name"].AsString()));
}

}  // namespace muster::agent
