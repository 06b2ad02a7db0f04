// Where a job stands in a queue of Kueue's, and who must end before it is admitted.

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/errors.h"
#include "cli/explanation.h"
#include "cli/waiting.h"
#include "client/reconcile.h"
#include "cluster/queues/quota_pool.h"
#include "schema/distributed_training.h"
#include "schema/queued_kinds.h"

namespace muster::cli {
namespace {

client::Resource Kueue(const char* plural) { return {"kueue.x-k8s.io", "v1beta1", plural}; }

std::string NamespaceOf(const json::Value& object) { return object["metadata"]["namespace"].Str(); }
std::string NameOf(const json::Value& object) { return object["metadata"]["name"].Str(); }

// "pytorchjob default/ddp".
std::string OwnerOf(const json::Value& workload) {
  const json::Value& owner = client::ControllerOf(workload);
  if (owner.IsNull()) return fmt::format("workload {}/{}", NamespaceOf(workload), NameOf(workload));
  return fmt::format("{} {}/{}", ToLower(owner["kind"].AsString()), NamespaceOf(workload),
                     owner["name"].AsString());
}

// A training in few words waits as the job that it became.
bool IsOf(const json::Value& workload, const json::Value& job) {
  const json::Value& owner = client::ControllerOf(workload);
  if (owner["uid"] == job["metadata"]["uid"]) return true;
  return job["kind"].AsString() == schema::kDistributedTraining &&
         owner["kind"].AsString() == "PyTorchJob" && owner["name"] == job["metadata"]["name"];
}

std::string TextOf(const cluster::QuotaUsage& usage) {
  std::map<std::string, int64_t> sums;
  for (const auto& [key, amount] : usage) sums[key.second] += amount;
  std::vector<std::string> parts;
  for (const auto& [resource, amount] : sums) {
    if (amount > 0)
      parts.push_back(fmt::format("{} {}", cluster::AmountText(resource, amount), resource));
  }
  return Join(parts, ", ");
}

// The ClusterQueue that a workload waits in, with all that waits and has quota in it.
struct QueueCopy {
  std::string local_queue, name;
  cluster::QuotaPool pool;
  cluster::Flavors flavors;
  std::vector<json::Value> workloads;
  std::vector<const json::Value*> waiting;  // in turn
  std::vector<const json::Value*> holders;  // the longest first
};

void SortWorkloads(const json::Value& queues, const json::Value& workloads, QueueCopy& copy) {
  std::map<std::pair<std::string, std::string>, std::string> cluster_queue_of;
  for (const json::Value& queue : queues["items"].items())
    cluster_queue_of[{NamespaceOf(queue), NameOf(queue)}] = queue["spec"]["clusterQueue"].Str();
  copy.workloads.assign(workloads["items"].items().begin(), workloads["items"].items().end());
  for (const json::Value& workload : copy.workloads) {
    if (ConditionHolds(workload, "Finished")) continue;
    if (ConditionHolds(workload, "QuotaReserved")) {
      if (workload["status"]["admission"]["clusterQueue"].AsString() == copy.name)
        copy.holders.push_back(&workload);
    } else if (cluster_queue_of[{NamespaceOf(workload), workload["spec"]["queueName"].Str()}] ==
               copy.name) {
      copy.waiting.push_back(&workload);
    }
  }
  cluster::SortByTurn(copy.waiting);
  std::ranges::sort(copy.holders, {}, [](const json::Value* workload) {
    return std::tuple(FindCondition(*workload, "QuotaReserved")["lastTransitionTime"].AsString(),
                      (*workload)["metadata"]["namespace"].AsString(),
                      (*workload)["metadata"]["name"].AsString());
  });
}

// Errors are those of the server: who may not read queues is told so.
Result<QueueCopy> ReadQueue(Session& session, const json::Value& workload) {
  QueueCopy copy;
  copy.local_queue = workload["spec"]["queueName"].Str();
  ASSIGN_OR_RETURN(
      const json::Value queue,
      session.Get({Kueue("localqueues"), NamespaceOf(workload), copy.local_queue, ""}));
  copy.name = queue["spec"]["clusterQueue"].Str();
  ASSIGN_OR_RETURN(const json::Value cluster_queue,
                   session.Get({Kueue("clusterqueues"), "", copy.name, ""}));
  copy.pool = cluster::ToQuotaPool(cluster_queue);
  ASSIGN_OR_RETURN(const json::Value flavors, session.List(Kueue("resourceflavors"), ""));
  for (const json::Value& flavor : flavors["items"].items())
    copy.flavors.emplace(NameOf(flavor), cluster::ToFlavor(flavor));
  ASSIGN_OR_RETURN(const json::Value queues, session.List(Kueue("localqueues"), ""));
  ASSIGN_OR_RETURN(const json::Value workloads, session.List(Kueue("workloads"), ""));
  SortWorkloads(queues, workloads, copy);
  return copy;
}

std::string TurnText(size_t before) {
  return before == 0 ? "next in turn" : fmt::format("{} before it", before);
}

void AddWhatWouldAdmit(const QueueCopy& queue, const json::Value& workload, size_t before,
                       Explanation& out) {
  const std::vector<cluster::PodSet> pod_sets = cluster::ToPodSets(workload);
  const auto alone = cluster::AssignFlavors(queue.pool, queue.flavors, {}, pod_sets);
  if (!alone) {
    out.lines.push_back(fmt::format("never admitted, not even by an empty ClusterQueue: {}",
                                    alone.error().message));
    out.json = out.json.SetPath({"queue", "neverFits"}, true);
    return;
  }
  if (queue.pool.strict && before > 0) {
    out.lines.push_back(
        fmt::format("StrictFIFO: first {} must be admitted", OwnerOf(*queue.waiting.front())));
    return;
  }
  std::vector<cluster::QuotaUsage> holders;
  for (const json::Value* holder : queue.holders) holders.push_back(cluster::ReservedBy(*holder));
  const auto whose = cluster::WhoseEndWouldAdmit(queue.pool, queue.flavors, holders, pod_sets);
  if (!whose || whose->empty()) return;
  std::vector<std::string> texts, names;
  for (const size_t i : *whose) {
    names.push_back(OwnerOf(*queue.holders[i]));
    texts.push_back(fmt::format("{} ends ({})", names.back(), TextOf(holders[i])));
  }
  out.lines.push_back("admitted when " + Join(texts, " and "));
  out.json = out.json.SetPath({"queue", "admittedWhenTheseEnd"}, json::Strings(names));
}

Result<json::Value> FindWorkload(Session& session, const json::Value& job) {
  ASSIGN_OR_RETURN(const json::Value list, session.List(Kueue("workloads"), NamespaceOf(job)));
  for (const json::Value& workload : list["items"].items()) {
    if (IsOf(workload, job)) return workload;
  }
  return json::Value();
}

}  // namespace

void AddQueue(Session& session, const json::Value& job, Explanation& out) {
  const std::string queue_name(schema::QueueOf(job));
  if (queue_name.empty()) return;
  const Result<json::Value> workload = FindWorkload(session, job);
  if (!workload) {
    out.lines.push_back(
        fmt::format("no detail of queue {}: {}", queue_name, DescribeError(workload.error())));
    return;
  }
  out.json = out.json.Set("queue", json::Obj({{"name", queue_name}}));
  if (workload->IsNull()) return;
  if (ConditionHolds(*workload, "QuotaReserved")) {
    const std::string from = (*workload)["status"]["admission"]["clusterQueue"].Str();
    out.lines.push_back(fmt::format("admitted by ClusterQueue {}, from queue {}: {}", from,
                                    queue_name, TextOf(cluster::ReservedBy(*workload))));
    out.json =
        out.json.SetPath({"queue", "clusterQueue"}, from).SetPath({"queue", "admitted"}, true);
    return;
  }
  const std::string why = FindCondition(*workload, "QuotaReserved")["message"].Str();
  const std::string head =
      fmt::format("{} {}", job["kind"].AsString(), job["metadata"]["name"].AsString());
  const Result<QueueCopy> queue = ReadQueue(session, *workload);
  std::string where = fmt::format("waits in queue {}", queue_name);
  size_t before = 0;
  if (queue) {
    while (before < queue->waiting.size() &&
           (*queue->waiting[before])["metadata"]["uid"] != (*workload)["metadata"]["uid"])
      ++before;
    where += fmt::format(" (ClusterQueue {}), {}", queue->name, TurnText(before));
    out.json = out.json.SetPath({"queue", "clusterQueue"}, queue->name)
                   .SetPath({"queue", "before"}, static_cast<int64_t>(before));
  }
  const std::string sentence = why.empty() ? where : fmt::format("{}: {}", where, why);
  out.sentence = fmt::format("{} {}", head, sentence);
  out.json = out.json.Set("message", sentence).SetPath({"queue", "admitted"}, false);
  if (queue) AddWhatWouldAdmit(*queue, *workload, before, out);
}

}  // namespace muster::cli
