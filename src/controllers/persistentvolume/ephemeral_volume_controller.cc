#include "controllers/persistentvolume/ephemeral_volume_controller.h"

#include <utility>

#include <fmt/core.h>

#include "controllers/persistentvolume/storage_facts.h"
#include "schema/pod_phase.h"

namespace muster::controllers {
namespace {

using client::ObjectKey;
using client::Reconciled;
namespace resources = client::resources;

json::Value MakeClaim(const json::Value& pod, const ObjectKey& key,
                      const json::Value& claim_template) {
  const json::Value owner = json::Obj({{"apiVersion", "v1"},
                                       {"kind", "Pod"},
                                       {"name", pod["metadata"]["name"]},
                                       {"uid", pod["metadata"]["uid"]},
                                       {"controller", true},
                                       {"blockOwnerDeletion", true}});
  json::Value metadata = json::Obj(
      {{"name", key.name}, {"namespace", key.ns}, {"ownerReferences", json::List({owner})}});
  for (const char* part : {"annotations", "labels"}) {
    const json::Value& wanted = claim_template["metadata"][part];
    if (!wanted.IsNull()) metadata = std::move(metadata).Set(part, wanted);
  }
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "PersistentVolumeClaim"},
                    {"metadata", metadata},
                    {"spec", claim_template["spec"]}});
}

bool IsPodsOwn(const json::Value& claim, const json::Value& pod) {
  return client::ControllerOf(claim)["uid"] == pod["metadata"]["uid"];
}

client::Trigger OnPods() {
  return {resources::kPods,
          [](const ObjectKey& key, const json::Value& before, const json::Value& after) {
            const bool is_news = before["metadata"]["uid"] != after["metadata"]["uid"];
            for (const json::Value& volume : after["spec"]["volumes"].items()) {
              if (is_news && volume.Has("ephemeral")) return std::vector<ObjectKey>{key};
            }
            return std::vector<ObjectKey>();
          }};
}

// Pods that name it, when a claim comes or goes.
client::Trigger OnClaims(const client::Informer& pods) {
  return {resources::kPersistentVolumeClaims,
          [&pods](const ObjectKey& key, const json::Value& before, const json::Value& after) {
            if (before["metadata"]["uid"] == after["metadata"]["uid"])
              return std::vector<ObjectKey>();
            return PodsOfClaim(pods, key);
          }};
}

}  // namespace

std::vector<client::Trigger> EphemeralVolumeController::Setup(client::InformerSet& informers) {
  json::Fields fields = cluster::ClaimUseFields();
  fields.Add({{"spec", "volumes", "ephemeral"}, {"status", "phase"}});
  client::Informer& pods = informers.Get(resources::kPods, fields);
  IndexPodsByClaim(pods);
  informers.Get(resources::kPersistentVolumeClaims);
  return {OnPods(), OnClaims(pods)};
}

Reconciled EphemeralVolumeController::Reconcile(const client::View& view,
                                                const client::Observations&, const ObjectKey& key,
                                                Time, uint64_t) {
  Reconciled out;
  const json::Value* pod = view.Of(resources::kPods).Find(key);
  if (pod == nullptr || IsBeingDeleted(*pod) ||
      schema::IsFinalPhase((*pod)["status"]["phase"].AsString())) {
    return out;
  }
  const client::Informer& claims = view.Of(resources::kPersistentVolumeClaims);
  out.subject = *pod;
  for (const json::Value& volume : (*pod)["spec"]["volumes"].items()) {
    if (!volume.Has("ephemeral")) continue;
    const std::string name = volume["name"].Str();
    const ObjectKey claim_key{key.ns, fmt::format("{}-{}", key.name, name)};
    const json::Value* claim = claims.Find(claim_key);
    if (claim == nullptr) {
      out.Create({resources::kPersistentVolumeClaims, claim_key.ns, claim_key.name, ""},
                 MakeClaim(*pod, claim_key, volume["ephemeral"]["volumeClaimTemplate"]));
    } else if (!IsPodsOwn(*claim, *pod)) {
      out.Event(*pod, client::EventType::kWarning, "FailedBinding",
                fmt::format("ephemeral volume {}: PVC {} was not created for pod {} (pod is not "
                            "owner)",
                            name, claim_key.ToString(), key.ToString()));
    }
  }
  return out;
}

}  // namespace muster::controllers
