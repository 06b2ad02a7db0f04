#include "controllers/persistentvolume/persistent_volume_controller.h"

#include "controllers/persistentvolume/claim_pass.h"
#include "controllers/persistentvolume/storage_facts.h"
#include "controllers/persistentvolume/volume_pass.h"

namespace muster::controllers {
namespace {

using client::ObjectKey;
namespace resources = client::resources;

using Keys = std::vector<ObjectKey>;

void Append(Keys& keys, const Keys& more) { keys.insert(keys.end(), more.begin(), more.end()); }

bool Differ(const json::Value& before, const json::Value& after, std::string_view part) {
  return before[part] != after[part];
}

// A claim's own pass, and those of the volumes that it has or had, or that are kept for it.
client::Trigger OnClaims(const client::Informer& volumes) {
  return {resources::kPersistentVolumeClaims,
          [&volumes](const ObjectKey& key, const json::Value& before, const json::Value& after) {
            Keys keys{key};
            const bool moved = before["spec"]["volumeName"] != after["spec"]["volumeName"] ||
                               before["metadata"]["uid"] != after["metadata"]["uid"];
            if (!moved) return keys;
            for (const json::Value* state : {&before, &after}) {
              const std::string volume = (*state)["spec"]["volumeName"].Str();
              if (!volume.empty()) keys.push_back({"", volume});
            }
            Append(keys, VolumesFor(volumes, key));
            return keys;
          }};
}

// A volume's own pass, and those of the claims that it concerns.
client::Trigger OnVolumes(const client::Informer& claims) {
  return {resources::kPersistentVolumes,
          [&claims](const ObjectKey& key, const json::Value& before, const json::Value& after) {
            Keys keys{key};
            for (const json::Value* state : {&before, &after}) {
              ObjectKey claim = ClaimOf(*state);
              if (!claim.name.empty()) keys.push_back(std::move(claim));
            }
            Append(keys, ClaimsOfVolume(claims, key.name));
            const bool is_news = !IsFree(before) || Differ(before, after, "spec") ||
                                 before["metadata"]["labels"] != after["metadata"]["labels"];
            if (IsFree(after) && is_news) Append(keys, UnboundOfClass(claims, ClassOf(after)));
            return keys;
          }};
}

client::Trigger OnClasses(const client::Informer& claims) {
  return {resources::kStorageClasses,
          [&claims](const ObjectKey& key, const json::Value&, const json::Value& after) {
            Keys keys = UnboundOfClass(claims, key.name);
            if (IsDefaultClass(after)) Append(keys, UnboundOfClass(claims, ""));
            return keys;
          }};
}

// Claims whose volume is to be made there, and volumes whose directory nobody removes any more.
client::Trigger OnNodes(const client::Informer& claims, const client::Informer& volumes) {
  return {resources::kNodes, [&claims, &volumes](const ObjectKey& key, const json::Value& before,
                                                 const json::Value& after) {
            Keys keys;
            const bool is_news =
                before.IsNull() || after.IsNull() || HostnameOf(before) != HostnameOf(after);
            if (!is_news) return keys;
            Append(keys, UnboundOnNode(claims, key.name));
            for (const json::Value* state : {&before, &after}) {
              if (const std::string host = HostnameOf(*state); !host.empty())
                Append(keys, GoingOnHost(volumes, host));
            }
            return keys;
          }};
}

// Claims without a volume, which say who waits for a node on their account.
client::Trigger OnPods(const client::Informer& claims) {
  return {resources::kPods,
          [&claims](const ObjectKey&, const json::Value& before, const json::Value& after) {
            Keys keys;
            const bool is_news = before["metadata"]["uid"] != after["metadata"]["uid"] ||
                                 IsUnscheduled(before) != IsUnscheduled(after);
            if (!is_news) return keys;
            for (const json::Value* pod : {&before, &after}) {
              for (cluster::ClaimUse& use : cluster::ToClaimUses(*pod)) {
                ObjectKey key{std::move(use.claim.ns), std::move(use.claim.name)};
                const json::Value* claim = claims.Find(key);
                if (claim != nullptr && (*claim)["spec"]["volumeName"].AsString().empty())
                  keys.push_back(std::move(key));
              }
            }
            return keys;
          }};
}

}  // namespace

std::vector<client::Trigger> PersistentVolumeController::Setup(client::InformerSet& informers) {
  client::Informer& claims = informers.Get(resources::kPersistentVolumeClaims, ClaimFields());
  client::Informer& volumes = informers.Get(resources::kPersistentVolumes, VolumeFields());
  informers.Get(resources::kStorageClasses, ClassFields());
  client::Informer& nodes = informers.Get(resources::kNodes, StorageNodeFields());
  IndexClaims(claims);
  IndexVolumes(volumes);
  IndexHosts(nodes);
  IndexPodsByClaim(informers.Get(resources::kPods, StoragePodFields()));
  return {OnClaims(volumes), OnVolumes(claims), OnClasses(claims), OnNodes(claims, volumes),
          OnPods(claims)};
}

client::Reconciled PersistentVolumeController::Reconcile(const client::View& view,
                                                         const client::Observations& observations,
                                                         const ObjectKey& key, Time now, uint64_t) {
  client::Reconciled out;
  if (key.ns.empty()) {
    const json::Value* volume = view.Of(resources::kPersistentVolumes).Find(key);
    if (volume != nullptr) SyncVolume(view, observations, *volume, now, out);
  } else {
    const json::Value* claim = view.Of(resources::kPersistentVolumeClaims).Find(key);
    if (claim != nullptr) SyncClaim(view, observations, *claim, out);
  }
  return out;
}

}  // namespace muster::controllers
