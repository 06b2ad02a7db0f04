#include "controllers/podautoscaler/podautoscaler_controller.h"

#include <string>

#include "controllers/pods/selected_objects.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

// Not for its own writes of the status: each would bring the next one.
client::Trigger OnNewSpec() {
  return {resources::kHorizontalPodAutoscalers,
          [](const client::ObjectKey& key, const json::Value& before, const json::Value& after) {
            const bool same = !before.IsNull() && before["spec"] == after["spec"] &&
                              before["metadata"]["uid"] == after["metadata"]["uid"];
            return same ? std::vector<client::ObjectKey>() : std::vector<client::ObjectKey>{key};
          }};
}

// Pods are only read; a pass waits until they are known.
client::Trigger Never(const client::Resource& resource) {
  return {resource, [](const client::ObjectKey&, const json::Value&, const json::Value&) {
            return std::vector<client::ObjectKey>();
          }};
}

}  // namespace

std::vector<client::Trigger> PodAutoscalerController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kHorizontalPodAutoscalers, json::Fields::Whole());
  IndexByLabels(informers.Get(resources::kPods, ScaledPodFields()));
  return {OnNewSpec(), Never(resources::kPods)};
}

client::Reconciled PodAutoscalerController::Reconcile(const client::View& view,
                                                      const client::Observations& observations,
                                                      const client::ObjectKey& key, Time now,
                                                      uint64_t seed) {
  client::Reconciled out;
  const json::Value* autoscaler = view.Of(resources::kHorizontalPodAutoscalers).Find(key);
  if (autoscaler == nullptr) {
    memories_.erase(key);
    return out;
  }
  AutoscalerMemory& memory = memories_[key];
  const std::string uid = (*autoscaler)["metadata"]["uid"].Str();
  if (memory.uid != uid) memory = {.uid = uid};
  const client::Informer& pods = view.Of(resources::kPods);
  const AutoscalerInput input{
      .autoscaler = *autoscaler,
      .observations = observations,
      .find_kind = [this](std::string_view group,
                          std::string_view kind) { return discovery_.Find(group, kind); },
      .kinds_known = discovery_.Synced(),
      .pods_of =
          [&](const schema::LabelSelector& selector) {
            std::vector<json::Value> selected;
            for (const client::ObjectKey& pod : Select(pods, key.ns, selector))
              selected.push_back(*pods.Find(pod));
            return selected;
          },
      .all = memories_,
      .period = period_,
      .seed = seed};
  ReconcileAutoscaler(input, memory, now, out);
  return out;
}

}  // namespace muster::controllers
