#include "simulation/node_volumes.h"

#include "client/storage_resources.h"
#include "controllers/finalizers.h"
#include "controllers/persistentvolume/storage_facts.h"
#include "simulation/fake_node.h"

namespace muster::simulation {
namespace {

namespace resources = client::resources;

constexpr Duration kRemovalTakes = milliseconds(300);
constexpr Duration kTryAgain = seconds(1);

bool AwaitsRemoval(const json::Value& volume) {
  return controllers::IsBeingDeleted(volume) &&
         controllers::HasFinalizer(volume, schema::kLocalPathProvisioner) &&
         !controllers::HasFinalizer(volume, schema::kVolumeProtection);
}

}  // namespace

NodeVolumes::NodeVolumes(Loop& loop, client::ApiClient& client, client::InformerSet& informers,
                         Machine& machine)
    : loop_(loop),
      client_(client),
      volumes_(informers.Get(resources::kPersistentVolumes, json::Fields::Whole())),
      machine_(machine) {
  volumes_.Subscribe(
      {.on_change = lifetime_.Guard(
           [this](const client::ObjectKey& key, const json::Value&, const json::Value& after) {
             if (!after.IsNull()) OnChange(key.name, after);
           }),
       .on_synced = {}});
}

void NodeVolumes::OnChange(const std::string& name, const json::Value& volume) {
  if (!controllers::IsLocalPathVolume(volume)) return;
  if (controllers::HostOf(volume) != machine_.name()) return;
  if (!controllers::IsBeingDeleted(volume)) machine_.folders().insert(name);
  if (AwaitsRemoval(volume) && busy_.insert(name).second)
    loop_.After(kRemovalTakes, lifetime_.Guard([this, name] { Remove(name); }));
}

void NodeVolumes::Remove(const std::string& name) {
  const json::Value* volume = volumes_.Find({"", name});
  if (volume == nullptr || !AwaitsRemoval(*volume)) {
    busy_.erase(name);
    return;
  }
  machine_.folders().erase(name);
  client_.Patch({resources::kPersistentVolumes, "", name, ""}, client::PatchType::kMerge,
                controllers::RemoveFinalizerPatch(*volume, schema::kLocalPathProvisioner),
                lifetime_.Guard([this, name](Result<json::Value>) {
                  // Until the informer shows that it is done.
                  loop_.After(kTryAgain, lifetime_.Guard([this, name] { Remove(name); }));
                }));
}

}  // namespace muster::simulation
