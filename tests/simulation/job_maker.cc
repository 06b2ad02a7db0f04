#include "simulation/job_maker.h"

#include <iterator>
#include <string_view>

#include "simulation/fake_node.h"

namespace muster::simulation {
namespace {

constexpr const char* kRestartPolicies[] = {"OnFailure", "OnFailure", "ExitCode",
                                            "ExitCode",  "Never",     "Always"};
constexpr const char* kCleanPodPolicies[] = {"All", "Running", "None"};

json::Value Replica(int64_t count, const char* restart_policy, int64_t devices) {
  json::Value container = json::Obj({{"name", "pytorch"}, {"image", "train"}});
  json::Value limits = json::Obj({{"cpu", "1"}, {"memory", "1Gi"}});
  if (devices > 0) limits = limits.Set("nvidia.com/gpu", std::to_string(devices));
  container = container.Set("resources", json::Obj({{"limits", limits}}));
  return json::Obj(
      {{"replicas", count},
       {"restartPolicy", restart_policy},
       {"template", json::Obj({{"spec", json::Obj({{"containers", json::List({container})}})}})}});
}

json::Value Job(const std::string& ns, const std::string& name, json::Value spec) {
  return json::Obj({{"apiVersion", "kubeflow.org/v1"},
                    {"kind", "PyTorchJob"},
                    {"metadata", json::Obj({{"name", name}, {"namespace", ns}})},
                    {"spec", std::move(spec)}});
}

}  // namespace

json::Value RandomJob(Rng& rng, const std::string& ns, const std::string& name) {
  const bool elastic = rng.Chance(0.3);
  // Elastic jobs that restart in place would never show how single pods are replaced.
  const char* policy =
      elastic ? "ExitCode" : kRestartPolicies[rng.Below(std::size(kRestartPolicies))];
  const int64_t devices = rng.Between(0, 2);
  // Always ends only by its limits, so every job has one, and its pods only by being deleted.
  const bool endless = std::string_view(policy) == "Always";
  json::Value run_policy =
      json::Obj({{"backoffLimit", rng.Between(0, 4)},
                 {"cleanPodPolicy", kCleanPodPolicies[rng.Below(endless ? 2 : 3)]}});
  if (rng.Chance(0.3)) run_policy = run_policy.Set("ttlSecondsAfterFinished", rng.Between(0, 60));
  if (rng.Chance(0.3)) run_policy = run_policy.Set("activeDeadlineSeconds", rng.Between(10, 90));
  if (rng.Chance(0.1)) run_policy = run_policy.Set("suspend", true);
  json::Value spec = json::Obj({{"runPolicy", run_policy}});
  json::Value replicas;
  if (!elastic && rng.Chance(0.8)) replicas = replicas.Set("Master", Replica(1, policy, devices));
  const int64_t workers = rng.Between(elastic ? 3 : replicas.IsNull() ? 1 : 0, 5);
  if (workers > 0) replicas = replicas.Set("Worker", Replica(workers, policy, devices));
  spec = spec.Set("pytorchReplicaSpecs", replicas);
  if (elastic) {
    spec = spec.Set("elasticPolicy", json::Obj({{"minReplicas", 1}, {"maxReplicas", 6}}));
  }
  return Job(ns, name, std::move(spec));
}

json::Value EndlessJob(const std::string& ns, const std::string& name) {
  json::Value worker = Replica(2, "OnFailure", 1);
  const json::Value metadata =
      json::Obj({{"annotations", json::Obj({{std::string(kRunsForAnnotation), "1000000000"}})}});
  worker = worker.SetPath({"template", "metadata"}, metadata);
  return Job(ns, name, json::Obj({{"pytorchReplicaSpecs", json::Obj({{"Worker", worker}})}}));
}

json::Value WithPriority(json::Value job, const std::string& priority_class) {
  for (const json::Member& replica : json::Value(job["spec"]["pytorchReplicaSpecs"]).members()) {
    job = std::move(job).SetPath(
        {"spec", "pytorchReplicaSpecs", replica.first, "template", "spec", "priorityClassName"},
        priority_class);
  }
  return std::move(job).SetPath({"spec", "runPolicy", "schedulingPolicy", "priorityClass"},
                                priority_class);
}

json::Value HopelessJob(const std::string& ns, const std::string& name) {
  return Job(
      ns, name,
      json::Obj({{"pytorchReplicaSpecs", json::Obj({{"Master", Replica(1, "OnFailure", 1)},
                                                    {"Worker", Replica(60, "OnFailure", 2)}})}}));
}

}  // namespace muster::simulation
