#include "controllers/queues/cluster_queue_pass.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "controllers/finalizers.h"
#include "controllers/queues/workload_objects.h"
#include "schema/label_selector.h"

namespace muster::controllers {
namespace {

using client::EventType;
using client::Reconciled;

std::string NameOf(const json::Value& object) { return object["metadata"]["name"].Str(); }
std::string NamespaceOf(const json::Value& object) { return object["metadata"]["namespace"].Str(); }

bool IsStopped(const json::Value& queue) {
  return queue["spec"]["stopPolicy"].AsString("None") != "None";
}

// Of a workload without quota: QuotaReserved is False because of this.
struct Verdict {
  std::string_view reason;
  std::string message;
};

class ClusterQueuePass {
 public:
  ClusterQueuePass(const ClusterQueueInput& in, Time now)
      : in_(in), now_(now), pool_(cluster::ToQuotaPool(in.cluster_queue)) {}

  Reconciled Run() {
    out_.subject = in_.cluster_queue;
    std::vector<const json::Value*> waiting;
    for (const json::Value& workload : in_.workloads) {
      if (Holds(workload, kQuotaReserved)) {
        cluster::AddUsage(used_, cluster::ReservedBy(workload));
        ++reserving_;
        if (Holds(workload, kAdmitted)) ++admitted_;
      } else if (!workload["metadata"].Has("deletionTimestamp") &&
                 in_.local_queue(workload) != nullptr) {
        waiting.push_back(&workload);
      }
    }
    cluster::SortByTurn(waiting);
    const client::Target target{kClusterQueues, "", pool_.name, ""};
    if (KeepUntilFree(target, in_.cluster_queue, kResourceInUse, reserving_ == 0, out_))
      return std::move(out_);
    for (const json::Value* workload : waiting) Judge(*workload);
    WriteStatus();
    return std::move(out_);
  }

 private:
  void Judge(const json::Value& workload) {
    if (!workload["spec"]["active"].AsBool(true))
      return Refuse(workload, {"Inadmissible", "The workload is deactivated"});
    ++pending_;
    if (IsStopped(*in_.local_queue(workload))) {
      return Refuse(workload, {"Inadmissible", fmt::format("LocalQueue {} is inactive",
                                                           workload["spec"]["queueName"].Str())});
    }
    if (!WhyInactive(in_.cluster_queue, in_.flavors).first.empty()) {
      return Refuse(workload,
                    {"Inadmissible", fmt::format("ClusterQueue {} is inactive", pool_.name)});
    }
    if (!TakesNamespace(NamespaceOf(workload)))
      return Refuse(workload,
                    {"Pending", "Workload namespace doesn't match ClusterQueue selector"});
    if (!first_refused_.empty() && pool_.strict) {
      return Refuse(workload,
                    {"Pending", fmt::format("waits behind workload {}, which does not fit "
                                            "yet (StrictFIFO)",
                                            first_refused_)});
    }
    const auto assigned =
        cluster::AssignFlavors(pool_, in_.flavors, used_, cluster::ToPodSets(workload));
    if (assigned) return Admit(workload, *assigned);
    if (first_refused_.empty())
      first_refused_ = fmt::format("{}/{}", NamespaceOf(workload), NameOf(workload));
    Refuse(workload, {"Pending", assigned.error().message});
  }

  bool TakesNamespace(const std::string& ns) {
    const auto [entry, is_new] = taken_.try_emplace(ns, false);
    if (!is_new) return entry->second;
    const json::Value& from = in_.cluster_queue["spec"]["namespaceSelector"];
    if (from.IsNull()) return false;
    const auto selector = schema::LabelSelector::FromJson(from);
    entry->second = selector.has_value() && selector->Matches(in_.namespace_labels(ns));
    return entry->second;
  }

  void Refuse(const json::Value& workload, Verdict verdict) {
    json::Value status = workload["status"];
    if (verdict.reason == "Pending") status = status.Set("resourceRequests", RequestsOf(workload));
    status = WithCondition(status, kQuotaReserved, false, verdict.reason, verdict.message,
                           workload["metadata"]["generation"].AsInt(), now_);
    if (status == workload["status"]) return;
    Write(workload, status);
    out_.Event(workload, EventType::kWarning, std::string(verdict.reason), verdict.message);
  }

  static json::Value RequestsOf(const json::Value& workload) {
    json::Array requests;
    for (const cluster::PodSet& pods : cluster::ToPodSets(workload)) {
      json::Object amounts;
      for (const auto& [resource, amount] : pods.requests) {
        if (resource != cluster::resource::kPods)
          amounts.emplace_back(resource, cluster::AmountText(resource, amount));
      }
      requests.push_back(
          json::Obj({{"name", pods.name}, {"resources", json::Value(std::move(amounts))}}));
    }
    return json::Value(std::move(requests));
  }

