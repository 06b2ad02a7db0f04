#include "simulation/autoscaler_chapter.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "simulation/fake_node.h"
#include "simulation/gang_oracle.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr char kAutoscalers[] = "/registry/autoscaling/horizontalpodautoscalers/";
constexpr char kDeployments[] = "/registry/apps/deployments/default/auto-";
constexpr std::string_view kUse = "muster.dev/simulated-cpu";
constexpr std::string_view kUses[] = {"10m", "30m", "50m", "52m", "80m", "150m"};  // of 100m
constexpr std::string_view kTargets[] = {"50", "50", "60", "80"};                  // percent

std::string_view UseOf(const json::Value& deployment) {
  return deployment["spec"]["template"]["metadata"]["annotations"][kUse].AsString();
}

// Nobody serves this metric.
bool HasBlindMetric(const json::Value& autoscaler) {
  return autoscaler["spec"]["metrics"].size() > 1;
}

int64_t RoundedUp(int64_t amount, int64_t by) { return (amount + by - 1) / by; }

// Of pods that each use `use` percent of what they request, with a target in percent.
int64_t Recommended(int64_t replicas, int64_t use, int64_t target) {
  const bool near = 10 * use >= 9 * target && 10 * use <= 11 * target;
  return near ? replicas : RoundedUp(use * replicas, target);
}

}  // namespace

AutoscalerChapter::AutoscalerChapter(const Tale& tale) : Chapter(tale) {
  world_.oracles().Listen(kAutoscalers, [this](const std::string&, const json::Value& object,
                                               bool deleted) { OnAutoscaler(object, deleted); });
  world_.oracles().Listen(kDeployments, [this](const std::string&, const json::Value& object,
                                               bool deleted) { OnDeployment(object, deleted); });
}

// ---- what is told ----

void AutoscalerChapter::Plan() {
  for (int64_t i = rng_.Between(1, 2); i > 0; --i) {
    names_.push_back(fmt::format("auto-{}", i));
    world_.At(trouble_.UpTo(20'000), [this, name = names_.back()] { MakeBoth(name); });
  }
  trouble_.Sometimes(1, 4, [this] { Change(); });
}

std::string AutoscalerChapter::RandomUse() { return std::string(OneOf(kUses)); }

void AutoscalerChapter::MakeBoth(const std::string& name) {
  Tell("make a Deployment and its autoscaler", name);
  CreateUntilTaken(world_, resources::kDeployments,
                   Yaml(fmt::format(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {0}, namespace: default}}
spec:
  replicas: {1}
  selector: {{matchLabels: {{app: {0}}}}}
  template:
    metadata: {{labels: {{app: {0}}}, annotations: {{{2}: "{3}", {4}: {5}}}}}
    spec:
      containers: [{{name: main, image: v1, resources: {{requests: {{cpu: 100m}}}}}}]
)",
                                    name, rng_.Between(1, 6), kRunsForAnnotation, kForEverMs, kUse,
                                    RandomUse())));
  MakeAutoscaler(name);
}

std::string AutoscalerChapter::RandomBehavior() {
  if (rng_.Chance(0.3)) return "{}";  // five minutes
  const std::string down = fmt::format(
      "{{stabilizationWindowSeconds: {}, policies: [{{type: {}, value: {}, "
      "periodSeconds: {}}}]}}",
      rng_.Between(0, 60), rng_.Chance(0.5) ? "Pods" : "Percent", rng_.Chance(0.5) ? 1 : 100,
      rng_.Between(15, 60));
  if (rng_.Chance(0.5)) return fmt::format("{{scaleDown: {}}}", down);
  return fmt::format(
      "{{scaleDown: {}, scaleUp: {{stabilizationWindowSeconds: {}, policies: "
      "[{{type: Pods, value: {}, periodSeconds: 15}}]}}}}",
      down, rng_.Between(0, 30), rng_.Between(1, 3));
}

void AutoscalerChapter::MakeAutoscaler(const std::string& name) {
  const int64_t least = rng_.Between(1, 3);
  const std::string blind = rng_.Chance(0.2)
                                ? "- {type: Pods, pods: {metric: {name: unknown}, target: {type: "
                                  "AverageValue, averageValue: 1}}}"
                                : "";
  CreateUntilTaken(world_, resources::kHorizontalPodAutoscalers,
                   Yaml(fmt::format(R"(
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {0}, namespace: default}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {0}}}
  minReplicas: {1}
  maxReplicas: {2}
  behavior: {3}
  metrics:
  - type: Resource
    resource: {{name: cpu, target: {{type: Utilization, averageUtilization: {4}}}}}
  {5}
)",
                                    name, least, least + rng_.Between(1, 5), RandomBehavior(),
                                    OneOf(kTargets), blind)));
}

