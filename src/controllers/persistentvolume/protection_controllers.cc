#include "controllers/persistentvolume/protection_controllers.h"

#include <algorithm>

#include "controllers/finalizers.h"
#include "controllers/persistentvolume/storage_facts.h"

namespace muster::controllers {
namespace {

using client::ObjectKey;
using client::Reconciled;
namespace resources = client::resources;

bool IsShutDown(const json::Value& pod) {
  const json::Value& grace = pod["metadata"]["deletionGracePeriodSeconds"];
  return IsBeingDeleted(pod) && !grace.IsNull() && grace.AsInt() == 0;
}

bool Uses(const json::Value& pod, const cluster::ClaimInfo& claim) {
  if (pod["spec"]["nodeName"].AsString().empty()) return false;
  const std::vector<cluster::ClaimUse> uses = cluster::ToClaimUses(pod);
  return std::any_of(uses.begin(), uses.end(), [&](const cluster::ClaimUse& use) {
    if (use.claim != claim.key) return false;
    return !use.IsEphemeral() || (!IsShutDown(pod) && claim.owner_uid == use.pod_uid);
  });
}

client::Trigger OnUsers() {
  return {resources::kPods,
          [](const ObjectKey&, const json::Value& before, const json::Value& after) {
            std::vector<ObjectKey> keys;
            const bool is_news = before["metadata"]["uid"] != after["metadata"]["uid"] ||
                                 before["spec"]["nodeName"] != after["spec"]["nodeName"] ||
                                 IsShutDown(before) != IsShutDown(after);
            if (!is_news) return keys;
            for (const json::Value* pod : {&before, &after}) {
              for (cluster::ClaimUse& use : cluster::ToClaimUses(*pod))
                keys.push_back({std::move(use.claim.ns), std::move(use.claim.name)});
            }
            return keys;
          }};
}

}  // namespace

std::vector<client::Trigger> ClaimProtectionController::Setup(client::InformerSet& informers) {
  json::Fields fields = cluster::ClaimUseFields();
  fields.Add({{"spec", "nodeName"}, {"metadata", "deletionGracePeriodSeconds"}});
  IndexPodsByClaim(informers.Get(resources::kPods, fields));
  return {client::OnSelf(resources::kPersistentVolumeClaims), OnUsers()};
}

Reconciled ClaimProtectionController::Reconcile(const client::View& view,
                                                const client::Observations&, const ObjectKey& key,
                                                Time now, uint64_t) {
  Reconciled out;
  const json::Value* claim = view.Of(resources::kPersistentVolumeClaims).Find(key);
  if (claim == nullptr) return out;
  const client::Informer& pods = view.Of(resources::kPods);
  const cluster::ClaimInfo info = cluster::ToClaimInfo(*claim);
  const std::vector<ObjectKey> users = PodsOfClaim(pods, key);
  bool is_free = std::none_of(users.begin(), users.end(),
                              [&](const ObjectKey& user) { return Uses(*pods.Find(user), info); });
  // Pods and claims come by different ways. A pod that is bound later does not start: the claim
  // says that it goes.
  if (is_free && info.deleting && pods.SeenRevision() < client::RevisionOf(*claim)) {
    const std::optional<Time> since =
        ParseTime((*claim)["metadata"]["deletionTimestamp"].AsString());
    if (since && now < *since + kProtectionSettling) {
      is_free = false;
      out.LookAgainAt(*since + kProtectionSettling);
    }
  }
  KeepUntilFree({resources::kPersistentVolumeClaims, key.ns, key.name, ""}, *claim,
                schema::kClaimProtection, is_free, out);
  return out;
}

std::vector<client::Trigger> VolumeProtectionController::Setup(client::InformerSet& informers) {
  informers.Get(resources::kPersistentVolumes, {{"status", "phase"}});
  return {client::OnSelf(resources::kPersistentVolumes)};
}

Reconciled VolumeProtectionController::Reconcile(const client::View& view,
                                                 const client::Observations&, const ObjectKey& key,
                                                 Time, uint64_t) {
  Reconciled out;
  const json::Value* volume = view.Of(resources::kPersistentVolumes).Find(key);
  if (volume == nullptr) return out;
  const bool is_free = (*volume)["status"]["phase"].AsString() != "Bound";
  KeepUntilFree({resources::kPersistentVolumes, "", key.name, ""}, *volume,
                schema::kVolumeProtection, is_free, out);
  return out;
}

}  // namespace muster::controllers