  void Admit(const json::Value& workload, const cluster::Assignment& assigned) {
    cluster::AddUsage(used_, cluster::UsageOf(assigned));
    --pending_;
    ++reserving_;
    ++admitted_;
    const int64_t generation = workload["metadata"]["generation"].AsInt();
    json::Value status = workload["status"]
                             .Remove("resourceRequests")
                             .Set("admission", cluster::AdmissionOf(pool_, assigned));
    status = WithCondition(status, kQuotaReserved, true, "QuotaReserved",
                           fmt::format("Quota reserved in ClusterQueue {}", pool_.name), generation,
                           now_);
    if (Holds(workload, kEvicted)) {
      status = WithCondition(status, kEvicted, false, "QuotaReserved",
                             "Previously: The workload is deactivated", generation, now_);
    }
    status = WithCondition(status, kAdmitted, true, "Admitted", "The workload is admitted",
                           generation, now_);
    Write(workload, status);
    const std::optional<Time> since =
        ParseTime(workload["metadata"]["creationTimestamp"].AsString());
    const int64_t waited =
        since ? std::chrono::duration_cast<std::chrono::seconds>(now_ - *since).count() : 0;
    out_.Event(workload, EventType::kNormal, "QuotaReserved",
               fmt::format("Quota reserved in ClusterQueue {}, wait time since queued was {}s",
                           pool_.name, waited));
    out_.Event(
        workload, EventType::kNormal, "Admitted",
        fmt::format("Admitted by ClusterQueue {}, wait time since reservation was 0s", pool_.name));
  }

  void Write(const json::Value& workload, const json::Value& status) {
    out_.UpdateStatus({kWorkloads, NamespaceOf(workload), NameOf(workload), ""},
                      workload.Set("status", status));
  }

  void WriteStatus() {
    const json::Value& before = in_.cluster_queue["status"];
    const json::Value usages = FlavorUsages(pool_, used_, true);
    const auto [reason, message] = WhyInactive(in_.cluster_queue, in_.flavors);
    json::Value status = before.Set("flavorsReservation", usages)
                             .Set("flavorsUsage", usages)
                             .Set("pendingWorkloads", pending_)
                             .Set("reservingWorkloads", reserving_)
                             .Set("admittedWorkloads", admitted_);
    status = WithCondition(status, kActive, reason.empty(), reason.empty() ? "Ready" : reason,
                           reason.empty() ? "Can admit new workloads" : message,
                           in_.cluster_queue["metadata"]["generation"].AsInt(), now_);
    if (status == before) return;
    out_.UpdateStatus({kClusterQueues, "", pool_.name, ""},
                      in_.cluster_queue.Set("status", status));
  }

  const ClusterQueueInput& in_;
  const Time now_;
  const cluster::QuotaPool pool_;
  cluster::QuotaUsage used_;
  int64_t pending_ = 0, reserving_ = 0, admitted_ = 0;
  std::string first_refused_;
  std::map<std::string, bool> taken_;
  Reconciled out_;
};

}  // namespace

json::Value FlavorUsages(const cluster::QuotaPool& pool, const cluster::QuotaUsage& usage,
                         bool borrowed) {
  json::Array flavors;
  for (const cluster::QuotaGroup& group : pool.groups) {
    for (const cluster::QuotaGroup::FlavorQuota& quota : group.flavors) {
      json::Array resources;
      for (const std::string& resource : group.resources) {
        const auto used = usage.find({quota.flavor, resource});
        const int64_t amount = used == usage.end() ? 0 : used->second;
        json::Value entry =
            json::Obj({{"name", resource}, {"total", cluster::AmountText(resource, amount)}});
        resources.push_back(borrowed ? entry.Set("borrowed", "0") : entry);
      }
      flavors.push_back(
          json::Obj({{"name", quota.flavor}, {"resources", json::Value(std::move(resources))}}));
    }
  }
  return json::Value(std::move(flavors));
}

std::pair<std::string, std::string> WhyInactive(const json::Value& cluster_queue,
                                                const cluster::Flavors& flavors) {
  if (cluster_queue["metadata"].Has("deletionTimestamp"))
    return {"Terminating", "Can't admit new workloads; clusterQueue is terminating"};
  const json::Value& spec = cluster_queue["spec"];
  std::vector<std::string> reasons, messages;
  const auto add = [&](const char* reason, std::string message) {
    reasons.emplace_back(reason);
    messages.push_back(std::move(message));
  };
  if (IsStopped(cluster_queue)) add("Stopped", "is stopped");
  std::set<std::string> missing;
  for (const cluster::QuotaGroup& group : cluster::ToQuotaPool(cluster_queue).groups) {
    for (const cluster::QuotaGroup::FlavorQuota& quota : group.flavors) {
      if (!flavors.contains(quota.flavor)) missing.insert(quota.flavor);
    }
  }
  if (!missing.empty()) {
    add("FlavorNotFound", fmt::format("references missing ResourceFlavor(s): {}",
                                      Join({missing.begin(), missing.end()}, ",")));
  }
  std::set<std::string> checks;
  for (const json::Value& check : spec["admissionChecks"].items()) checks.insert(check.Str());
  for (const json::Value& check : spec["admissionChecksStrategy"]["admissionChecks"].items())
    checks.insert(check["name"].Str());
  if (!checks.empty()) {
    add("AdmissionCheckNotFound", fmt::format("references missing AdmissionCheck(s): {}",
                                              Join({checks.begin(), checks.end()}, ",")));
  }
  if (reasons.empty()) return {};
  return {reasons.front(), fmt::format("Can't admit new workloads: {}.", Join(messages, ", "))};
}

Reconciled ReconcileClusterQueue(const ClusterQueueInput& input, Time now) {
  return ClusterQueuePass(input, now).Run();
}

}  // namespace muster::controllers