void AutoscalerChapter::Change() {
  const std::string name = names_[rng_.Below(names_.size())];
  const client::Target autoscaler{resources::kHorizontalPodAutoscalers, "default", name, ""};
  const uint64_t what = rng_.Below(8);
  if (what == 0) {
    Tell("delete an autoscaler", name);
    Delete(autoscaler);
    if (rng_.Chance(0.7)) world_.At(trouble_.UpTo(10'000), [this, name] { MakeAutoscaler(name); });
  } else if (what < 4) {
    Tell("change the bounds of an autoscaler", name);
    const int64_t least = rng_.Between(1, 4);
    EditUntilTaken(world_, autoscaler,
                   [least, most = least + rng_.Between(0, 4)](json::Value object) {
                     return object.SetPath({"spec", "minReplicas"}, least)
                         .SetPath({"spec", "maxReplicas"}, most);
                   });
  } else {
    Tell("change what pods use", name);
    EditUntilTaken(world_, {resources::kDeployments, "default", name, ""},
                   [use = RandomUse()](json::Value object) {
                     return object.SetPath({"spec", "template", "metadata", "annotations", kUse},
                                           use);
                   });
  }
}

// ---- after every change ----

void AutoscalerChapter::OnAutoscaler(const json::Value& object, bool deleted) {
  const std::string name = object["metadata"]["name"].Str();
  Autoscaler& autoscaler = autoscalers_[name];
  if (autoscaler.object["spec"] != object["spec"]) autoscaler.changed = world_.loop().Steady();
  for (const json::Value& condition : object["status"]["conditions"].items()) {
    const std::string_view reason = condition["reason"].AsString();
    if (reason == "ScaleDownStabilized") counts_.Add("branch: scaling down is put off");
    if (reason == "TooManyReplicas") counts_.Add("branch: an autoscaler is at its maximum");
    if (reason == "FailedGetResourceMetric") counts_.Add("branch: there are no metrics");
  }
  autoscaler.object = object;
  if (deleted) autoscalers_.erase(name);
}

// Nobody but the autoscaler changes how many there are.
void AutoscalerChapter::OnDeployment(const json::Value& object, bool deleted) {
  const std::string name = object["metadata"]["name"].Str();
  const json::Value before = std::exchange(deployments_[name], object);
  if (deleted) {
    deployments_.erase(name);
    return;
  }
  const int64_t replicas = object["spec"]["replicas"].AsInt();
  if (before.IsNull() || before["spec"]["replicas"].AsInt() == replicas) return;
  counts_.Add(replicas > before["spec"]["replicas"].AsInt()
                  ? "branch: scaled up by an autoscaler"
                  : "branch: scaled down by an autoscaler");
  const auto found = autoscalers_.find(name);
  if (found == autoscalers_.end() || world_.loop().Steady() - found->second.changed < kPlanAge)
    return;
  const json::Value& spec = found->second.object["spec"];
  if (replicas < spec["minReplicas"].AsInt() || replicas > spec["maxReplicas"].AsInt())
    world_.Violation(fmt::format("{} was scaled to {}, its autoscaler allows {} to {}", name,
                                 replicas, spec["minReplicas"].AsInt(),
                                 spec["maxReplicas"].AsInt()));
}

// ---- at rest ----

bool AutoscalerChapter::IsContent(const json::Value& autoscaler,
                                  const json::Value& deployment) const {
  const json::Value& spec = autoscaler["spec"];
  const int64_t replicas = deployment["spec"]["replicas"].AsInt();
  const int64_t use = ParseInt(Split(UseOf(deployment), 'm').front()).value_or(0);
  const int64_t target = spec["metrics"].At(0)["resource"]["target"]["averageUtilization"].AsInt();
  const int64_t least = spec["minReplicas"].AsInt();
  const int64_t most = spec["maxReplicas"].AsInt();
  const int64_t wanted = std::clamp(Recommended(replicas, use, target), least, most);
  // A metric that is missing might want all that there are.
  return wanted == replicas ||
         (HasBlindMetric(autoscaler) && wanted < replicas && replicas <= most);
}

std::vector<std::string> AutoscalerChapter::Restless() const {
  std::vector<std::string> restless;
  for (const auto& [name, deployment] : deployments_) {
    const json::Value& status = deployment["status"];
    const json::Value& replicas = deployment["spec"]["replicas"];
    if (status["readyReplicas"] != replicas || status["updatedReplicas"] != replicas ||
        status["replicas"] != replicas)
      restless.push_back("Deployment " + name);
    const auto autoscaler = autoscalers_.find(name);
    if (autoscaler != autoscalers_.end() && !IsContent(autoscaler->second.object, deployment))
      restless.push_back("autoscaler " + name);
  }
  return restless;
}

void AutoscalerChapter::Judge() {
  for (const auto& [name, autoscaler] : autoscalers_) {
    const auto deployment = deployments_.find(name);
    if (deployment == deployments_.end()) continue;
    // Where a metric is missing, what it wanted before is left as it was.
    if (HasBlindMetric(autoscaler.object)) continue;
    counts_.Add("oracle: autoscaler at rest");
    const int64_t replicas = deployment->second["spec"]["replicas"].AsInt();
    const json::Value& status = autoscaler.object["status"];
    if (status["desiredReplicas"].AsInt() != replicas ||
        status["currentReplicas"].AsInt() != replicas)
      world_.Violation(fmt::format("autoscaler {} says {} of {}, there are {}", name,
                                   status["currentReplicas"].AsInt(),
                                   status["desiredReplicas"].AsInt(), replicas));
  }
}

}  // namespace muster::simulation
