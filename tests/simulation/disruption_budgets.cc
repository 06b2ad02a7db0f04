#include "simulation/disruption_budgets.h"

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

void MakeBudget(World& world, const std::string& app, int64_t min_available) {
  CreateYaml(world, resources::kPodDisruptionBudgets,
             fmt::format(R"(
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: {0}, namespace: default}}
spec: {{minAvailable: {1}, selector: {{matchLabels: {{app: {0}}}}}}}
)",
                         app, min_available));
}

}  // namespace muster::simulation
