#include "training/pods.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "cluster/cost_keys.h"
#include "cluster/pod_info.h"
#include "cluster/quantity.h"
#include "training/env.h"
#include "training/mpi.h"

namespace muster::training {
namespace {

std::string_view PodRestartPolicy(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    // With ExitCode the controller decides by the code, so the node must not restart it first.
    case RestartPolicy::kNever:
    case RestartPolicy::kExitCode:
      return "Never";
  }
  return "Never";
}

bool IsMasterRole(const Job& job, const Replica& replica, int64_t index) {
  return job.Leader() != nullptr ? replica.leads : replica.type == kWorker && index == 0;
}

// Ours replace the user's of the same name: the later of two entries would win anyway.
json::Value WithEnv(const json::Value& container, const std::vector<EnvVar>& env) {
  json::Array entries;
  for (const json::Value& entry : container["env"].items()) {
    const bool ours = std::any_of(env.begin(), env.end(), [&entry](const EnvVar& variable) {
      return variable.first == entry["name"].AsString();
    });
    if (!ours) entries.push_back(entry);
  }
  for (const auto& [name, value] : env)
    entries.push_back(json::Obj({{"name", name}, {"value", value}}));
  return container.Set("env", json::Value(std::move(entries)));
}

json::Value WithDefaultPort(const schema::TrainingKind& kind, const json::Value& container) {
  for (const json::Value& port : container["ports"].items()) {
    if (port["name"].AsString() == kind.port_name) return container;
  }
  const json::Value port =
      json::Obj({{"containerPort", kind.port}, {"name", kind.port_name}, {"protocol", "TCP"}});
  return container.Set("ports", container["ports"].Append(port));
}

json::Value PodSpecOf(const Job& job, const Replica& replica, int64_t index) {
  json::Value spec =
      replica.pod_template["spec"].Set("restartPolicy", PodRestartPolicy(replica.restart_policy));
  const std::vector<EnvVar> env = EnvOf(job, replica, index);
  json::Array containers;
  for (const json::Value& container : spec["containers"].items()) {
    const bool trains = container["name"].AsString() == replica.main_container;
    const bool told = trains || (job.kind->kind != "TFJob" && !IsMpi(job));
    const json::Value with_port = trains ? WithDefaultPort(*job.kind, container) : container;
    containers.push_back(told ? WithEnv(with_port, env) : with_port);
  }
  spec = spec.Set("containers", json::Value(std::move(containers)));
  return IsMpi(job) ? WithMpi(job, replica, index, std::move(spec)) : spec;
}

using Amounts = std::map<std::string, cluster::Quantity>;

// What a pod asks for: the sum of its containers' requests (limits where there is no request), as
// the scheduler adds them. Amounts that cannot be read are left to the API server to refuse.
void AddRequests(const json::Value& pod_template, Amounts& sum) {
  for (const json::Value& container : pod_template["spec"]["containers"].items()) {
    Amounts amounts;
    for (const char* kind : {"limits", "requests"}) {
      for (const json::Member& member : container["resources"][kind].members()) {
        if (const auto amount = cluster::Quantity::FromJson(member.second))
          amounts[member.first] = *amount;
      }
    }
    for (const auto& [name, amount] : amounts) {
      const auto [entry, added] = sum.try_emplace(name, amount);
      if (!added) entry->second = entry->second + amount;
    }
  }
}

// Of the first `members` pods, in the order of the roles.
json::Value MinResources(const Job& job, int64_t members) {
  Amounts sum;
  for (const Replica& replica : job.replicas) {
    for (int64_t i = 0; i < replica.count && members > 0; ++i, --members)
      AddRequests(replica.pod_template, sum);
  }
  json::Object amounts;
  for (const auto& [name, amount] : sum) amounts.emplace_back(name, amount.ToString());
  return json::Value(std::move(amounts));
}

// The pods' annotations, and whom the job's cost concerns where they do not say it themselves.
json::Value WithCostKeys(const json::Value& job, const json::Value& pod) {
  json::Value annotations = pod["annotations"];
  for (const std::string_view key : cluster::kCostKeys) {
    if (annotations.Has(key) || pod["labels"].Has(key)) continue;
    const json::Value& annotated = job["annotations"][key];
    const json::Value& value = annotated.IsNull() ? job["labels"][key] : annotated;
    if (!value.IsNull()) annotations = std::move(annotations).Set(key, value);
  }
  return annotations;
}

}  // namespace

json::Value LabelsOf(const Job& job, const Replica& replica, int64_t index) {
  json::Value labels = json::Obj({{std::string(kJobNameLabel), job.name},
                                  {std::string(kOperatorNameLabel), job.OperatorName()},
                                  {std::string(kReplicaIndexLabel), std::to_string(index)},
                                  {std::string(kReplicaTypeLabel), replica.LowerType()}});
  if (job.ssh) return labels.Set(kJobRoleLabel, replica.LowerType());
  if (IsMasterRole(job, replica, index)) labels = labels.Set(kJobRoleLabel, "master");
  return labels;
}

std::string SelectorOf(const Job& job, const Replica& replica) {
  return fmt::format("{}={},{}={},{}={}", kJobNameLabel, job.name, kOperatorNameLabel,
                     job.OperatorName(), kReplicaTypeLabel, replica.LowerType());
}

