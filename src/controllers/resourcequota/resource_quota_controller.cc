#include "controllers/resourcequota/resource_quota_controller.h"

#include <algorithm>
#include <utility>

namespace muster::controllers {
namespace {

using client::ObjectKey;
using client::Reconciled;
using schema::GroupResource;
namespace resources = client::resources;

GroupResource GroupResourceOf(const client::Resource& resource) {
  return {resource.group, resource.plural};
}

}  // namespace

std::vector<client::Trigger> ResourceQuotaController::Setup(client::InformerSet& informers) {
  informers_ = &informers;
  informers.Get(kResourceQuotas, json::Fields::Whole());
  informers.Get(resources::kPods, {{"metadata", "deletionGracePeriodSeconds"},
                                   {"spec", "containers", "resources"},
                                   {"spec", "initContainers", "resources"},
                                   {"spec", "initContainers", "restartPolicy"},
                                   {"spec", "overhead"},
                                   {"spec", "activeDeadlineSeconds"},
                                   {"spec", "priorityClassName"},
                                   {"spec", "affinity"},
                                   {"status", "phase"}});
  informers.Get(resources::kServices,
                {{"spec", "type"}, {"spec", "ports"}, {"spec", "allocateLoadBalancerNodePorts"}});
  informers.Get(resources::kPersistentVolumeClaims, {{"metadata", "annotations"},
                                                     {"spec", "resources"},
                                                     {"spec", "storageClassName"},
                                                     {"status", "allocatedResources"}});
  return {client::OnSelf(kResourceQuotas)};
}

void ResourceQuotaController::Attach(std::function<void(const ObjectKey&)> wake) {
  wake_ = std::move(wake);
  discovery_.Subscribe(lifetime_.Guard([this](const client::ServedKind& kind) {
    if (kind.namespaced && !IsOutsideQuotas(GroupResourceOf(kind.resource))) Follow(kind.resource);
  }));
}

void ResourceQuotaController::Follow(const client::Resource& resource) {
  const GroupResource id = GroupResourceOf(resource);
  if (!sources_.try_emplace(id, Source{resource}).second) return;
  const auto on_live = lifetime_.Guard([this, id] { OnLive(id); });
  informers_->Get(resource).Subscribe(
      {.on_change = lifetime_.Guard(
           [this, id](const ObjectKey& key, const json::Value& before, const json::Value& after) {
             OnChange(id, key, before, after);
           }),
       .on_synced = on_live,
       .on_unserved = on_live});
}

// Whatever has been counted of it is counted again.
void ResourceQuotaController::OnLive(const GroupResource& resource) {
  sources_.at(resource).live = true;
  for (const auto& [key, quota] : informers_->Get(kResourceQuotas).objects()) {
    if (!schema::Quota(quota).resources().contains(resource)) continue;
    counted_.erase(key);
    wake_(key);
  }
}

void ResourceQuotaController::OnChange(const GroupResource& resource, const ObjectKey& key,
                                       const json::Value& before, const json::Value& after) {
  if (!sources_.at(resource).live) return;
  for (auto it = counted_.lower_bound({key.ns, ""}); it != counted_.end(); ++it) {
    if (it->first.ns != key.ns) break;
    if (it->second.tally.Change(resource, before, after)) wake_(it->first);
  }
}

bool ResourceQuotaController::AllLive(const schema::Quota& quota) const {
  return std::ranges::all_of(quota.resources(), [&](const GroupResource& resource) {
    const auto source = sources_.find(resource);
    return source == sources_.end() || source->second.live;
  });
}

schema::QuotaTally ResourceQuotaController::Count(const client::View& view, schema::Quota quota,
                                                  const std::string& ns, Time now) const {
  schema::QuotaTally tally(std::move(quota), now);
  for (const GroupResource& resource : tally.quota().resources()) {
    const auto source = sources_.find(resource);
    if (source == sources_.end()) continue;  // not served: there are none
    const auto& objects = view.Of(source->second.resource).objects();
    for (auto it = objects.lower_bound({ns, ""}); it != objects.end() && it->first.ns == ns; ++it)
      tally.Change(resource, {}, it->second);
  }
  return tally;
}

Reconciled ResourceQuotaController::Reconcile(const client::View& view, const client::Observations&,
                                              const ObjectKey& key, Time now, uint64_t) {
  Reconciled out;
  const json::Value* object = view.Of(kResourceQuotas).Find(key);
  if (object == nullptr) {
    counted_.erase(key);
    return out;
  }
  const json::Value& spec = (*object)["spec"];
  auto counted = counted_.find(key);
  if (counted == counted_.end() || counted->second.spec != spec) {
    if (counted != counted_.end()) counted_.erase(counted);
    schema::Quota quota(*object);
    if (!discovery_.Synced()) out.LookAgainAt(now + kQuotaDiscoveryRetry);
    if (!discovery_.Synced() || !AllLive(quota)) return out;
    counted =
        counted_.emplace(key, Counted{spec, Count(view, std::move(quota), key.ns, now)}).first;
  }
  schema::QuotaTally& tally = counted->second.tally;
  tally.Advance(now);
  if (const auto lapse = tally.NextLapse()) out.LookAgainAt(*lapse + seconds(1));
  const json::Value& status = (*object)["status"];
  if (schema::AmountsOf(status["hard"]) == tally.quota().hard() &&
      schema::AmountsOf(status["used"]) == tally.used()) {
    return out;
  }
  json::Value used = schema::ToJson(tally.used());
  json::Value now_true = json::Obj({{"hard", spec["hard"]}, {"used", std::move(used)}});
  out.UpdateStatus({kResourceQuotas, key.ns, key.name, ""},
                   object->Set("status", std::move(now_true)));
  return out;
}

}  // namespace muster::controllers
