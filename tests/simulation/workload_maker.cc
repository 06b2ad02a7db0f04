#include "simulation/workload_maker.h"

#include <iterator>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "simulation/fake_node.h"
#include "simulation/user_requests.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

json::Value Object(std::string_view api_version, std::string_view kind, const std::string& ns,
                   const std::string& name, const std::string& spec) {
  return json::Obj(
      {{"apiVersion", api_version},
       {"kind", kind},
       {"metadata",
        json::Obj({{"name", name}, {"namespace", ns}, {"labels", json::Obj({{"app", name}})}})},
       {"spec", Yaml(spec)}});
}

// Of pods that run for ever.
std::string Template(const std::string& app) {
  return fmt::format(R"(
  metadata: {{labels: {{app: {}}}, annotations: {{{}: "{}"}}}}
  spec: {{containers: [{{name: main, image: v1}}]}}
)",
                     app, kRunsForAnnotation, kForEverMs);
}

template <size_t N>
std::string_view OneOf(Rng& rng, const std::string_view (&choices)[N]) {
  return choices[rng.Below(N)];
}

}  // namespace

Workload RandomDeployment(Rng& rng, const std::string& ns, const std::string& name) {
  constexpr std::string_view kPaces[] = {
      "{maxSurge: 1, maxUnavailable: 0}", "{maxSurge: 0, maxUnavailable: 1}",
      "{maxSurge: 25%, maxUnavailable: 25%}", "{maxSurge: 2, maxUnavailable: 1}",
      "{maxSurge: 0, maxUnavailable: 50%}"};
  const std::string strategy =
      rng.Chance(0.2)
          ? std::string("{type: Recreate}")
          : fmt::format("{{type: RollingUpdate, rollingUpdate: {}}}", OneOf(rng, kPaces));
  return {resources::kDeployments,
          Object("apps/v1", "Deployment", ns, name,
                 fmt::format("replicas: {}\nrevisionHistoryLimit: {}\nminReadySeconds: {}\n"
                             "strategy: {}\nselector: {{matchLabels: {{app: {}}}}}\ntemplate:{}",
                             rng.Between(1, 6), rng.Between(0, 3), rng.Chance(0.3) ? 3 : 0,
                             strategy, name, Template(name)))};
}

Workload RandomStatefulSet(Rng& rng, const std::string& ns, const std::string& name) {
  // By the name, not by `rng`: stories that were told before stay what they are.
  constexpr std::string_view kPaces[] = {"", "", ", maxUnavailable: 2", ", maxUnavailable: 50%"};
  const std::string_view pace = kPaces[Hash64(ns + "/" + name, 0) % std::size(kPaces)];
  const std::string update =
      rng.Chance(0.2) ? std::string("{type: OnDelete}")
                      : fmt::format("{{type: RollingUpdate, rollingUpdate: {{partition: {}{}}}}}",
                                    rng.Chance(0.2) ? 1 : 0, pace);
  return {resources::kStatefulSets,
          Object("apps/v1", "StatefulSet", ns, name,
                 fmt::format("replicas: {}\nserviceName: {}\npodManagementPolicy: {}\n"
                             "updateStrategy: {}\nselector: {{matchLabels: {{app: {}}}}}\n"
                             "template:{}",
                             rng.Between(1, 4), name, rng.Chance(0.7) ? "OrderedReady" : "Parallel",
                             update, name, Template(name)))};
}

Workload RandomDaemonSet(Rng& rng, const std::string& ns, const std::string& name) {
  constexpr std::string_view kPaces[] = {"{maxUnavailable: 1, maxSurge: 0}",
                                         "{maxUnavailable: 0, maxSurge: 1}",
                                         "{maxUnavailable: 50%, maxSurge: 0}"};
  return {resources::kDaemonSets,
          Object("apps/v1", "DaemonSet", ns, name,
                 fmt::format("updateStrategy: {{type: RollingUpdate, rollingUpdate: {}}}\n"
                             "selector: {{matchLabels: {{app: {}}}}}\ntemplate:{}",
                             OneOf(rng, kPaces), name, Template(name)))};
}

