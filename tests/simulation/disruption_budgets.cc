#include "simulation/disruption_budgets.h"

#include "simulation/user_requests.h"
#include "simulation/world.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

}  // namespace

void MakePriorities(World& world) {
  const auto make = [&world](std::string_view name, int64_t value, std::string_view policy) {
    CreateUntilTaken(world, resources::kPriorityClasses,
                     Yaml(fmt::format(R"(
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: {}}}
value: {}
preemptionPolicy: {}
)",
                                      name, value, policy)));
  };
  make("low", 10, "PreemptLowerPriority");
  make("middle", 100, "PreemptLowerPriority");
  make("high", 1000, "PreemptLowerPriority");
  make("polite", 2000, "Never");
}

void MakeBudget(World& world, const std::string& app, int64_t min_available) {
  CreateUntilTaken(world, resources::kPodDisruptionBudgets,
                   Yaml(fmt::format(R"(
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: {0}, namespace: default}}
spec: {{minAvailable: {1}, selector: {{matchLabels: {{app: {0}}}}}}}
)",
                                    app, min_available)));
}

}  // namespace muster::simulation
