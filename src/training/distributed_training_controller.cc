#include "training/distributed_training_controller.h"

#include "schema/distributed_training.h"
#include "training/distributed_training.h"

namespace muster::training {
namespace {

namespace resources = client::resources;

constexpr std::string_view kProductLabel = "nvidia.com/gpu.product";

const json::Value& ProductOf(const json::Value& node) {
  return node["metadata"]["labels"][kProductLabel];
}

// Who waits for GPUs of a type that no node had looks again.
client::Trigger OnProducts(const client::Informer& trainings) {
  return {resources::kNodes, [&trainings](const client::ObjectKey&, const json::Value& before,
                                          const json::Value& after) {
            std::vector<client::ObjectKey> keys;
            if (ProductOf(before) == ProductOf(after)) return keys;
            for (const auto& [key, training] : trainings.objects()) {
              if (!training["status"].Has("startTime")) keys.push_back(key);
            }
            return keys;
          }};
}

json::Value ChildOf(const client::Informer& informer, const client::ObjectKey& key) {
  const json::Value* child = informer.Find(key);
  return child == nullptr ? json::Value() : *child;
}

}  // namespace

std::vector<client::Trigger> DistributedTrainingController::Setup(client::InformerSet& informers) {
  client::Informer& trainings = informers.Get(kDistributedTrainings, json::Fields::Whole());
  informers.Get(resources::kPyTorchJobs, json::Fields::Whole());
  informers.Get(resources::kNodes, {{"metadata", "labels", kProductLabel}});
  informers.Get(resources::kPersistentVolumeClaims);
  informers.Get(resources::kConfigMaps);
  std::vector<client::Trigger> triggers = {client::OnSelf(kDistributedTrainings),
                                           OnProducts(trainings)};
  for (const client::Resource& child :
       {resources::kPyTorchJobs, resources::kPersistentVolumeClaims, resources::kConfigMaps}) {
    triggers.push_back(
        client::OnControlledBy(child, std::string(schema::kDistributedTraining), "ml.example.com"));
  }
  return triggers;
}

client::Reconciled DistributedTrainingController::Reconcile(const client::View& view,
                                                            const client::Observations&,
                                                            const client::ObjectKey& key, Time now,
                                                            uint64_t) {
  const json::Value* training = view.Of(kDistributedTrainings).Find(key);
  if (training == nullptr || (*training)["metadata"].Has("deletionTimestamp")) return {};
  TrainingChildren children;
  children.job = ChildOf(view.Of(resources::kPyTorchJobs), key);
  children.claim =
      ChildOf(view.Of(resources::kPersistentVolumeClaims), {key.ns, key.name + "-checkpoints"});
  children.program = ChildOf(view.Of(resources::kConfigMaps), {key.ns, key.name + "-program"});
  for (const auto& [name, node] : view.Of(resources::kNodes).objects()) {
    if (const std::string product = ProductOf(node).Str(); !product.empty())
      children.products.insert(product);
  }
  return ReconcileTraining(*training, children, now);
}

}  // namespace muster::training
