#include "controllers/daemonset/daemon_pods.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/node_affinity.h"
#include "cluster/taints.h"
#include "controllers/history/history.h"
#include "controllers/pods/pod_template.h"
#include "schema/dcgm_exporter.h"
#include "schema/device_plugin.h"

namespace muster::controllers {
namespace {

struct Tolerated {
  std::string_view key, effect;
};
constexpr std::array<Tolerated, 6> kTolerated = {
    {{"node.kubernetes.io/not-ready", "NoExecute"},
     {"node.kubernetes.io/unreachable", "NoExecute"},
     {"node.kubernetes.io/disk-pressure", "NoSchedule"},
     {"node.kubernetes.io/memory-pressure", "NoSchedule"},
     {"node.kubernetes.io/pid-pressure", "NoSchedule"},
     {cluster::kUnschedulableTaint, "NoSchedule"}}};
constexpr Tolerated kNetworkUnavailable = {"node.kubernetes.io/network-unavailable", "NoSchedule"};

json::Value WithTolerations(json::Value spec) {
  json::Array tolerations = spec["tolerations"].items();
  const auto add = [&](const Tolerated& taint) {
    json::Value toleration =
        json::Obj({{"key", taint.key}, {"operator", "Exists"}, {"effect", taint.effect}});
    const bool known = std::any_of(tolerations.begin(), tolerations.end(),
                                   [&](const json::Value& other) { return other == toleration; });
    if (!known) tolerations.push_back(std::move(toleration));
  };
  for (const Tolerated& taint : kTolerated) add(taint);
  if (spec["hostNetwork"].AsBool()) add(kNetworkUnavailable);
  return std::move(spec).Set("tolerations", json::Value(std::move(tolerations)));
}

// Every required term names the node; labels that terms ask for were looked at by JudgeNode.
json::Value WithNode(json::Value spec, const std::string& node) {
  const json::Value fields = json::List(
      {json::Obj({{"key", "metadata.name"}, {"operator", "In"}, {"values", json::List({node})}})});
  json::Array terms;
  for (const json::Value& term :
       spec.Path({"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                  "nodeSelectorTerms"})
           .items()) {
    terms.push_back(term.Set("matchFields", fields));
  }
  if (terms.empty()) terms.push_back(json::Obj({{"matchFields", fields}}));
  return std::move(spec).SetPath(
      {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
       "nodeSelectorTerms"},
      json::Value(std::move(terms)));
}

bool SuitsLabels(const json::Value& pod_spec, const json::Value& node) {
  const cluster::Labels labels = cluster::ToLabels(node["metadata"]["labels"]);
  const std::string name = NameOf(node);
  const auto hostname = labels.find(cluster::kHostnameLabel);
  const bool has_hostname = hostname != labels.end();
  const std::string host = has_hostname ? hostname->second : "";
  return cluster::Matches(cluster::ToNodeAffinity(pod_spec), {labels, host, has_hostname, name});
}

}  // namespace

json::Value MakeDaemonPod(const json::Value& daemon_set, const std::string& node,
                          const std::string& hash, std::string name) {
  json::Value pod = PodFromTemplate(daemon_set, daemon_set["spec"]["template"], std::move(name))
                        .SetPath({"metadata", "labels", kRevisionHashLabel}, hash);
  return pod.Set("spec", WithTolerations(WithNode(pod["spec"], node)));
}

NodeVerdict JudgeNode(const json::Value& pod_spec, const json::Value& node) {
  if (schema::IsNvidiaDevicePlugin(pod_spec) || schema::IsDcgmExporter(pod_spec)) return {};
  const std::string_view wanted = pod_spec["nodeName"].AsString();
  if ((!wanted.empty() && wanted != node["metadata"]["name"].AsString()) ||
      !SuitsLabels(pod_spec, node))
    return {};
  const std::vector<cluster::Toleration> tolerations =
      cluster::ToTolerations(pod_spec["tolerations"]);
  NodeVerdict verdict{true, true};
  for (const cluster::Taint& taint : cluster::ToTaints(node["spec"]["taints"])) {
    if (taint.effect == cluster::TaintEffect::kPreferNoSchedule ||
        cluster::Tolerates(tolerations, taint))
      continue;
    verdict.should_run = false;
    if (taint.effect == cluster::TaintEffect::kNoExecute) verdict.may_go_on = false;
  }
  return verdict;
}

std::string NodeOfDaemonPod(const json::Value& pod) {
  const std::string node = pod["spec"]["nodeName"].Str();
  if (!node.empty()) return node;
  return pod
      .Path({"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
             "nodeSelectorTerms"})
      .At(0)["matchFields"]
      .At(0)["values"]
      .At(0)
      .Str();
}

}  // namespace muster::controllers