json::Value OwnerReferencesTo(const Job& job) {
  return json::List({json::Obj({{"apiVersion", job.ApiVersion()},
                                {"kind", job.kind->kind},
                                {"name", job.name},
                                {"uid", job.uid},
                                {"controller", true},
                                {"blockOwnerDeletion", true}})});
}

json::Value MakePod(const Job& job, const Replica& replica, int64_t index, int64_t epoch) {
  const json::Value& from = replica.pod_template["metadata"];
  json::Value labels = from["labels"];
  const json::Value ours = LabelsOf(job, replica, index);
  for (const json::Member& label : ours.members()) labels = labels.Set(label.first, label.second);
  const json::Value annotations = WithCostKeys(job.object["metadata"], from)
                                      .Set(cluster::kGroupNameAnnotation, job.name)
                                      .Set(cluster::kTaskSpecAnnotation, replica.LowerType())
                                      .Set(kEpochAnnotation, std::to_string(epoch))
                                      .Set(kMembersAnnotation, std::to_string(job.TotalReplicas()));
  return json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", json::Obj({{"name", ReplicaName(job.name, replica.LowerType(), index)},
                               {"namespace", job.ns},
                               {"labels", labels},
                               {"annotations", annotations},
                               {"ownerReferences", OwnerReferencesTo(job)}})},
       {"spec", PodSpecOf(job, replica, index)}});
}

json::Value MakeService(const Job& job, const Replica& replica, int64_t index) {
  json::Value selector = LabelsOf(job, replica, index);
  json::Array ports;
  for (const json::Value& container : replica.pod_template["spec"]["containers"].items()) {
    if (container["name"].AsString() != replica.main_container) continue;
    const json::Value with_default = WithDefaultPort(*job.kind, container);
    for (const json::Value& port : with_default["ports"].items()) {
      // Two ports of a service need names; a nameless one gets its number.
      const int64_t number = port["containerPort"].AsInt();
      const std::string name = port["name"].Str("port-" + std::to_string(number));
      ports.push_back(
          json::Obj({{"name", name}, {"port", number}, {"protocol", port["protocol"].Str("TCP")}}));
    }
  }
  return json::Obj(
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata", json::Obj({{"name", ReplicaName(job.name, replica.LowerType(), index)},
                               {"namespace", job.ns},
                               {"labels", selector},
                               {"ownerReferences", OwnerReferencesTo(job)}})},
       {"spec", json::Obj({{"clusterIP", "None"},
                           {"selector", selector},
                           {"ports", json::Value(std::move(ports))},
                           {"publishNotReadyAddresses", true}})}});
}

json::Value PodGroupSpec(const Job& job) {
  const json::Value& policy = job.run_policy.scheduling_policy;
  const int64_t members = policy["minAvailable"].AsInt(job.MinReplicas());
  json::Value spec = json::Obj({{"minMember", members}, {"queue", policy["queue"].Str("default")}});
  // Without its master no part of the job can begin.
  const bool together = !(job.ssh && job.ssh->waits_for_workers);
  if (job.Leader() != nullptr && together && members > 0 && members < job.TotalReplicas()) {
    spec = spec.Set("minTaskMember", json::Obj({{job.Leader()->LowerType(), 1}}));
  }
  if (const std::string priority = policy["priorityClass"].Str(); !priority.empty()) {
    spec = spec.Set("priorityClassName", priority);
  }
  const json::Value resources =
      policy.Has("minResources") ? policy["minResources"] : MinResources(job, members);
  return resources.empty() ? spec : spec.Set("minResources", resources);
}

json::Value MakeAutoscaler(const Job& job) {
  const ElasticPolicy& policy = *job.elastic;
  return json::Obj({{"apiVersion", "autoscaling/v2"},
                    {"kind", "HorizontalPodAutoscaler"},
                    {"metadata", json::Obj({{"name", job.name},
                                            {"namespace", job.ns},
                                            {"ownerReferences", OwnerReferencesTo(job)}})},
                    {"spec", json::Obj({{"scaleTargetRef", json::Obj({{"apiVersion", kApiVersion},
                                                                      {"kind", job.kind->kind},
                                                                      {"name", job.name}})},
                                        {"minReplicas", policy.min_replicas},
                                        {"maxReplicas", policy.max_replicas},
                                        {"metrics", policy.metrics}})}});
}

json::Value MakePodGroup(const Job& job) {
  return json::Obj({{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                    {"kind", "PodGroup"},
                    {"metadata", json::Obj({{"name", job.name},
                                            {"namespace", job.ns},
                                            {"ownerReferences", OwnerReferencesTo(job)}})},
                    {"spec", PodGroupSpec(job)}});
}

std::optional<ReplicaId> ReplicaOfPod(const json::Value& pod) {
  const json::Value& labels = pod["metadata"]["labels"];
  const std::optional<int64_t> index = ParseInt(labels[kReplicaIndexLabel].AsString());
  const std::string type = labels[kReplicaTypeLabel].Str();
  if (!index || type.empty()) return std::nullopt;
  return ReplicaId{type, *index};
}

int64_t EpochOf(const json::Value& pod) {
  return ParseInt(pod["metadata"]["annotations"][kEpochAnnotation].AsString()).value_or(0);
}

}  // namespace muster::training
