#include "simulation/disruption_budgets.h"

#include <algorithm>
#include <vector>

#include "json/parse.h"
#include "simulation/world.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr Duration kPeriod = milliseconds(200);

// Until the server has it.
void Create(World& world, const client::Resource& resource, const json::Value& object) {
  const client::ObjectKey key = client::KeyOf(object);
  world.user().Create({resource, key.ns, key.name, ""}, object,
                      [&world, resource, object](Result<json::Value> reply) {
                        if (reply || reply.error().reason() == Reason::kAlreadyExists) return;
                        world.At(kPeriod,
                                 [&world, resource, object] { Create(world, resource, object); });
                      });
}

void CreateYaml(World& world, const client::Resource& resource, const std::string& yaml) {
  Create(world, resource, json::ParseYaml(yaml)->at(0));
}

// And again.
void Look(World& world) {
  world.At(kPeriod, [&world] { Look(world); });
  if (!world.server_up()) return;
  const std::vector<json::Value> pods = world.FindAll("/registry/core/pods/");
  for (const json::Value& budget : world.FindAll(std::string(kBudgetPrefix))) {
    const std::string_view app = budget["spec"]["selector"]["matchLabels"]["app"].AsString();
    const auto healthy = std::count_if(pods.begin(), pods.end(), [&](const json::Value& pod) {
      return pod["metadata"]["labels"]["app"].AsString() == app &&
             pod["status"]["phase"].AsString() == "Running" &&
             !pod["metadata"].Has("deletionTimestamp");
    });
    const int64_t allowed = std::max<int64_t>(healthy - budget["spec"]["minAvailable"].AsInt(), 0);
    if (budget["status"]["disruptionsAllowed"].AsInt() == allowed) continue;
    const client::ObjectKey key = client::KeyOf(budget);
    world.user().Patch({kBudgets, key.ns, key.name, ""}, client::PatchType::kMerge,
                       json::Obj({{"status", json::Obj({{"disruptionsAllowed", allowed}})}}),
                       [](Result<json::Value>) {});
  }
}

}  // namespace

void MakePriorities(World& world) {
  const auto make = [&world](std::string_view name, int64_t value, std::string_view policy) {
    CreateYaml(world, resources::kPriorityClasses,
               fmt::format(R"(
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: {}}}
value: {}
preemptionPolicy: {}
)",
                           name, value, policy));
  };
  make("low", 10, "PreemptLowerPriority");
  make("middle", 100, "PreemptLowerPriority");
  make("high", 1000, "PreemptLowerPriority");
  make("polite", 2000, "Never");
}

void ServeBudgets(World& world) {
  CreateYaml(world, {"apiextensions.k8s.io", "v1", "customresourcedefinitions"}, R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: poddisruptionbudgets.policy.simulation.test}
spec:
  group: policy.simulation.test
  scope: Namespaced
  names: {plural: poddisruptionbudgets, singular: poddisruptionbudget, kind: PodDisruptionBudget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
)");
  Look(world);
}

void MakeBudget(World& world, const std::string& app, int64_t min_available) {
  CreateYaml(world, kBudgets,
             fmt::format(R"(
apiVersion: policy.simulation.test/v1
kind: PodDisruptionBudget
metadata: {{name: {0}, namespace: default}}
spec: {{minAvailable: {1}, selector: {{matchLabels: {{app: {0}}}}}}}
status: {{disruptionsAllowed: 0}}
)",
                         app, min_available));
}

}  // namespace muster::simulation
