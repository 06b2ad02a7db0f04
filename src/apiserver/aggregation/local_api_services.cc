#include "apiserver/aggregation/local_api_services.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/core.h"
#include "apiserver/object_writer.h"
#include "apiserver/stored_object.h"
#include "base/log.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

// "onstart": made when the server starts; "true": kept as long as the definition is there.
constexpr std::string_view kManagedLabel = "kube-aggregator.kubernetes.io/automanaged";

// Of groups of CustomResourceDefinitions: k8s.io/kubernetes pkg/controlplane crdregistration.
constexpr int kCustomGroupPriority = 1000, kCustomVersionPriority = 100;
constexpr int kUsualVersionPriority = 15;

// k8s.io/kubernetes pkg/controlplane/apiserver/aggregator.go.
int PriorityOf(std::string_view group) {
  static const std::map<std::string_view, int> priorities = {
      {"", 18000},
      {"events.k8s.io", 17750},
      {"apps", 17800},
      {"authentication.k8s.io", 17700},
      {"authorization.k8s.io", 17600},
      {"autoscaling", 17500},
      {"batch", 17400},
      {"networking.k8s.io", 17200},
      {"policy", 17200},
      {"rbac.authorization.k8s.io", 17000},
      {"storage.k8s.io", 16800},
      {"apiextensions.k8s.io", 16700},
      {"admissionregistration.k8s.io", 16700},
      {"scheduling.k8s.io", 16600},
      {"coordination.k8s.io", 16500},
      {"discovery.k8s.io", 16200},
  };
  const auto found = priorities.find(group);
  return found == priorities.end() ? 16000 : found->second;
}

int VersionPriorityOf(std::string_view group, std::string_view version) {
  if (group.empty()) return 1;
  return group == "autoscaling" && version == "v2" ? 30 : kUsualVersionPriority;
}

json::Value Local(std::string_view group, std::string_view version, std::string_view managed,
                  int group_priority, int version_priority) {
  json::Value spec = json::Obj({{"version", version},
                                {"groupPriorityMinimum", group_priority},
                                {"versionPriority", version_priority}});
  if (!group.empty()) spec = std::move(spec).Set("group", group);
  return json::Obj(
      {{"apiVersion", "apiregistration.k8s.io/v1"},
       {"kind", "APIService"},
       {"metadata", json::Obj({{"name", fmt::format("{}.{}", version, group)},
                               {"labels", json::Obj({{std::string(kManagedLabel), managed}})}})},
       {"spec", std::move(spec)}});
}

void Complain(const std::string& name, const Status& why) {
  LOG_WARN("apiserver: cannot keep the api service name={} error={:?}", name, why.message());
}

void Create(Core& core, const ResourcePtr& resource, const std::string& name, json::Value wanted) {
  WriteContext context{*resource->kind, "", name, core.loop.Now(), false, {}};
  Result<json::Value> object = PrepareCreate(core, *resource, context, std::move(wanted));
  if (!object) return Complain(name, object.error());
  CreateObject(core, resource, context, *std::move(object),
               [name](const Result<store::EntryPtr>& entry) {
                 if (!entry) Complain(name, entry.error());
               });
}

void Remove(Core& core, const ResourcePtr& resource, const std::string& name) {
  const Result<Found> found = FindObject(core, *resource->kind, "", name);
  if (!found) return;
  RemoveObject(core, resource, false, *found, [name](const Result<store::EntryPtr>& entry) {
    if (!entry) Complain(name, entry.error());
  });
}

}  // namespace

std::vector<json::Value> BuiltInApiServices() {
  std::set<std::pair<std::string, std::string>> versions;
  for (const schema::KindPtr& kind : schema::Registry::BuiltIn().kinds())
    if (!kind->computed) versions.emplace(kind->group, kind->version);
  std::vector<json::Value> services;
  for (const auto& [group, version] : versions) {
    // The aggregator's own has none upstream, either.
    if (group == "apiregistration.k8s.io") continue;
    services.push_back(
        Local(group, version, "onstart", PriorityOf(group), VersionPriorityOf(group, version)));
  }
  return services;
}

void LocalApiServices::SyncCustom() {
  if (std::exchange(soon_, true)) return;
  core_.loop.Post(core_.Guarded([this] {
    soon_ = false;
    Sync();
  }));
}

void LocalApiServices::OnDeleted(const std::string& name) {
  deleted_.insert(name);
  SyncCustom();
}

void LocalApiServices::Sync() {
  const ResourcePtr resource = core_.registry.Find("apiregistration.k8s.io", "v1", "apiservices");
  std::map<std::string, json::Value> wanted;
  if (const auto deleted = std::exchange(deleted_, {}); !deleted.empty()) {
    for (json::Value& service : BuiltInApiServices()) {
      const std::string name = service["metadata"]["name"].Str();
      if (deleted.contains(name)) wanted[name] = std::move(service);
    }
  }
  for (const ResourcePtr& served : core_.registry.All()) {
    if (served->crd.empty() || served->terminating) continue;
    const schema::Kind& kind = *served->kind;
    wanted[fmt::format("{}.{}", kind.version, kind.group)] =
        Local(kind.group, kind.version, "true", kCustomGroupPriority, kCustomVersionPriority);
  }
  const Result<store::RangeResult> range = core_.store.Range(KeyPrefix(*resource->kind), "", 0, 0);
  if (!range) return;
  for (const store::EntryPtr& entry : range->entries) {
    const std::string name(ParseKey(entry->key).name);
    if (MetaOf(*entry).Label(kManagedLabel) == "true" && !wanted.contains(name))
      Remove(core_, resource, name);
  }
  for (auto& [name, object] : wanted) {
    if (core_.store.GetLatest(ObjectKey(*resource->kind, "", name)) == nullptr)
      Create(core_, resource, name, std::move(object));
  }
}

}  // namespace muster::apiserver
