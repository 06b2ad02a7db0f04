#include "schema/training_kinds.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::schema {
namespace {

constexpr TrainingRole kPyTorchRoles[] = {{"Master", true, true}, {"Worker"}};
// Chief and Master are two names of one role.
constexpr TrainingRole kTensorFlowRoles[] = {
    {"Chief", false, true}, {"Evaluator"}, {"Master", false, true}, {"PS"}, {"Worker"}};
constexpr TrainingRole kJaxRoles[] = {{"Worker"}};
constexpr TrainingRole kMpiRoles[] = {{"Launcher", true, true, true}, {"Worker"}};

constexpr TrainingKind kKinds[] = {
    {"PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs", "pytorch", "pytorchjob-port", 23456,
     "OnFailure", kPyTorchRoles},
    {"TFJob", "tfjobs", "tfReplicaSpecs", "tensorflow", "tfjob-port", 2222, "Never",
     kTensorFlowRoles},
    {"JAXJob", "jaxjobs", "jaxReplicaSpecs", "jax", "jaxjob-port", 6666, "Never", kJaxRoles},
    {"MPIJob", "mpijobs", "mpiReplicaSpecs", "mpi", "mpi-port", 9999, "Never", kMpiRoles, true},
};

}  // namespace

const TrainingRole* TrainingKind::FindRole(std::string_view type) const {
  const auto found = std::ranges::find_if(
      roles, [type](const TrainingRole& role) { return EqualsIgnoreCase(role.type, type); });
  return found == roles.end() ? nullptr : &*found;
}

std::span<const TrainingKind> TrainingKinds() { return kKinds; }

const TrainingKind* FindTrainingKind(std::string_view kind) {
  const auto found = std::ranges::find(kKinds, kind, &TrainingKind::kind);
  return found == std::end(kKinds) ? nullptr : found;
}

const json::Value& ReplicaSpecsOf(const json::Value& job) {
  static const json::Value kNone;
  for (const TrainingKind& kind : kKinds) {
    const json::Value& specs = job["spec"][kind.specs];
    if (!specs.IsNull()) return specs;
  }
  return kNone;
}

}  // namespace muster::schema
