#include "controllers/queues/queue_controllers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "controllers/finalizers.h"
#include "controllers/queues/cluster_queue_pass.h"
#include "controllers/queues/workload_objects.h"

namespace muster::controllers {
namespace {

namespace resources = client::resources;

// Workloads that are not finished: by the queue that they name, and by the one that gave them
// quota.
constexpr char kByQueue[] = "by-queue";
constexpr char kByReservation[] = "by-reservation";
constexpr char kByClusterQueue[] = "by-cluster-queue";  // LocalQueues
constexpr char kByFlavor[] = "by-flavor";               // ClusterQueues

client::ObjectKey LocalQueueOf(const json::Value& workload) {
  return {workload["metadata"]["namespace"].Str(), workload["spec"]["queueName"].Str()};
}

std::string ReservedIn(const json::Value& workload) {
  return Holds(workload, kQuotaReserved) ? workload["status"]["admission"]["clusterQueue"].Str()
                                         : "";
}

void IndexWorkloads(client::Informer& workloads) {
  workloads.AddIndex(kByQueue, [](const json::Value& workload) {
    std::vector<std::string> queues;
    if (!Holds(workload, kFinished)) queues.push_back(LocalQueueOf(workload).ToString());
    return queues;
  });
  workloads.AddIndex(kByReservation, [](const json::Value& workload) {
    std::vector<std::string> queues;
    const std::string queue = ReservedIn(workload);
    if (!queue.empty() && !Holds(workload, kFinished)) queues.push_back(queue);
    return queues;
  });
}

void IndexLocalQueues(client::Informer& queues) {
  queues.AddIndex(kByClusterQueue, [](const json::Value& queue) {
    return std::vector<std::string>{queue["spec"]["clusterQueue"].Str()};
  });
}

std::vector<std::string> FlavorsOf(const json::Value& cluster_queue) {
  std::vector<std::string> flavors;
  for (const cluster::QuotaGroup& group : cluster::ToQuotaPool(cluster_queue).groups) {
    for (const cluster::QuotaGroup::FlavorQuota& quota : group.flavors)
      flavors.push_back(quota.flavor);
  }
  return flavors;
}

std::vector<client::ObjectKey> AllOf(const client::Informer& informer) {
  std::vector<client::ObjectKey> keys;
  for (const auto& [key, object] : informer.objects()) keys.push_back(key);
  return keys;
}

// The ClusterQueues that a workload waits in and has quota of, before and after a change.
client::Trigger OnWorkloads(const client::Informer& queues) {
  return {kWorkloads,
          [&queues](const client::ObjectKey&, const json::Value& before, const json::Value& after) {
            std::vector<client::ObjectKey> keys;
            for (const json::Value* workload : {&before, &after}) {
              if (workload->IsNull()) continue;
              const json::Value* queue = queues.Find(LocalQueueOf(*workload));
              if (queue != nullptr) keys.push_back({"", (*queue)["spec"]["clusterQueue"].Str()});
              if (const std::string reserved = ReservedIn(*workload); !reserved.empty())
                keys.push_back({"", reserved});
            }
            std::ranges::sort(keys);
            const auto [first, last] = std::ranges::unique(keys);
            keys.erase(first, last);
            return keys;
          }};
}

client::Trigger OnLocalQueues() {
  return {kLocalQueues,
          [](const client::ObjectKey&, const json::Value& before, const json::Value& after) {
            std::vector<client::ObjectKey> keys;
            for (const json::Value* queue : {&before, &after}) {
              if (!queue->IsNull()) keys.push_back({"", (*queue)["spec"]["clusterQueue"].Str()});
            }
            return keys;
          }};
}

// Every queue may use every flavor.
client::Trigger OnFlavors(const client::Informer& cluster_queues) {
  return {kResourceFlavors,
          [&cluster_queues](const client::ObjectKey&, const json::Value&, const json::Value&) {
            return AllOf(cluster_queues);
          }};
}

client::Trigger OnNamespaceLabels(const client::Informer& cluster_queues) {
  return {resources::kNamespaces,
          [&cluster_queues](const client::ObjectKey&, const json::Value& before,
                            const json::Value& after) {
            if (before["metadata"]["labels"] == after["metadata"]["labels"])
              return std::vector<client::ObjectKey>();
            return AllOf(cluster_queues);
          }};
}

}  // namespace

std::vector<client::Trigger> ClusterQueueController::Setup(client::InformerSet& informers) {
  client::Informer& cluster_queues = informers.Get(kClusterQueues, json::Fields::Whole());
  client::Informer& queues = informers.Get(kLocalQueues, json::Fields::Whole());
  IndexLocalQueues(queues);
  IndexWorkloads(informers.Get(kWorkloads, json::Fields::Whole()));
  FollowDefinitions(informers);
  informers.Get(kResourceFlavors, json::Fields::Whole());
  informers.Get(resources::kNamespaces, {{"metadata", "labels"}});
  return {client::OnSelf(kClusterQueues), OnWorkloads(queues), OnLocalQueues(),
          OnFlavors(cluster_queues), OnNamespaceLabels(cluster_queues)};
}

client::Reconciled ClusterQueueController::Reconcile(const client::View& view,
                                                     const client::Observations&,
                                                     const client::ObjectKey& key, Time now,
                                                     uint64_t) {
  const json::Value* cluster_queue = view.Of(kClusterQueues).Find(key);
  if (cluster_queue == nullptr || AreManagedElsewhere(view)) return {};
  const client::Informer& queues = view.Of(kLocalQueues);
  const client::Informer& workloads = view.Of(kWorkloads);
  ClusterQueueInput input;
  input.cluster_queue = *cluster_queue;
  for (const auto& [name, flavor] : view.Of(kResourceFlavors).objects())
    input.flavors.emplace(name.name, cluster::ToFlavor(flavor));
  for (const client::ObjectKey& workload : workloads.Lookup(kByReservation, key.name))
    input.workloads.push_back(*workloads.Find(workload));
  for (const client::ObjectKey& queue : queues.Lookup(kByClusterQueue, key.name)) {
    for (const client::ObjectKey& workload : workloads.Lookup(kByQueue, queue.ToString())) {
      const json::Value& object = *workloads.Find(workload);
      if (ReservedIn(object).empty()) input.workloads.push_back(object);
    }
  }
  input.local_queue = [&](const json::Value& workload) {
    return queues.Find(LocalQueueOf(workload));
  };
  input.namespace_labels = [&](const std::string& ns) {
    const json::Value* found = view.Of(resources::kNamespaces).Find({"", ns});
    return found == nullptr ? json::Value() : (*found)["metadata"]["labels"];
  };
  return ReconcileClusterQueue(input, now);
}

std::vector<client::Trigger> LocalQueueController::Setup(client::InformerSet& informers) {
  client::Informer& queues = informers.Get(kLocalQueues, json::Fields::Whole());
  IndexLocalQueues(queues);
  IndexWorkloads(informers.Get(kWorkloads, json::Fields::Whole()));
  FollowDefinitions(informers);
  informers.Get(kClusterQueues, json::Fields::Whole());
  client::Trigger on_workloads{kWorkloads, [](const client::ObjectKey&, const json::Value& before,
                                              const json::Value& after) {
                                 std::vector<client::ObjectKey> keys;
                                 for (const json::Value* workload : {&before, &after}) {
                                   if (!workload->IsNull()) keys.push_back(LocalQueueOf(*workload));
                                 }
                                 return keys;
                               }};
  client::Trigger on_cluster_queues{
      kClusterQueues,
      [&queues](const client::ObjectKey& key, const json::Value&, const json::Value&) {
        return queues.Lookup(kByClusterQueue, key.name);
      }};
  return {client::OnSelf(kLocalQueues), std::move(on_workloads), std::move(on_cluster_queues)};
}

namespace {

// Of workloads in a queue that is not there, or leads nowhere.
void Disappoint(const std::vector<json::Value>& workloads, const std::string& message, Time now,
                client::Reconciled& out) {
  for (const json::Value& workload : workloads) {
    if (Holds(workload, kQuotaReserved) || workload["metadata"].Has("deletionTimestamp")) continue;
    const json::Value status =
        WithCondition(workload["status"], kQuotaReserved, false, "Inadmissible", message,
                      workload["metadata"]["generation"].AsInt(), now);
    if (status == workload["status"]) continue;
    out.UpdateStatus({kWorkloads, workload["metadata"]["namespace"].Str(),
                      workload["metadata"]["name"].Str(), ""},
                     workload.Set("status", status));
    out.Event(workload, client::EventType::kWarning, "Inadmissible", message);
  }
}

// The condition Active of a LocalQueue: reason and message, and whether it is.
struct Activity {
  bool active = false;
  const char* reason;
  const char* message;
};

Activity ActivityOf(const json::Value& queue, const json::Value* cluster_queue) {
  if (queue["spec"]["stopPolicy"].AsString("None") != "None")
    return {false, "Stopped", "LocalQueue is stopped"};
  if (cluster_queue == nullptr) {
    return {false, "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue"};
  }
  if (!Holds(*cluster_queue, kActive))
    return {false, "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue"};
  return {true, "Ready", "Can submit new workloads to localQueue"};
}

json::Value LocalQueueStatus(const json::Value& queue, const json::Value* cluster_queue,
                             const std::vector<json::Value>& workloads, Time now) {
  int64_t pending = 0, reserving = 0, admitted = 0;
  cluster::QuotaUsage used;
  for (const json::Value& workload : workloads) {
    if (!Holds(workload, kQuotaReserved)) {
      pending += workload["spec"]["active"].AsBool(true) ? 1 : 0;
      continue;
    }
    ++reserving;
    admitted += Holds(workload, kAdmitted) ? 1 : 0;
    cluster::AddUsage(used, cluster::ReservedBy(workload));
  }
  json::Value status = queue["status"]
                           .Set("pendingWorkloads", pending)
                           .Set("reservingWorkloads", reserving)
                           .Set("admittedWorkloads", admitted);
  if (cluster_queue != nullptr) {
    const json::Value usages = FlavorUsages(cluster::ToQuotaPool(*cluster_queue), used, false);
    for (const char* key : {"flavorsReservation", "flavorUsage", "flavorsUsage"})
      status = status.Set(key, usages);
  }
  const Activity activity = ActivityOf(queue, cluster_queue);
  return WithCondition(status, kActive, activity.active, activity.reason, activity.message,
                       queue["metadata"]["generation"].AsInt(), now);
}

}  // namespace

client::Reconciled LocalQueueController::Reconcile(const client::View& view,
                                                   const client::Observations&,
                                                   const client::ObjectKey& key, Time now,
                                                   uint64_t) {
  client::Reconciled out;
  if (AreManagedElsewhere(view)) return out;
  const client::Informer& informer = view.Of(kWorkloads);
  std::vector<json::Value> workloads;
  for (const client::ObjectKey& workload : informer.Lookup(kByQueue, key.ToString()))
    workloads.push_back(*informer.Find(workload));
  const json::Value* queue = view.Of(kLocalQueues).Find(key);
  if (queue == nullptr) {
    Disappoint(workloads, fmt::format("LocalQueue {} doesn't exist", key.name), now, out);
    return out;
  }
  const std::string name = (*queue)["spec"]["clusterQueue"].Str();
  const json::Value* cluster_queue = view.Of(kClusterQueues).Find({"", name});
  if (cluster_queue == nullptr)
    Disappoint(workloads, fmt::format("ClusterQueue {} doesn't exist", name), now, out);
  const json::Value status = LocalQueueStatus(*queue, cluster_queue, workloads, now);
  if (!(status == (*queue)["status"]))
    out.UpdateStatus({kLocalQueues, key.ns, key.name, ""}, queue->Set("status", status));
  return out;
}

std::vector<client::Trigger> ResourceFlavorController::Setup(client::InformerSet& informers) {
  informers.Get(kClusterQueues, json::Fields::Whole()).AddIndex(kByFlavor, FlavorsOf);
  informers.Get(kResourceFlavors, json::Fields::Whole());
  FollowDefinitions(informers);
  // Those that it named before, or names no more.
  client::Trigger on_cluster_queues{kClusterQueues, [](const client::ObjectKey&,
                                                       const json::Value& before,
                                                       const json::Value& after) {
                                      std::vector<client::ObjectKey> keys;
                                      if (before["spec"] == after["spec"]) return keys;
                                      for (std::string& flavor : FlavorsOf(before))
                                        keys.push_back({"", std::move(flavor)});
                                      return keys;
                                    }};
  return {client::OnSelf(kResourceFlavors), std::move(on_cluster_queues)};
}

client::Reconciled ResourceFlavorController::Reconcile(const client::View& view,
                                                       const client::Observations&,
                                                       const client::ObjectKey& key, Time,
                                                       uint64_t) {
  client::Reconciled out;
  const json::Value* flavor = view.Of(kResourceFlavors).Find(key);
  if (flavor == nullptr || AreManagedElsewhere(view)) return out;
  const bool is_free = view.Of(kClusterQueues).LookupCount(kByFlavor, key.name) == 0;
  KeepUntilFree({kResourceFlavors, "", key.name, ""}, *flavor, kResourceInUse, is_free, out);
  return out;
}

}  // namespace muster::controllers