Workload RandomReplicaSet(Rng& rng, const std::string& ns, const std::string& name,
                          const std::string& app) {
  return {resources::kReplicaSets,
          Object("apps/v1", "ReplicaSet", ns, name,
                 fmt::format("replicas: {}\nselector: {{matchLabels: {{app: {}}}}}\ntemplate:{}",
                             rng.Between(1, 4), app, Template(app)))};
}

namespace {

std::string JobSpec(Rng& rng, int64_t most_completions) {
  const int64_t completions = rng.Between(1, most_completions);
  const bool indexed = rng.Chance(0.5);
  std::string spec = fmt::format("completions: {}\nparallelism: {}\nbackoffLimit: {}\n",
                                 completions, rng.Between(1, 4), rng.Between(0, 6));
  if (indexed) spec += "completionMode: Indexed\n";
  if (indexed && rng.Chance(0.3)) spec += "backoffLimitPerIndex: 1\n";
  const bool never = spec.find("PerIndex") != spec.npos || rng.Chance(0.7);
  if (rng.Chance(0.2)) spec += fmt::format("ttlSecondsAfterFinished: {}\n", rng.Between(0, 30));
  if (rng.Chance(0.2)) spec += fmt::format("activeDeadlineSeconds: {}\n", rng.Between(10, 90));
  if (never && rng.Chance(0.2)) {
    spec +=
        "podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, "
        "status: 'True'}]}]}\n";
  } else if (rng.Chance(0.3)) {
    spec += "podReplacementPolicy: Failed\n";
  }
  return spec + fmt::format(
                    "template: {{spec: {{restartPolicy: {}, containers: [{{name: main, "
                    "image: v1}}]}}}}",
                    never ? "Never" : "OnFailure");
}

}  // namespace

Workload RandomBatchJob(Rng& rng, const std::string& ns, const std::string& name) {
  json::Value job = Object("batch/v1", "Job", ns, name, JobSpec(rng, 6));
  if (rng.Chance(0.1)) job = job.SetPath({"spec", "suspend"}, true);
  return {resources::kJobs, std::move(job)};
}

Workload RandomCronJob(Rng& rng, const std::string& ns, const std::string& name) {
  constexpr std::string_view kPolicies[] = {"Allow", "Forbid", "Replace"};
  json::Value cron_job =
      Object("batch/v1", "CronJob", ns, name,
             fmt::format("schedule: '* * * * *'\nconcurrencyPolicy: {}\n"
                         "successfulJobsHistoryLimit: {}\nfailedJobsHistoryLimit: {}",
                         OneOf(rng, kPolicies), rng.Between(0, 3), rng.Between(0, 1)));
  return {resources::kCronJobs,
          cron_job.SetPath({"spec", "jobTemplate", "spec"}, Yaml(JobSpec(rng, 2)))};
}

Workload LonelyPod(const std::string& ns, const std::string& name, const std::string& app) {
  json::Value pod = Yaml("apiVersion: v1\nkind: Pod\ntemplate:" + Template(app));
  const json::Value body = pod["template"];
  return {resources::kPods, pod.Remove("template")
                                .Set("metadata", body["metadata"])
                                .Set("spec", body["spec"])
                                .SetPath({"metadata", "name"}, name)
                                .SetPath({"metadata", "namespace"}, ns)};
}

Workload RandomBudget(Rng& rng, const std::string& ns, const std::string& app) {
  return {resources::kPodDisruptionBudgets,
          Object("policy/v1", "PodDisruptionBudget", ns, app,
                 fmt::format("{}\nselector: {{matchLabels: {{app: {}}}}}",
                             rng.Chance(0.5) ? "minAvailable: 1" : "maxUnavailable: 50%", app))};
}

}  // namespace muster::simulation
